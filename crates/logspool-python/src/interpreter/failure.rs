//! How a call that logspool cannot finish ends: by stock logging, or with the Python error that is set.

use pyo3::ffi;
use pyo3::prelude::*;

/// Why no message was made.
pub enum Failure {
    /// Stock logging shall do this call from its start: it reports, encodes or converts as nobody else.
    Stock,
    /// A Python exception that no handler would have caught, or that a signal's handler raised in a wait, is set.
    Raised,
}

impl Failure {
    /// What a signal's handler raised while logspool waited: it gets out of the call, as of a wait of Python's.
    pub fn interrupted(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::Raised
    }
}

impl From<PyErr> for Failure {
    /// As [`failure`].
    fn from(error: PyErr) -> Self {
        // SAFETY: who met an exception inside a logging call is attached.
        unsafe {
            error.restore(Python::assume_attached());
            failure()
        }
    }
}

/// Sorts the exception that is set: what a handler would have reported is left to stock logging.
///
/// # Safety
///
/// Attached, and an exception is set.
pub unsafe fn failure() -> Failure {
    // SAFETY: attached.
    unsafe {
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) != 0 {
            ffi::PyErr_Clear();
            Failure::Stock
        } else {
            Failure::Raised
        }
    }
}

/// What was found; `None` where that is stock logging's.
///
/// # Errors
///
/// [`Failure::Raised`] only.
pub fn unless_stock<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Stock) => Ok(None),
        Err(Failure::Raised) => Err(Failure::Raised),
    }
}

/// Whether a barrier was passed. Where not, its error is set.
///
/// # Safety
///
/// Attached.
pub unsafe fn passed<T>(barrier: PyResult<T>) -> bool {
    // SAFETY: attached, as the caller says.
    barrier.map_err(|error| error.restore(unsafe { Python::assume_attached() })).is_ok()
}
