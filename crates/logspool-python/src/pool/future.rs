//! `logspool.pool.Future`: a `concurrent.futures.Future` whose parts are native.
//!
//! The type is a subclass of the standard library's class. Its own fields follow the fields of the base class. The
//! attributes that the
//! standard library's functions use (`_condition`, `_state`, `_waiters` and others) are descriptors of the type, and
//! their values are made on demand. So `wait`, `as_completed` and `asyncio.wrap_future` work unchanged, and a future
//! without waiters has no such objects. The fields that hold objects are declared as members of the type, so that
//! CPython's own functions traverse and deallocate them.
//!
//! The state is a [`Promise`](logspool_pool::Promise): a thread that ends a future writes the result first.

mod fields;
mod library;
mod notifying;

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use fields::{FutureFields, OFFSET, fill, object_in};
use logspool_pool::JobState;
use logspool_sys::published::Published;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};

use crate::interpreter::leaving;
use crate::interpreter::object::Owned;
use crate::interpreter::waiting::{self, Deadline};
pub use fields::{FutureHandle, FutureRef, members};
use library::library;
pub use notifying::{add_done_callback, callbacks};
use notifying::{call_back, call_method, notify_cancelled, notify_waiters};

/// Marks the job of a future as started. Returns false if the job was cancelled; the waiters are notified then.
#[inline]
pub fn start(future: FutureRef<'_, '_>) -> bool {
    if future.fields().promise.start() {
        return true;
    }
    notify_cancelled(future);
    false
}

/// Ends a running future with a result.
#[inline]
pub fn finish_with(future: FutureRef<'_, '_>, result: Owned) {
    finish(future, &future.fields().result, result);
}

/// Ends a running future with an exception, an instance of `BaseException`.
pub fn fail_with(future: FutureRef<'_, '_>, exception: Owned) {
    finish(future, &future.fields().exception, exception);
}

/// Stores the result or the exception in its field and ends the future.
#[inline]
fn finish(future: FutureRef<'_, '_>, field: &AtomicPtr<PyObject>, value: Owned) {
    // If the field is full, another thread has called `set_result` or `set_exception` already. The first value counts.
    if fill(field, value).is_ok() && !future.fields().promise.try_finish_unwatched() {
        end(future, JobState::Finished, || ());
    }
}

/// In a forked child: ends a pending future with an exception, without notifying any waiter or callback. Waiters and
/// callbacks belong to the job in the parent. A cancelled future is marked as notified, because the thread that would
/// notify its waiters exists only in the parent.
pub fn fail_after_fork(future: FutureRef<'_, '_>, exception: Owned) {
    let fields = future.fields();
    let ends = match fields.promise.state() {
        JobState::Pending => fill(&fields.exception, exception).is_ok(),
        state => state == JobState::Cancelled,
    };
    if !ends {
        return;
    }
    // The child makes a new condition and a new list of waiters on demand. The old objects are not dropped, because
    // threads of the parent may have been using them.
    fields.condition.store(ptr::null_mut(), Ordering::Relaxed);
    fields.waiters.store(ptr::null_mut(), Ordering::Relaxed);
    fields.promise.end_after_fork();
}

/// Cancels a pending future. Returns false if its job has started.
pub fn cancel(future: FutureRef<'_, '_>) -> bool {
    end(future, JobState::Cancelled, || ());
    state(future).is_cancelled()
}

/// Ends a future and notifies its waiters and callbacks. Returns false, and changes nothing, if the state of the future
/// does not allow that.
fn end(future: FutureRef<'_, '_>, to: JobState, store: impl FnOnce()) -> bool {
    let (py, fields) = (future.py(), future.fields());
    let mut condition: Option<Owned> = None;
    let (ended, callbacks) = loop {
        let locked = fields.promise.lock();
        if condition.is_none()
            && let Some(found) = object_in(py, &fields.condition)
        {
            drop(locked);
            // A thread that adds a waiter holds the condition while it checks the state. Holding the condition here
            // keeps the state from changing during that check.
            call_method(py, &found, c"acquire");
            condition = Some(found);
            continue;
        }
        let may = match to {
            JobState::Cancelled => fields.promise.state() == JobState::Pending,
            _ => !fields.promise.state().is_done(),
        };
        if may {
            store();
        }
        let ended =
            may && (if to == JobState::Cancelled { fields.promise.cancel() } else { fields.promise.finish(&locked) });
        let callbacks = if ended { fields.callbacks.exchange(ptr::null_mut()) } else { ptr::null_mut() };
        // SAFETY: null, or the reference that the field owned until the swap.
        break (ended, unsafe { Owned::steal(callbacks) });
    };
    if let Some(condition) = condition {
        if ended {
            if to == JobState::Finished {
                let failed = !fields.exception.observe().is_null();
                notify_waiters(future, if failed { c"add_exception" } else { c"add_result" });
            }
            call_method(py, &condition, c"notify_all");
        }
        call_method(py, &condition, c"release");
    }
    if let Some(callbacks) = callbacks {
        call_back(future, callbacks.bind(py));
    }
    ended
}

