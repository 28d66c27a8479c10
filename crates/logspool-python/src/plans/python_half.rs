//! The Python half of planning: what `python/logspool/_adopt.py` offers, and the lock under which it runs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving::Stay;
use crate::interpreter::object::{ErrorKept, Owned, WeakReference};
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

/// What `set_python_half` remembers.
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
///
/// # Errors
///
/// The object cannot be referred to weakly.
pub fn weak_reference(object: &Bound<'_, PyAny>) -> PyResult<WeakReference> {
    let forget = HALF.get().map(|half| half.forget.bind(object.py()));
    WeakReference::new(object, forget)
}

/// Runs what may raise beside the error that is set, which a logging call must not lose.
///
/// # Errors
///
/// As `act`.
pub fn aside<T>(py: Python<'_>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let kept = ErrorKept::take(py);
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
    aside(py, || Ok(half.lock.bind(py).call_method0("release")?))?;
    result
}

/// Classes of logspool's own handlers, which queue also without `install()`.
static OWN_CLASSES: OnceLock<Owned> = OnceLock::new();

/// Remembers them: a tuple of classes.
pub fn set_own_classes(classes: Owned) {
    let _ = OWN_CLASSES.set(classes);
}

/// Whether the handler queues by itself, without `install()`.
pub fn stands_alone(handler: &Bound<'_, PyAny>) -> bool {
    OWN_CLASSES.get().is_some_and(|classes| handler.is_instance(&classes.bind(handler.py())).unwrap_or(false))
}

/// `logging.LogRecord`, once connected.
pub fn record_class() -> Option<&'static Py<PyAny>> {
    HALF.get().map(|half| &half.record_class)
}

/// Runs `act` under the planning lock.
///
/// # Errors
///
/// `Stock`: it raised an `Exception`, or the interpreter ends.
pub fn locked<T>(py: Python<'_>, act: impl FnOnce(&PythonHalf) -> PyResult<T>) -> Result<T, Failure> {
    let half = HALF.get().ok_or(Failure::Stock)?;
    let _stay = Stay::new().ok_or(Failure::Stock)?;
    aside(py, || under_lock(half, py, || Ok(act(half)?)))
}

/// Longest chain of parents that is followed; a longer one is a loop.
pub const MOST_PARENTS: usize = 200;
