//! Waits for the queues of adopted handlers, and closes their sinks.

use std::sync::OnceLock;
use std::time::Duration;

use logspool::pipeline;
use logspool::sinks::SinkPlace;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;

use super::state::{HandlerState, HandlerVerdict, is_current};
use super::table::{known, take, with_table};
use crate::flushing;
use crate::interpreter::leaving::detached;
use crate::interpreter::object::{self, Owned, SavedError};
use crate::plans::{environment, ids, table, text_stream};

/// Longest wait for the queue of a handler that stops being adopted. Stock logging writes the handler's next line, so
/// the queued lines have to be written first.
///
/// Chosen: the same as the default of `shutdown_timeout`. The wait lasts this long only if the sink is stalled.
pub(super) const SHORT_WAIT: Duration = Duration::from_secs(5);

/// The Python function `_deferring.drain`, once a handler has a deferred formatter.
static DRAIN: OnceLock<Owned> = OnceLock::new();

/// Sets `_deferring.drain`. Later calls change nothing.
pub fn set_drain(function: Owned) {
    let _ = DRAIN.set(function);
}

/// Waits until the records of a handler with a deferred formatter are formatted. The thread that formats does not wait.
///
/// # Errors
///
/// The error of a signal handler that ran during the wait.
pub fn drain_deferred(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    let is_deferred = |state: &HandlerState| match &state.verdict {
        HandlerVerdict::Adopted(adoption) => adoption.deferral.is_some(),
        _ => false,
    };
    let Some(drain) = DRAIN.get() else { return Ok(()) };
    if !known(handler).is_some_and(|state| is_deferred(&state)) {
        return Ok(());
    }
    let _error = SavedError::take(handler.py());
    drain.bind(handler.py()).call1((timeout.as_secs_f64(),)).map(drop)
}

/// The Python function `_rotation.catch_up`.
static CATCH_UP: OnceLock<Owned> = OnceLock::new();

/// Sets `_rotation.catch_up`. Later calls change nothing.
pub fn set_catch_up(function: Owned) {
    let _ = CATCH_UP.set(function);
}

/// Reopens the stream of a handler if its sink has switched to another file.
pub(super) fn call_catch_up(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    call(CATCH_UP.get(), handler).map(drop)
}

