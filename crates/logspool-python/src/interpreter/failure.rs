//! The two ways to end a call that logspool cannot finish: in stock logging, or with the Python exception that is set.

use pyo3::ffi;
use pyo3::prelude::*;

/// The reason why a call is not finished natively.
pub enum Failure {
    /// Stock logging has to do the whole call, so that it reports, encodes or converts as it does without logspool.
    Stock,
    /// A Python exception is set. Either no handler would have caught it, or a signal handler raised it during a wait.
    Raised,
}

impl Failure {
    /// Classifies the exception that is set. An `Exception` is cleared: a handler would have reported it, so stock
    /// logging does the call.
    pub fn of_error(_attached: Python<'_>) -> Self {
        // SAFETY: the token shows that the thread is attached. If no exception is set, nothing matches.
        unsafe {
            if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) != 0 {
                ffi::PyErr_Clear();
                Self::Stock
            } else {
                Self::Raised
            }
        }
    }

    /// Classifies an exception like [`Self::of_error`].
    pub fn of(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::of_error(py)
    }

    /// Sets an exception that leaves the logging call: one that a signal handler raised while logspool waited, or that
    /// Python code raised where stock logging catches nothing.
    pub fn raised(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::Raised
    }
}

impl From<PyErr> for Failure {
    /// Like [`Failure::of`].
    fn from(error: PyErr) -> Self {
        // SAFETY: `?` converts a `PyErr` to a `Failure` only in calls from the interpreter, whose threads are attached.
        Self::of(unsafe { Python::assume_attached() }, error)
    }
}

/// Returns the value, or `None` if stock logging has to do the call.
///
/// # Errors
///
/// Only [`Failure::Raised`].
pub fn unless_stock<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Stock) => Ok(None),
        Err(Failure::Raised) => Err(Failure::Raised),
    }
}

/// True if the barrier succeeded. Otherwise the exception of the barrier is set.
pub fn passed<T>(py: Python<'_>, barrier: PyResult<T>) -> bool {
    barrier.map_err(|error| error.restore(py)).is_ok()
}
