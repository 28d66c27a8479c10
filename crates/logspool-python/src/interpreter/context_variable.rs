//! Values of context variables.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::Failure;
use crate::interpreter::object::Owned;

/// The value of a context variable in the current context. Without a value there, `default`, or if that is `None`, the
/// default of the variable. Runs no user Python code.
///
/// # Errors
///
/// [`Failure::Stock`] if there is neither a value nor a default.
pub fn value(py: Python<'_>, variable: &Owned, default: Option<&Owned>) -> Result<Owned, Failure> {
    let default = default.map_or(std::ptr::null_mut(), Owned::as_ptr);
    let mut value = std::ptr::null_mut();
    // SAFETY: a live context variable and a live default or null, and room for a new reference; the thread is attached.
    let value = unsafe {
        if ffi::PyContextVar_Get(variable.as_ptr(), default, &mut value) != 0 {
            return Err(Failure::of_error(py));
        }
        Owned::steal(value)
    };
    value.ok_or(Failure::Stock)
}