/// Waits for the end of a future. Returns `Ok(false)` if the timeout passes first.
fn wait(future: FutureRef<'_, '_>, timeout: Option<f64>) -> PyResult<bool> {
    let promise = &future.fields().promise;
    if promise.state().is_done() {
        return Ok(true);
    }
    waiting::wait(future.py(), Deadline::after(timeout)?, |slice| promise.wait(Some(slice)))
}

/// The result of a future that has finished already with a result.
#[inline]
pub fn result_at_hand(future: FutureRef<'_, '_>) -> Option<Owned> {
    let fields = future.fields();
    if fields.promise.state() != JobState::Finished || !fields.exception.load(Ordering::Relaxed).is_null() {
        return None;
    }
    // A finished future keeps its result until it is freed.
    object_in(future.py(), &fields.result)
}

/// Waits for the end of a future, then returns the result.
///
/// # Errors
///
/// The exception of the job, with the exception that is being handled as its `__context__`. `TimeoutError` if the
/// timeout passes first. `CancelledError` if the job was cancelled.
pub fn result(future: FutureRef<'_, '_>, timeout: Option<f64>) -> PyResult<Owned> {
    let py = future.py();
    wait_or_raise(future, timeout)?;
    if let Some(exception) = object_in(py, &future.fields().exception) {
        // Sets the exception as a `raise` statement does.
        // SAFETY: a live exception and its class, and `py` shows that the thread is attached.
        unsafe { ffi::PyErr_SetObject(ffi::Py_TYPE(exception.as_ptr()).cast(), exception.as_ptr()) };
        return Err(PyErr::fetch(py));
    }
    Ok(result_at_hand(future).unwrap_or_else(|| Owned::none(py)))
}

/// Waits for the end of a future, then returns the exception or `None`.
///
/// # Errors
///
/// `TimeoutError` if the timeout passes first. `CancelledError` if the job was cancelled.
pub fn exception(future: FutureRef<'_, '_>, timeout: Option<f64>) -> PyResult<Owned> {
    wait_or_raise(future, timeout)?;
    kept_exception(future)
}

/// Waits for the end of a future. Raises `TimeoutError` if the timeout passes first, and `CancelledError` if the job
/// was cancelled.
fn wait_or_raise(future: FutureRef<'_, '_>, timeout: Option<f64>) -> PyResult<()> {
    let py = future.py();
    if !wait(future, timeout)? {
        return Err(raised(py, &library().timed_out));
    }
    match state(future) {
        JobState::Finished => Ok(()),
        _ => Err(raised(py, &library().cancelled)),
    }
}

/// A new exception of this class, without arguments.
fn raised(py: Python<'_>, class: &Owned) -> PyErr {
    class.bind(py).call0().map_or_else(|error| error, PyErr::from_value)
}

/// The state of the job.
#[inline]
pub fn state(future: FutureRef<'_, '_>) -> JobState {
    future.fields().promise.state()
}

/// The standard library's name of a state.
pub fn name(state: JobState) -> &'static str {
    c_name(state).to_str().unwrap_or_default()
}

/// The same as [`name`], as a C string.
pub fn c_name(state: JobState) -> &'static CStr {
    match state {
        JobState::Pending => c"PENDING",
        JobState::Running => c"RUNNING",
        JobState::Cancelled => c"CANCELLED",
        JobState::CancelledAndNotified => c"CANCELLED_AND_NOTIFIED",
        JobState::Finished => c"FINISHED",
    }
}

/// How an executor other than the pool ends a future.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The future ends with a result.
    Result,
    /// The future ends with an exception. The value may also be a class of exceptions.
    Exception,
}

