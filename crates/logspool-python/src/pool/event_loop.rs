//! Results on their way to an asyncio event loop, one wake-up of the loop for as many as there are.
//!
//! Only the worker that finds the list empty calls the loop; what others add until the loop comes by goes along. With
//! one call per job, as the standard library does it, the wake-ups cost ten times what the jobs do.

use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::Owned;

/// How a job ended.
pub enum End {
    /// With what it returned.
    Result(Owned),
    /// With what it raised.
    Exception(Owned),
    /// Before it began.
    Cancelled,
}

/// The way to one event loop.
#[pyclass(frozen, module = "logspool._native")]
pub struct EventLoop {
    call_soon_threadsafe: Py<PyAny>,
    /// asyncio futures and what they get.
    waiting: Mutex<Vec<(Owned, End)>>,
}

impl EventLoop {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<(Owned, End)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl EventLoop {
    #[new]
    fn new(call_soon_threadsafe: Py<PyAny>) -> Self {
        Self { call_soon_threadsafe, waiting: Mutex::default() }
    }

    /// End the futures whose results have come. Called in the loop's thread.
    fn drain(&self, py: Python<'_>) {
        let waiting = mem::take(&mut *self.waiting());
        for (future, how) in waiting {
            // SAFETY: a live object, attached.
            let future = unsafe { Bound::from_borrowed_ptr(py, future.as_ptr()) };
            if let Err(error) = end(&future, &how) {
                error.write_unraisable(py, Some(&future));
            }
        }
    }
}

/// `asyncio.get_running_loop`
///
/// # Errors
///
/// What the import raises: it takes longer than that of this package, so it comes with the first job for a loop.
pub fn running(py: Python<'_>) -> PyResult<*mut PyObject> {
    static FUNCTION: OnceLock<Owned> = OnceLock::new();
    if let Some(function) = FUNCTION.get() {
        return Ok(function.as_ptr());
    }
    let function = Owned::of(&py.import("asyncio")?.getattr("get_running_loop")?);
    Ok(FUNCTION.get_or_init(|| function).as_ptr())
}

/// Ends an asyncio future that was not cancelled meanwhile.
fn end(future: &Bound<'_, PyAny>, how: &End) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    // SAFETY: live objects, attached.
    let bound = |value: &Owned| unsafe { Bound::from_borrowed_ptr(py, value.as_ptr()) };
    let set_exception = pyo3::intern!(py, "set_exception");
    match how {
        End::Result(value) => future.call_method1(pyo3::intern!(py, "set_result"), (bound(value),)),
        End::Cancelled => future.call_method0(pyo3::intern!(py, "cancel")),
        // StopIteration is no exception for a coroutine; whoever waits must learn of it all the same.
        End::Exception(value) => future
            .call_method1(set_exception, (bound(value),))
            .or_else(|error| future.call_method1(set_exception, (error.into_value(py),))),
    }
    .map(drop)
}

/// Sends a result to the loop.
///
/// # Safety
///
/// `event_loop` is a live [`EventLoop`]; attached.
pub unsafe fn deliver(py: Python<'_>, event_loop: &Owned, future: Owned, how: End) {
    // SAFETY: as the caller says.
    let object = unsafe { Bound::from_borrowed_ptr(py, event_loop.as_ptr()).cast_into_unchecked::<EventLoop>() };
    let bridge = object.get();
    let first = {
        let mut waiting = bridge.waiting();
        waiting.push((future, how));
        waiting.len() == 1
    };
    if first
        && let Err(error) = object.getattr(pyo3::intern!(py, "drain")).and_then(|drain| {
            // SAFETY: live objects, attached.
            let called = unsafe { leaving::call_with(bridge.call_soon_threadsafe.as_ptr(), drain.as_ptr()) };
            // SAFETY: a new reference or null with an error set.
            unsafe { Owned::steal(called) }.map(drop).ok_or_else(|| PyErr::fetch(py))
        })
    {
        // The loop is closed: nobody waits any more.
        let forgotten = mem::take(&mut *bridge.waiting());
        drop(forgotten);
        error.write_unraisable(py, Some(&object));
    }
}

/// Whether nobody waits for a job's result any more.
///
/// # Safety
///
/// A live asyncio future; attached.
pub unsafe fn is_cancelled(future: &Owned) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        let asked = Owned::steal(leaving::method(future.as_ptr(), names().cancelled.as_ptr()));
        match asked.map(|asked| leaving::is_true(asked.as_ptr())) {
            Some(answer @ 0..) => answer != 0,
            _ => {
                ffi::PyErr_Clear();
                false
            }
        }
    }
}
