//! Whether `logger.log` is the native method, which the stock methods of a `LoggerAdapter` would call.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::names;
use crate::interpreter::object;

/// The address of the native `Logger.log`, for comparisons only.
static NATIVE_LOG: AtomicPtr<PyObject> = AtomicPtr::new(ptr::null_mut());

/// Sets the native `Logger.log`, which is never freed.
pub fn set(method: &Bound<'_, PyAny>) {
    NATIVE_LOG.store(method.as_ptr(), Relaxed);
}

/// True if `logger.log` is the native method: neither a subclass nor the instance overrides it.
///
/// # Errors
///
/// The logger has no `__dict__`.
pub fn is_method_of(logger: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name = names::bound(logger.py(), &names::names().log);
    let of_class = object::of_class(logger.as_borrowed(), names::names().log.bind(logger.py()));
    Ok(!of_class.is_null()
        && of_class == NATIVE_LOG.load(Relaxed)
        && !logger.getattr("__dict__")?.cast::<PyDict>()?.contains(name)?)
}
