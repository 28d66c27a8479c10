//! Modules that only some programs import, and the asyncio loop that the calling thread runs.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

/// `sys.modules` and names of modules in it.
pub struct Modules {
    /// `sys.modules`.
    pub modules: Owned,
    /// `"multiprocessing"`.
    pub multiprocessing: Owned,
    /// `"asyncio"`.
    pub asyncio: Owned,
}

static MODULES: OnceLock<Modules> = OnceLock::new();

/// Remembers the modules. The first call counts.
pub fn set_modules(modules: Modules) {
    let _ = MODULES.set(modules);
}

/// A module that is looked at only if the program imported it.
#[derive(Clone, Copy)]
pub enum Loaded {
    /// `multiprocessing`
    Multiprocessing,
    /// `asyncio`
    Asyncio,
}

/// The module, if it is imported.
pub fn loaded_module(py: Python<'_>, which: Loaded) -> Option<Owned> {
    let known = MODULES.get()?;
    let name = match which {
        Loaded::Multiprocessing => &known.multiprocessing,
        Loaded::Asyncio => &known.asyncio,
    };
    // SAFETY: `sys.modules` is a dict; the module that it gives is made an own reference before any Python code runs.
    let module = unsafe {
        let module = ffi::PyDict_GetItemWithError(known.modules.as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, module).map(|module| Owned::of(&module))
    };
    if module.is_none() {
        object::clear_error(py);
    }
    module.filter(|module| !module.bind(py).is_none())
}

/// What was found. `None` where that raised: stock logging passes over every `Exception` there, and nothing else.
///
/// # Errors
///
/// [`Failure::Raised`] only.
pub fn if_any(py: Python<'_>, found: Option<Owned>) -> Result<Option<Owned>, Failure> {
    failure::unless_stock(found.ok_or_else(|| Failure::of_error(py)))
}

/// The module `asyncio` and the loop that the calling thread runs.
///
/// # Errors
///
/// Where asking raised what no handler of errors catches.
pub fn running_loop(py: Python<'_>) -> Result<Option<(Owned, Owned)>, Failure> {
    let Some(module) = loaded_module(py, Loaded::Asyncio) else { return Ok(None) };
    let Some(function) = object::attribute(module.bind(py), &names().get_running_loop) else { return Ok(None) };
    let found = if_any(py, leaving::call(function.bind(py)))?;
    Ok(found.filter(|found| !found.bind(py).is_none()).map(|found| (module, found)))
}

/// Whether the calling thread runs an asyncio loop; asyncio is looked at only if the program imported it.
///
/// # Errors
///
/// Where asking raised what no handler of errors catches.
pub fn has_running_loop(py: Python<'_>) -> Result<bool, Failure> {
    Ok(running_loop(py)?.is_some())
}