/// Calls a function of `_rotation.py`. An `Exception` of the function is ignored: it means that the path cannot be
/// opened, and stock logging raises the same error at its next record. Any other error is returned.
pub(super) fn call<'py>(function: Option<&Owned>, handler: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(function) = function else { return Ok(None) };
    let py = handler.py();
    let answer = {
        let _error = SavedError::take(py);
        function.bind(py).call1((handler,))
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lets the handler's own stream follow a sink that has switched to another file. Call it after a flush.
///
/// # Errors
///
/// An error that is no `Exception`, such as `KeyboardInterrupt`, raised by `_rotation.catch_up`.
pub fn catch_up(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    if known(handler).is_some_and(|state| state.rotates() && state.open_sink().is_some()) {
        call_catch_up(handler)?;
    }
    Ok(())
}

/// Prepares a handler for stock logging, which writes the next line: waits until the queued lines are written. A
/// handler that switches files is released, and its stream is opened again if necessary.
///
/// # Errors
///
/// The errors of [`flush`] and [`catch_up`].
pub fn hand_back(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    if known(handler).is_some_and(|state| state.rotates()) {
        release(handler, timeout)
    } else {
        flush(handler, timeout).map(drop)
    }
}

/// Removes the state of a handler, and closes its sink after everything queued for it is written.
///
/// # Errors
///
/// The errors of [`close`] and [`catch_up`].
pub fn release(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    drain_deferred(handler, timeout)?;
    release_drained(handler, timeout)
}

/// As [`release`], without a wait for records that are still to be formatted.
///
/// # Errors
///
/// The errors of [`close`] and [`catch_up`].
pub fn release_drained(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    let Some(state) = take(handler) else { return Ok(()) };
    let sink = state.take_sink();
    let closed = close(handler.py(), sink, timeout);
    if state.rotates() && sink.is_some() {
        return closed.and(call_catch_up(handler));
    }
    closed
}

/// Removes the state of a handler that was freed. Its sink is closed after everything queued for it is written; this
/// function does not wait for that.
pub fn forget(reference: &Bound<'_, PyAny>) {
    let gone = with_table(|table| {
        let address = table.by_reference.remove(&(reference.as_ptr() as usize))?;
        table.states.remove(&address)
    });
    let Some(entry) = gone else { return };
    let sink = entry.state.take_sink();
    if let Err(error) = flushing::push_all_summaries(reference.py()) {
        // The handler is being freed: nobody takes the error.
        error.write_unraisable(reference.py(), None);
    }
    // This call also begins a new epoch. A plan keeps the handler's stream, and so its descriptor, alive until the plan
    // is made again.
    leave_to_writer(sink);
    table::forget_all(reference.py());
}

/// Waits until the records of freed handlers are written. Called before a sink is opened, because the new sink may
/// write to the same file.
///
/// # Errors
///
/// The error of a signal handler that ran during the wait.
pub fn await_orphans(py: Python<'_>) -> PyResult<()> {
    // A sink stays in the list while a thread waits for it, so that other threads wait for it too.
    while let Some(orphan) = with_table(|table| table.orphans.last().copied()) {
        if is_current(&orphan) {
            flushing::flush(py, Some(orphan.1), Some(SHORT_WAIT))?;
        }
        with_table(|table| table.orphans.retain(|other| *other != orphan));
    }
    Ok(())
}

/// Closes a sink that was taken out of its handler's state, after everything queued for it is written.
///
/// # Errors
///
/// The error of a signal handler that ran during the wait. The writer then closes the sink.
pub(super) fn close(py: Python<'_>, sink: Option<(u64, u32)>, timeout: Duration) -> PyResult<()> {
    let pushed = flushing::push_all_summaries(py);
    // A thread that reads the new stop number no longer finds the sink in the state. A thread that read an older stop
    // number notices the change before it pushes. So no thread pushes to a closed sink.
    environment::stop_pushes();
    flushing::forget_summaries();
    let Some((_, id)) = sink.filter(is_current) else { return Ok(()) };
    if let Err(raised) = pushed.and_then(|()| flushing::flush_before_close(py, id, timeout)) {
        leave_to_writer(sink);
        return Err(raised);
    }
    detached(py, || pipeline::close_sink(id, timeout));
    ids::forget_routes(id);
    Ok(())
}

/// Lets the writer close a sink that was taken out of its handler's state. The writer closes the sink after everything
/// queued for it is written.
pub(super) fn leave_to_writer(sink: Option<(u64, u32)>) {
    environment::stop_pushes();
    if let Some((id_epoch, id)) = sink.filter(is_current) {
        pipeline::retire_sink(id);
        with_table(|table| table.orphans.push((id_epoch, id)));
    }
}

/// Waits until everything queued for a handler is written, also if another thread is closing its sink. Returns `true` if
/// it is written, or if nothing is queued.
///
/// # Errors
///
/// The error of a signal handler that ran during the wait.
pub fn flush(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<bool> {
    drain_deferred(handler, timeout)?;
    let Some(id) = known(handler).and_then(|state| state.sink_to_await()) else { return Ok(true) };
    flushing::flush(handler.py(), Some(id), Some(timeout))
}

/// Works as [`flush`], unless the records of the handler go to another program.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_local(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    let is_local = |state: &HandlerState| match &state.verdict {
        HandlerVerdict::Adopted(adoption) => adoption.traits.is_local,
        _ => false,
    };
    if known(handler).is_some_and(|state| is_local(&state)) {
        flush(handler, timeout)?;
    }
    Ok(())
}

/// Waits until everything queued for handlers on streams is written. Called before Python code runs that may print to
/// the same stream.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_streams(py: Python<'_>, timeout: Duration) -> PyResult<()> {
    let is_stream = |state: &HandlerState| match &state.verdict {
        HandlerVerdict::Adopted(adoption) => adoption.is_stream,
        _ => false,
    };
    let sinks: Vec<u32> = with_table(|table| {
        let states = table.states.values().map(|entry| &entry.state);
        states.filter(|state| is_stream(state)).filter_map(|state| state.sink_to_await()).collect()
    });
    for sink in sinks {
        flushing::flush(py, Some(sink), Some(timeout))?;
    }
    Ok(())
}

/// Waits until everything queued for the file of a text stream is written, no matter which handlers queued it.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_beside(stream: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    if !text_stream::is_text_stream(stream) {
        return Ok(());
    }
    // SAFETY: a live object, and the thread is attached; `fileno()` of a stream without a file raises.
    let descriptor = unsafe { ffi::PyObject_AsFileDescriptor(stream.as_ptr()) };
    if descriptor < 0 {
        object::clear_error(stream.py());
        return Ok(());
    }
    let sinks = SinkPlace::of(descriptor).map(pipeline::sinks_at).unwrap_or_default();
    for sink in sinks {
        flushing::flush(stream.py(), Some(sink), Some(timeout))?;
    }
    Ok(())
}
