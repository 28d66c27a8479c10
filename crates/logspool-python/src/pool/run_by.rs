//! The thread that runs a job, and the exceptions that only this thread can raise.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::interpreter::object::{Object, Owned};

/// The thread that runs a job.
pub enum RunBy<'a> {
    /// A worker of the pool.
    Worker,
    /// The thread that submitted the job. It raises the error that is stored here, such as `KeyboardInterrupt`.
    Caller(&'a mut Option<PyErr>),
}

impl RunBy<'_> {
    /// If a caller runs the job and the error is no `Exception`, stores the error for the caller to raise. Otherwise
    /// returns the error.
    pub fn keep(&mut self, py: Python<'_>, error: PyErr) -> Result<(), PyErr> {
        match self {
            Self::Caller(raised) if !error.is_instance_of::<PyException>(py) => {
                **raised = Some(error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Reports the current error of `function`, for which there is no other receiver.
    pub fn report_unraisable(&mut self, function: Object<'_, '_>) {
        let py = function.py();
        if let Err(error) = self.keep(py, PyErr::fetch(py)) {
            error.write_unraisable(py, Some(&function));
        }
    }

    /// Reports the exception of a signal handler that ran during a wait. If a caller runs the job, the caller raises
    /// the exception, whatever its class is.
    pub fn interrupted(&mut self, py: Python<'_>, error: PyErr) {
        match self {
            Self::Caller(raised) => **raised = Some(error),
            Self::Worker => error.write_unraisable(py, None),
        }
    }
}

/// Takes the current exception, with its traceback.
pub fn take_exception(py: Python<'_>) -> Owned {
    Owned::of(PyErr::fetch(py).into_value(py).bind(py).as_any())
}

/// The exception as an error that can be raised.
pub fn error_of(py: Python<'_>, exception: &Owned) -> PyErr {
    PyErr::from_value(exception.bind(py).to_owned())
}
