//! Delivers results to an asyncio event loop, which is woken once for all waiting results.
//!
//! Only a worker that finds the list empty calls the loop. Results added before the loop runs are delivered in the same
//! wake-up. With one call per job, as in the standard library, the wake-ups cost ten times as much as the jobs.

use std::mem;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;

use crate::interpreter::leaving;
use crate::interpreter::names::{self, names};
use crate::interpreter::object::{self, Owned};

/// How a job ended.
pub enum JobEnd {
    /// The job returned this value.
    Result(Owned),
    /// The job raised this exception.
    Exception(Owned),
    /// The job was cancelled before it started.
    Cancelled,
}

/// Delivers results to one event loop.
#[pyclass(frozen, module = "logspool._native")]
pub struct EventLoop {
    call_soon_threadsafe: Py<PyAny>,
    /// The asyncio futures to end, each with the outcome of its job.
    waiting: Mutex<Vec<(Owned, JobEnd)>>,
}

impl EventLoop {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<(Owned, JobEnd)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl EventLoop {
    #[new]
    fn new(call_soon_threadsafe: Py<PyAny>) -> Self {
        Self { call_soon_threadsafe, waiting: Mutex::default() }
    }

    /// End the futures whose results have arrived. Called in the thread of the event loop.
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

/// The function `asyncio.get_running_loop`. The first call imports asyncio, because importing asyncio takes longer than
/// importing this package.
///
/// # Errors
///
/// The exception of the import.
pub fn running(py: Python<'_>) -> PyResult<&'static Owned> {
    static FUNCTION: OnceLock<Owned> = OnceLock::new();
    if let Some(function) = FUNCTION.get() {
        return Ok(function);
    }
    let function = Owned::of(&py.import("asyncio")?.getattr("get_running_loop")?);
    Ok(FUNCTION.get_or_init(|| function))
}

/// Ends an asyncio future that is not done yet.
fn end(future: &Bound<'_, PyAny>, how: &JobEnd) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(names::bound(py, &names().done))?.is_truthy()? {
        return Ok(());
    }
    let set_exception = names::bound(py, &names().set_exception);
    match how {
        JobEnd::Result(value) => future.call_method1(names::bound(py, &names().set_result), (value.bind(py),)),
        JobEnd::Cancelled => future.call_method0(names::bound(py, &names().cancel)),
        // asyncio futures refuse `StopIteration`. The future then gets the error of the refusal, so that the coroutine
        // that awaits it does not wait for ever.
        JobEnd::Exception(value) => future
            .call_method1(set_exception, (value.bind(py),))
            .or_else(|error| future.call_method1(set_exception, (error.into_value(py),))),
    }
    .map(drop)
}

/// Sends the outcome of a job to the event loop. `event_loop` is an [`EventLoop`] object.
pub fn deliver(py: Python<'_>, event_loop: &Owned, future: Owned, how: JobEnd) {
    let object = event_loop.bind(py);
    let Ok(object) = object.cast::<EventLoop>() else { return };
    let bridge = object.get();
    let first = {
        let mut waiting = bridge.waiting();
        waiting.push((future, how));
        waiting.len() == 1
    };
    if first
        && let Err(error) = object.getattr(names::bound(py, &names().drain)).and_then(|drain| {
            let called = leaving::call_with(bridge.call_soon_threadsafe.bind_borrowed(py), drain.as_borrowed());
            called.map(drop).ok_or_else(|| PyErr::fetch(py))
        })
    {
        // The event loop is closed, so nothing awaits its futures any more.
        let forgotten = mem::take(&mut *bridge.waiting());
        drop(forgotten);
        error.write_unraisable(py, Some(&object));
    }
}

/// True if the asyncio future of a job is cancelled, so that the job need not run.
pub fn is_cancelled(py: Python<'_>, future: &Owned) -> bool {
    let asked = leaving::method(future.bind(py), &names().cancelled);
    let answer = asked.and_then(|asked| leaving::is_true(asked.bind(py)));
    if answer.is_none() {
        object::clear_error(py);
    }
    answer.unwrap_or(false)
}
