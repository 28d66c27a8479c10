//! How a call that logspool cannot finish ends: by stock logging, or with the Python error that is set.

use pyo3::ffi;
use pyo3::prelude::*;

/// Why a call is not done natively.
pub enum Failure {
    /// Stock logging does this call from its start: it reports, encodes or converts as nobody else.
    Stock,
    /// A Python exception that no handler would have caught, or that a signal's handler raised in a wait, is set.
    Raised,
}

impl Failure {
    /// Sorts the exception that is set: an `Exception`, which a handler would have reported, is left to stock logging.
    pub fn of_error(_attached: Python<'_>) -> Self {
        // SAFETY: the token shows that the thread is attached; an error is set or nothing is matched.
        unsafe {
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) != 0 {
                ffi::PyErr_Clear();
                Self::Stock
            } else {
                Self::Raised
            }
        }
    }

    /// Sorts an exception, as [`Self::of_error`].
    pub fn of(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::of_error(py)
    }

    /// An error that a signal's handler raised while logspool waited: it gets out of the call, as of a wait of Python's.
    pub fn interrupted(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::Raised
    }
}

impl From<PyErr> for Failure {
    /// As [`Failure::of`].
    fn from(error: PyErr) -> Self {
        // SAFETY: `?` makes a `Failure` of a `PyErr` only inside calls of the interpreter, whose threads are attached.
        Self::of(unsafe { Python::assume_attached() }, error)
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
pub fn passed<T>(py: Python<'_>, barrier: PyResult<T>) -> bool {
    barrier.map_err(|error| error.restore(py)).is_ok()
}
