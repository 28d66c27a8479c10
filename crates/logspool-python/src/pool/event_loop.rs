//! Results on their way to an asyncio event loop, one wake-up of the loop for as many as there are.
//!
//! Only the worker that finds the list empty calls the loop; what others add until the loop comes by goes along. With
//! one call per job, as the standard library does it, the wake-ups cost ten times what the jobs do.

use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

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
            let future = future.bind(py);
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
pub fn running(py: Python<'_>) -> PyResult<&'static Owned> {
    static FUNCTION: OnceLock<Owned> = OnceLock::new();
    if let Some(function) = FUNCTION.get() {
        return Ok(function);
    }
    let function = Owned::of(&py.import("asyncio")?.getattr("get_running_loop")?);
    Ok(FUNCTION.get_or_init(|| function))
}

/// Ends an asyncio future that was not cancelled meanwhile.
fn end(future: &Bound<'_, PyAny>, how: &End) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    let set_exception = pyo3::intern!(py, "set_exception");
    match how {
        End::Result(value) => future.call_method1(pyo3::intern!(py, "set_result"), (value.bind(py),)),
        End::Cancelled => future.call_method0(pyo3::intern!(py, "cancel")),
        // StopIteration is no exception for a coroutine; whoever waits must learn of it all the same.
        End::Exception(value) => future
            .call_method1(set_exception, (value.bind(py),))
            .or_else(|error| future.call_method1(set_exception, (error.into_value(py),))),
    }
    .map(drop)
}

/// Sends a result to the loop; `event_loop` is an [`EventLoop`].
pub fn deliver(py: Python<'_>, event_loop: &Owned, future: Owned, how: End) {
    let object = event_loop.bind(py);
    let Ok(object) = object.cast::<EventLoop>() else { return };
    let bridge = object.get();
    let first = {
        let mut waiting = bridge.waiting();
        waiting.push((future, how));
        waiting.len() == 1
    };
    if first
        && let Err(error) = object.getattr(pyo3::intern!(py, "drain")).and_then(|drain| {
            let called = leaving::call_with(bridge.call_soon_threadsafe.bind_borrowed(py), drain.as_borrowed());
            called.map(drop).ok_or_else(|| PyErr::fetch(py))
        })
    {
        // The loop is closed: nobody waits any more.
        let forgotten = mem::take(&mut *bridge.waiting());
        drop(forgotten);
        error.write_unraisable(py, Some(&object));
    }
}

/// Whether nobody waits for a job's result any more: its asyncio future is cancelled.
pub fn is_cancelled(py: Python<'_>, future: &Owned) -> bool {
    let asked = leaving::method(future.bind(py), &names().cancelled);
    let answer = asked.and_then(|asked| leaving::is_true(asked.bind(py)));
    if answer.is_none() {
        object::clear_error(py);
    }
    answer.unwrap_or(false)
}
