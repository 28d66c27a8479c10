//! Modules that only some programs import, and the asyncio loop that the calling thread runs.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::{self, Failure};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

/// `sys.modules`, and the names of two modules in it.
pub struct Modules {
    /// `sys.modules`.
    pub modules: Owned,
    /// `"multiprocessing"`.
    pub multiprocessing: Owned,
    /// `"asyncio"`.
    pub asyncio: Owned,
}

static MODULES: OnceLock<Modules> = OnceLock::new();

/// Sets the modules. Later calls change nothing.
pub fn set_modules(modules: Modules) {
    let _ = MODULES.set(modules);
}

/// A module that is used only if the program has imported it.
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
    // SAFETY: `sys.modules` is a dict. The borrowed module becomes an own reference before any Python code runs.
    let module = unsafe {
        let module = ffi::PyDict_GetItemWithError(known.modules.as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, module).map(|module| Owned::of(&module))
    };
    if module.is_none() {
        object::clear_error(py);
    }
    module.filter(|module| !module.bind(py).is_none())
}

/// The value; `None` if an `Exception` was raised. Stock logging ignores every `Exception` at this point, but no other
/// error.
///
/// # Errors
///
/// [`Failure::Raised`] only.
pub fn if_any(py: Python<'_>, found: Option<Owned>) -> Result<Option<Owned>, Failure> {
    failure::unless_stock(found.ok_or_else(|| Failure::of_error(py)))
}

/// The module `asyncio`, and the loop that runs in the calling thread.
///
/// # Errors
///
/// An error was raised that no error handler catches.
pub fn running_loop(py: Python<'_>) -> Result<Option<(Owned, Owned)>, Failure> {
    let Some(module) = loaded_module(py, Loaded::Asyncio) else { return Ok(None) };
    let Some(function) = object::attribute(module.bind(py), &names().get_running_loop) else { return Ok(None) };
    let found = if_any(py, leaving::call(function.bind(py)))?;
    Ok(found.filter(|found| !found.bind(py).is_none()).map(|found| (module, found)))
}

/// True if an asyncio loop runs in the calling thread. asyncio is used only if the program has imported it.
///
/// # Errors
///
/// An error was raised that no error handler catches.
pub fn has_running_loop(py: Python<'_>) -> Result<bool, Failure> {
    Ok(running_loop(py)?.is_some())
}
