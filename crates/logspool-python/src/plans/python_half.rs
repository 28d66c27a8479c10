//! The Python half of planning: what `python/logspool/_adopt.py` offers, and the lock under which it runs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving::Stay;
use crate::interpreter::object::{ErrorKept, Owned};
use crate::plans::environment;

/// What `python/logspool/_adopt.py` offers.
pub struct PythonHalf {
    /// `describe(handler) -> str | Adoption`
    pub describe: Py<PyAny>,
    /// `describe_format(handler) -> Format`
    pub describe_format: Py<PyAny>,
    /// `classify_logger(cls) -> str`: why calls of its loggers must stay stock, or "".
    pub classify_logger: Py<PyAny>,
    /// `open_streams(logger, level)`
    pub open_streams: Py<PyAny>,
    /// `logging_globals() -> LoggingGlobals`
    pub logging_globals: Py<PyAny>,
    /// Names whose presence on a logger instance replaces a method that stock logging calls.
    pub logger_methods: Vec<Py<PyString>>,
    /// A reentrant lock of logspool's own: nothing that takes another lock runs under it.
    pub lock: Py<PyAny>,
    /// `logging.LogRecord`
    pub record_class: Py<PyAny>,
    /// What weak references call when a logger or handler dies.
    pub forget: Py<PyAny>,
}

pub static HALF: OnceLock<PythonHalf> = OnceLock::new();

/// Remembers the Python half. The first call counts.
pub fn set_python_half(half: PythonHalf) {
    let _ = HALF.set(half);
}

/// Whether `install()` is in force.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Sets whether plans are made.
pub fn set_installed(installed: bool) {
    INSTALLED.store(installed, Relaxed);
    environment::bump();
}

/// Whether plans are made.
pub fn installed() -> bool {
    INSTALLED.load(Relaxed)
}

/// A weak reference that removes plan and state of its object when that dies.
pub fn weak_reference(object: &Bound<'_, PyAny>) -> PyResult<Owned> {
    let forget = HALF.get().map_or(std::ptr::null_mut(), |half| half.forget.as_ptr());
    // SAFETY: a live object; null means no callback.
    unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), forget)) }.ok_or_else(|| PyErr::fetch(object.py()))
}

/// A weak reference without a callback: one per object, shared.
pub fn plain_weak_reference(object: &Bound<'_, PyAny>) -> Option<Owned> {
    // SAFETY: a live object.
    let reference = unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), std::ptr::null_mut())) };
    if reference.is_none() {
        // SAFETY: attached. Not every object can be referred to weakly.
        unsafe { ffi::PyErr_Clear() };
    }
    reference
}

/// Runs what may raise beside the error that is set, which a logging call must not lose.
pub fn aside<T>(act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // SAFETY: attached: called inside logging calls.
    let kept = unsafe { ErrorKept::take() };
    let result = act();
    if let Err(Failure::Raised) = result {
        std::mem::forget(kept);
    }
    result
}

/// Runs what makes plans, one at a time.
///
/// # Errors
///
/// As `act`, or a signal's handler raised while the lock was waited for.
pub fn under_lock<T>(
    half: &PythonHalf,
    py: Python<'_>,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    half.lock.bind(py).call_method0("acquire").map_err(|error| Failure::interrupted(py, error))?;
    then_unlock(half, py, act)
}

pub fn then_unlock<T>(
    half: &PythonHalf,
    py: Python<'_>,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = act();
    aside(|| Ok(half.lock.bind(py).call_method0("release")?))?;
    result
}

/// Classes of logspool's own handlers, which queue also without `install()`.
static OWN_CLASSES: OnceLock<Owned> = OnceLock::new();

/// Remembers them: a tuple of classes.
pub fn set_own_classes(classes: Owned) {
    let _ = OWN_CLASSES.set(classes);
}

/// Whether the handler queues by itself, without `install()`.
///
/// # Safety
///
/// `handler` is live; attached.
pub unsafe fn stands_alone(handler: *mut PyObject) -> bool {
    // SAFETY: a live object and a tuple of classes.
    OWN_CLASSES.get().is_some_and(|classes| unsafe {
        let answer = ffi::PyObject_IsInstance(handler, classes.as_ptr());
        if answer < 0 {
            ffi::PyErr_Clear();
        }
        answer == 1
    })
}

/// `logging.LogRecord`, once connected.
pub fn record_class() -> Option<*mut PyObject> {
    HALF.get().map(|half| half.record_class.as_ptr())
}

/// Runs `act` under the planning lock. `Stock`: it raised an `Exception`, or the interpreter ends.
pub fn locked<T>(act: impl FnOnce(&PythonHalf, Python<'_>) -> PyResult<T>) -> Result<T, Failure> {
    let half = HALF.get().ok_or(Failure::Stock)?;
    let _stay = Stay::new().ok_or(Failure::Stock)?;
    // SAFETY: attached: called inside logging calls.
    let py = unsafe { Python::assume_attached() };
    aside(|| under_lock(half, py, || Ok(act(half, py)?)))
}

pub fn own_reference(object: &Bound<'_, PyAny>) -> Owned {
    // SAFETY: a live object, attached.
    unsafe { Owned::borrow(object.as_ptr()) }
}

/// Longest chain of parents that is followed; a longer one is a loop.
pub const MOST_PARENTS: usize = 200;
