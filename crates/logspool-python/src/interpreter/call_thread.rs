//! The thread that a record shows: its number and its name.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). The lookups are those of `LogRecord.__init__`. gevent and eventlet
//! replace functions of `threading`, and a greenlet then shows a number and a name of its own. Their functions are called
//! in the call, before anything is queued.

#[cfg(not(Py_GIL_DISABLED))]
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::change_number::NumberedDict;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::interpreter::thread;

/// The objects that stock logging reads at each call, as they were when `install()` was called.
pub struct ThreadSources {
    /// `threading._active`.
    pub active_threads: NumberedDict,
    /// `threading.current_thread`.
    pub current_thread: Owned,
    /// The property `threading.Thread.name`.
    pub thread_name: Owned,
}

static SOURCES: OnceLock<ThreadSources> = OnceLock::new();

/// Sets the sources. Later calls change nothing.
pub fn set_sources(sources: ThreadSources) {
    let _ = SOURCES.set(sources);
}

/// Functions of `threading`, of which a library has replaced at least one.
pub struct ReplacedFunctions {
    /// `threading.get_ident`
    pub get_ident: Owned,
    /// `threading.current_thread`
    pub current_thread: Owned,
}

static REPLACED: Mutex<Option<Arc<ReplacedFunctions>>> = Mutex::new(None);

/// True if `REPLACED` has functions. This atomic is outside the crate's `queue` module: it is set with the facts that
/// are the same for all loggers, and a call that uses older facts takes the stock path.
static IS_REPLACED: AtomicBool = AtomicBool::new(false);

/// Sets the functions that the program has now; `None` if they are those of the standard library.
pub fn set_replaced(functions: Option<ReplacedFunctions>) {
    let functions = functions.map(Arc::new);
    IS_REPLACED.store(functions.is_some(), Relaxed);
    let old = std::mem::replace(&mut *REPLACED.lock().unwrap_or_else(PoisonError::into_inner), functions);
    // Dropped after the lock is released.
    drop(old);
}

/// The calling thread, or the greenlet that runs as one.
pub struct ThreadContext {
    ident: u64,
    replaced: Option<Arc<ReplacedFunctions>>,
}

impl ThreadContext {
    /// The thread of the running call.
    ///
    /// # Errors
    ///
    /// A function of the program raised; [`Failure::Stock`] if it returned no number.
    #[inline]
    pub fn of_call(py: Python<'_>) -> Result<Self, Failure> {
        if IS_REPLACED.load(Relaxed) {
            Self::replaced(py)
        } else {
            Ok(Self { ident: thread::ident() as u64, replaced: None })
        }
    }

    #[cold]
    fn replaced(py: Python<'_>) -> Result<Self, Failure> {
        let replaced = REPLACED.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(Failure::Stock)?;
        let ident = leaving::call(replaced.get_ident.bind(py)).ok_or_else(|| Failure::of_error(py))?;
        let ident = ident.bind(py).extract::<u64>().map_err(|_| Failure::Stock)?;
        Ok(Self { ident, replaced: Some(replaced) })
    }

    /// The number of the thread.
    #[inline]
    pub fn ident(&self) -> u64 {
        self.ident
    }

    /// The name of the thread.
    ///
    /// # Errors
    ///
    /// A function of the program raised, or there is not enough memory.
    #[inline]
    pub fn name(&self, py: Python<'_>) -> Result<Owned, Failure> {
        let sources = SOURCES.get().ok_or(Failure::Stock)?;
        let call = |function: &Owned| leaving::call(function.bind(py)).ok_or_else(|| Failure::of_error(py));
        let thread = match &self.replaced {
            Some(replaced) => call(&replaced.current_thread)?,
            None => match active_thread(py, sources, self.ident)? {
                Some(thread) => thread,
                // Python did not start this thread. `current_thread()` makes a dummy thread object, as in stock logging.
                None => call(&sources.current_thread)?,
            },
        };
        name_of(thread.bind(py), sources)
    }
}

/// The name of an object that `threading.current_thread` returns.
fn name_of(thread: Object<'_, '_>, sources: &ThreadSources) -> Result<Owned, Failure> {
    let py = thread.py();
    // If the property `Thread.name` is unmodified, it reads `_name`.
    let name = if object::of_class(thread, names().name.bind(py)) == sources.thread_name.as_ptr() {
        // SAFETY: live objects of an attached thread; the result is a new reference or null with an error set.
        unsafe { Owned::steal(ffi::PyObject_GenericGetAttr(thread.as_ptr(), names().private_name.as_ptr())) }
    } else {
        leaving::attribute(thread, &names().name)
    };
    name.ok_or_else(|| Failure::of_error(py))
}

/// The object of a thread in `threading._active`.
fn active_thread(py: Python<'_>, sources: &ThreadSources, ident: u64) -> Result<Option<Owned>, Failure> {
    let active = sources.active_threads.object().as_ptr();
    #[cfg(not(Py_GIL_DISABLED))]
    if let Ok((seen, thread)) = FOUND_THREAD.try_with(Cell::get)
        && sources.active_threads.now() == Some(seen)
    {
        // SAFETY: the dict has not changed since the thread was found in it, so it keeps the object alive.
        return Ok(
            unsafe { Borrowed::from_ptr_or_opt(py, thread as *mut ffi::PyObject) }.map(|found| Owned::of(&found))
        );
    }
    // SAFETY: the token shows that the thread is attached. `_active` is an exact dict with int keys. The borrowed
    // reference that the lookup returns becomes an owned one before any Python code runs.
    let thread = unsafe {
        let key = Owned::steal(ffi::PyLong_FromUnsignedLongLong(ident)).ok_or(Failure::Stock)?;
        let thread = ffi::PyDict_GetItemWithError(active, key.as_ptr());
        Borrowed::from_ptr_or_opt(py, thread).map(|thread| Owned::of(&thread))
    };
    #[cfg(not(Py_GIL_DISABLED))]
    if let (Some(thread), Some(version)) = (&thread, sources.active_threads.now()) {
        let _ = FOUND_THREAD.try_with(|found| found.set((version, thread.as_ptr() as usize)));
    }
    Ok(thread)
}

#[cfg(not(Py_GIL_DISABLED))]
thread_local! {
    /// The object of this thread, as an address, and the number of the change of `threading._active` after which it was
    /// found there. No dict has the number 0.
    static FOUND_THREAD: Cell<(u64, usize)> = const { Cell::new((0, 0)) };
}
