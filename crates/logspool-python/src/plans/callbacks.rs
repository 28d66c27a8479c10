//! The functions of `python/logspool/adoption/` that planning calls, and the lock under which they run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving::{self, EndDelay};
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned, SavedError, WeakReference};
use crate::plans::environment;

/// The functions of `python/logspool/adoption/`, with related objects.
pub struct PlanningCallbacks {
    /// The function `describe(handler) -> str | Adoption`.
    pub describe: Py<PyAny>,
    /// The function `describe_format(handler) -> Format`.
    pub describe_format: Py<PyAny>,
    /// The function `classify_logger(cls) -> tuple[str, str]`. It returns why calls of loggers of this class leave the
    /// native path: the method that is not the stock one, and the reason in words.
    pub classify_logger: Py<PyAny>,
    /// The function `name_of_filter(filter) -> str | tuple | None`.
    pub name_of_filter: Py<PyAny>,
    /// The function `describe_factory(factory) -> tuple | None`.
    pub describe_factory: Py<PyAny>,
    /// The function `describe_record_maker(cls) -> tuple | None`.
    pub describe_record_maker: Py<PyAny>,
    /// The function `open_streams(logger, level)`.
    pub open_streams: Py<PyAny>,
    /// The function `logging_globals() -> LoggingGlobals`.
    pub logging_globals: Py<PyAny>,
    /// Names of the logger methods that stock logging calls. An attribute of such a name on a logger instance overrides
    /// the method.
    pub logger_methods: Vec<Py<PyString>>,
    /// The planning lock, a reentrant lock that only logspool uses. Code that takes another lock must not run under it.
    pub lock: Py<PyAny>,
    /// The class `logging.LogRecord`.
    pub record_class: Py<PyAny>,
    /// The callback of weak references to loggers and handlers. CPython calls it when the object is freed.
    pub forget: Py<PyAny>,
}

/// The functions of planning; empty until [`set_callbacks`].
pub static CALLBACKS: OnceLock<PlanningCallbacks> = OnceLock::new();

/// Sets the functions of planning. Later calls change nothing.
pub fn set_callbacks(callbacks: PlanningCallbacks) {
    let _ = CALLBACKS.set(callbacks);
}

/// True while `install()` is in force.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Sets whether plans are made, and makes all existing ones stale.
pub fn set_installed(installed: bool) {
    INSTALLED.store(installed, Relaxed);
    environment::make_all_stale();
}

/// True if plans are made.
pub fn installed() -> bool {
    INSTALLED.load(Relaxed)
}

/// A weak reference to a logger or a handler. Its callback removes the plan or the state when the object is freed.
///
/// # Errors
///
/// The object does not support weak references.
pub fn weak_reference(object: &Bound<'_, PyAny>) -> PyResult<WeakReference> {
    let forget = CALLBACKS.get().map(|callbacks| callbacks.forget.bind(object.py()));
    WeakReference::new(object, forget)
}

/// Runs code that may raise an error. Then restores the error that was set before, because a logging call must not lose
/// it.
///
/// # Errors
///
/// The errors of `act`.
pub fn with_saved_error<T>(py: Python<'_>, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let kept = SavedError::take(py);
    let result = act();
    if let Err(Failure::Raised) = result {
        std::mem::forget(kept);
    }
    result
}

/// Runs code that makes plans, one thread at a time.
///
/// # Errors
///
/// The errors of [`then_unlock`], and the error of a signal handler that raised while this thread waited for the lock.
pub fn under_lock<T>(
    callbacks: &PlanningCallbacks,
    py: Python<'_>,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    callbacks.lock.bind(py).call_method0("acquire").map_err(|error| Failure::raised(py, error))?;
    then_unlock(callbacks, py, act)
}

/// Like [`under_lock`], for a thread that has the lock.
///
/// # Errors
///
/// The errors of `act`. [`Failure::Stock`] if another thread has begun to end the interpreter: no plan is made then.
/// Threads that wait for the lock would otherwise delay the end one after the other.
pub fn then_unlock<T>(
    callbacks: &PlanningCallbacks,
    py: Python<'_>,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let result = if leaving::other_thread_ends() { Err(Failure::Stock) } else { act() };
    with_saved_error(py, || Ok(callbacks.lock.bind(py).call_method0("release")?))?;
    result
}

/// The class `logspool.ThreadHandler`, with its functions `handle` and `emit`.
static THREAD_HANDLER: OnceLock<[Owned; 3]> = OnceLock::new();

/// Sets the class `logspool.ThreadHandler`. Later calls change nothing.
pub fn set_thread_handler(class: &Bound<'_, PyType>) -> PyResult<()> {
    let [handle, emit] = ["handle", "emit"].map(|name| class.getattr(name));
    let _ = THREAD_HANDLER.set([Owned::of(class), Owned::of(&handle?), Owned::of(&emit?)]);
    Ok(())
}

/// True if a handler is a `logspool.ThreadHandler`, of this class itself, whose methods the program has not replaced.
pub fn is_thread_handler(handler: Object<'_, '_>) -> bool {
    let Some([class, handle, emit]) = THREAD_HANDLER.get() else { return false };
    let py = handler.py();
    object::class_of(handler).cast() == class.as_ptr()
        && object::of_class(handler, names().handle.bind(py)) == handle.as_ptr()
        && object::of_class(handler, names().emit.bind(py)) == emit.as_ptr()
}

/// Classes of logspool's own handlers, which use the queue even without `install()`.
static OWN_CLASSES: OnceLock<Owned> = OnceLock::new();

/// Sets the classes of logspool's own handlers, as a tuple.
pub fn set_own_classes(classes: Owned) {
    let _ = OWN_CLASSES.set(classes);
}

/// True if the handler is one of logspool's own, which use the queue even without `install()`.
pub fn stands_alone(handler: &Bound<'_, PyAny>) -> bool {
    OWN_CLASSES.get().is_some_and(|classes| handler.is_instance(&classes.bind(handler.py())).unwrap_or(false))
}

/// The class `logging.LogRecord`; `None` until [`set_callbacks`].
pub fn record_class() -> Option<&'static Py<PyAny>> {
    CALLBACKS.get().map(|callbacks| &callbacks.record_class)
}

/// Runs `act` under the planning lock.
///
/// # Errors
///
/// [`Failure::Stock`] if `act` raised an `Exception`, or if the interpreter is ending.
pub fn locked<T>(py: Python<'_>, act: impl FnOnce(&PlanningCallbacks) -> PyResult<T>) -> Result<T, Failure> {
    let callbacks = CALLBACKS.get().ok_or(Failure::Stock)?;
    let _stay = EndDelay::new().ok_or(Failure::Stock)?;
    with_saved_error(py, || under_lock(callbacks, py, || Ok(act(callbacks)?)))
}

/// Maximum number of parents that are followed. A longer chain is treated as a loop.
pub const MAX_PARENTS: usize = 200;
