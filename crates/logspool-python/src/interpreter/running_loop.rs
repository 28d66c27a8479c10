//! Finds modules that only some programs import, and the asyncio loop that runs in the calling thread.

mod first_reads;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::failure::{self, Failure};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

/// `sys.modules`, and the names of two modules in it.
pub struct Modules {
    /// `sys.modules`.
    pub modules: NumberedDict,
    /// `"multiprocessing"`.
    pub multiprocessing: Owned,
    /// `"asyncio"`.
    pub asyncio: Owned,
}

static MODULES: OnceLock<Modules> = OnceLock::new();

/// Sets `sys.modules` and the names. Later calls change nothing.
pub fn set_modules(modules: Modules) {
    if MODULES.set(modules).is_ok() {
        first_reads::begin();
    }
}

/// A module that logspool uses only if the program has imported it.
#[derive(Clone, Copy)]
pub enum Loaded {
    /// The module `multiprocessing`.
    Multiprocessing,
    /// The module `asyncio`.
    Asyncio,
}

/// For each module the number of the change of `sys.modules` after which it was found missing. No dict has the number 0.
static MISSING: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Returns the module, if the program has imported it.
pub fn loaded_module(py: Python<'_>, which: Loaded) -> Option<Owned> {
    let known = MODULES.get()?;
    let version = known.modules.now();
    if version == Some(MISSING[which as usize].load(Relaxed)) {
        return None;
    }
    let name = match which {
        Loaded::Multiprocessing => &known.multiprocessing,
        Loaded::Asyncio => &known.asyncio,
    };
    let turn = first_reads::turn(py);
    // SAFETY: `sys.modules` is a dict. The borrowed module becomes an own reference before any Python code runs.
    let module = unsafe {
        let module = ffi::PyDict_GetItemWithError(known.modules.object().as_ptr(), name.as_ptr());
        Borrowed::from_ptr_or_opt(py, module).map(|module| Owned::of(&module))
    };
    drop(turn);
    let module = module.filter(|module| !module.bind(py).is_none());
    if module.is_none() {
        object::clear_error(py);
        MISSING[which as usize].store(version.unwrap_or(0), Relaxed);
    }
    module
}

/// Returns the value; `None` if an `Exception` was raised. Where this is used, stock logging ignores every `Exception`,
/// but no other error.
///
/// # Errors
///
/// Only [`Failure::Raised`].
pub fn if_any(py: Python<'_>, found: Option<Owned>) -> Result<Option<Owned>, Failure> {
    failure::unless_stock(found.ok_or_else(|| Failure::of_error(py)))
}

/// Returns the module `asyncio` and the loop that runs in the calling thread.
///
/// # Errors
///
/// An exception was raised that no handler catches.
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
/// An exception was raised that no handler catches.
pub fn has_running_loop(py: Python<'_>) -> Result<bool, Failure> {
    Ok(running_loop(py)?.is_some())
}