/// Ends a future for an executor other than the pool.
///
/// # Errors
///
/// `InvalidStateError` if the future has ended already.
pub fn set(future: FutureRef<'_, '_>, value: Owned, ending: Ending) -> PyResult<()> {
    let (py, fields) = (future.py(), future.fields());
    let (field, value) = match ending {
        Ending::Result => (&fields.result, value),
        Ending::Exception => (&fields.exception, instance(py, value)?),
    };
    let mut value = Some(value);
    let ended = end(future, JobState::Finished, || {
        value = value.take().and_then(|value| fill(field, value).err());
    });
    if ended {
        return Ok(());
    }
    let message = format!("{}: {}", name(state(future)), future.object().repr()?);
    Err(PyErr::from_value(library().invalid_state.bind(py).call1((message,))?))
}

/// The exception itself, or a new instance if a class was given.
fn instance(py: Python<'_>, exception: Owned) -> PyResult<Owned> {
    // SAFETY: a live object; the check reads only its type.
    if unsafe { ffi::PyExceptionClass_Check(exception.as_ptr()) } == 0 {
        return Ok(exception);
    }
    leaving::call(exception.bind(py)).ok_or_else(|| PyErr::fetch(py))
}

/// The result of `_get_snapshot()`: a tuple (done, cancelled, result, exception).
///
/// # Errors
///
/// No memory.
pub fn snapshot(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    let py = future.py();
    let state = state(future);
    let (result, exception) = (kept_result(future)?, kept_exception(future)?);
    let made = (state.is_done(), state.is_cancelled(), result.bind(py), exception.bind(py)).into_pyobject(py)?;
    Ok(Owned::of(made.as_any()))
}

/// The result, or `None` before the end.
///
/// # Errors
///
/// It never fails. It returns a `Result` only to have the same signature as the functions of the other attributes.
pub fn kept_result(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    Ok(finished(future, &future.fields().result))
}

/// The exception, or `None` before the end.
///
/// # Errors
///
/// It never fails. It returns a `Result` only to have the same signature as the functions of the other attributes.
pub fn kept_exception(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    Ok(finished(future, &future.fields().exception))
}

fn finished(future: FutureRef<'_, '_>, field: &AtomicPtr<PyObject>) -> Owned {
    let py = future.py();
    let found = if state(future) == JobState::Finished { object_in(py, field) } else { None };
    found.unwrap_or_else(|| Owned::none(py))
}

/// The `Condition` of the future, made when first requested.
///
/// # Errors
///
/// The exception of its constructor.
pub fn condition(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    let py = future.py();
    made_on_demand(future, &future.fields().condition, || leaving::call(library().condition.bind(py)))
}

/// The list to which `wait` and `as_completed` of the standard library add their waiters. Made when first requested.
///
/// # Errors
///
/// No memory.
pub fn waiters(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    let py = future.py();
    made_on_demand(future, &future.fields().waiters, || Some(Owned::of(PyList::empty(py).as_any())))
}

fn made_on_demand(
    future: FutureRef<'_, '_>,
    field: &AtomicPtr<PyObject>,
    make: impl FnOnce() -> Option<Owned>,
) -> PyResult<Owned> {
    let py = future.py();
    if let Some(found) = object_in(py, field) {
        return Ok(found);
    }
    let made = make().ok_or_else(|| PyErr::fetch(py))?;
    let locked = future.fields().promise.lock_and_watch();
    let refused = fill(field, made).err();
    drop(locked);
    drop(refused);
    object_in(py, field).ok_or_else(|| PyRuntimeError::new_err("the future is being destroyed"))
}

/// Looks up the objects of the standard library that the type uses. Returns the base class and the size of a future in
/// bytes.
pub fn connect(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, c_int)> {
    let library = library::connect(py)?;
    let base = library.future.bind(py).to_owned();
    let size: usize = base.cast::<PyType>()?.getattr("__basicsize__")?.extract()?;
    let offset = size.next_multiple_of(align_of::<FutureFields>());
    OFFSET.store(offset, Ordering::Relaxed);
    Ok((base, c_int::try_from(offset + size_of::<FutureFields>())?))
}

/// Ends the future of a job that will not run: with `exception`, or as cancelled if there is none.
pub fn give_up(future: FutureRef<'_, '_>, exception: Option<&Bound<'_, PyAny>>) {
    let Some(exception) = exception else {
        if cancel(future) {
            // Starting a cancelled future notifies its waiters. No worker will do this, because the job never runs.
            start(future);
        }
        return;
    };
    if start(future) {
        fail_with(future, Owned::of(exception));
    }
}
