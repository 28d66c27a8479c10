//! The lock of `_locks.guard()`: a `threading.RLock` that tools which exchange locks do not find.
//!
//! eventlet replaces each `RLock` of a process, reports those that it cannot replace, and finds them by the garbage
//! collector. Native code and Python code must share one lock, so these locks stay as they are.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::reentrant_lock;

/// A reentrant lock.
#[pyclass(frozen, weakref, module = "logspool._native")]
pub struct Guard {
    lock: Py<PyAny>,
}

#[pymethods]
impl Guard {
    /// A guard around a lock that nothing else uses.
    #[new]
    fn new(lock: Bound<'_, PyAny>) -> PyResult<Self> {
        // SAFETY: a live object of an attached thread that is in the collector's list. A lock refers to no object but
        // its class, which is never freed, so the collector needs not know it.
        unsafe {
            if ffi::PyObject_GC_IsTracked(lock.as_ptr()) == 1 && lock.get_type().module()? == "_thread" {
                ffi::PyObject_GC_UnTrack(lock.as_ptr().cast());
            }
        }
        Ok(Self { lock: lock.unbind() })
    }

    /// Acquire the lock, as `threading.RLock` does.
    #[pyo3(signature = (blocking = true, timeout = -1.0), text_signature = "($self, blocking=True, timeout=-1.0)")]
    fn acquire<'py>(&self, py: Python<'py>, blocking: bool, timeout: f64) -> PyResult<Bound<'py, PyAny>> {
        self.lock.bind(py).call_method1("acquire", (blocking, timeout))
    }

    /// Release the lock.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.bind(py).call_method0("release").map(drop)
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let taken = reentrant_lock::acquire(self.lock.bind_borrowed(py));
        taken.ok_or_else(|| PyErr::take(py).unwrap_or_else(|| PyRuntimeError::new_err("cannot acquire a lock")))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        reentrant_lock::release(self.lock.bind_borrowed(py));
    }

    /// Make the lock free in a forked child.
    fn _at_fork_reinit(&self, py: Python<'_>) -> PyResult<()> {
        self.lock.bind(py).call_method0("_at_fork_reinit").map(drop)
    }
}
