//! Barriers on adopted handlers, and how their sinks are closed.

use std::sync::OnceLock;
use std::time::Duration;

use logspool::pipeline;
use logspool::sinks::{self, SinkPlace};
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;

use super::state::{State, Verdict, is_of_now};
use super::table::{known, take, with_table};
use crate::flushing;
use crate::interpreter::leaving::outside;
use crate::interpreter::object::{self, ErrorKept, Owned};
use crate::plans::{environment, ids, table, text_stream};

/// How long a handler that turns foreign waits for its queue: its next line is written by stock logging.
///
/// Chosen: the default of `shutdown_timeout`; reached only when the sink is stalled.
pub(super) const SHORT_WAIT: Duration = Duration::from_secs(5);

/// `_rotation.catch_up`
static CATCH_UP: OnceLock<Owned> = OnceLock::new();

/// Remembers `_rotation.catch_up`. The first call counts.
pub fn set_catch_up(function: Owned) {
    let _ = CATCH_UP.set(function);
}

/// Opens the stream of a handler anew if its sink has gone over to another file.
pub(super) fn call_catch_up(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    call(CATCH_UP.get(), handler).map(drop)
}

/// Calls a function of `_rotation.py`. The `Exception` that it raises (the path cannot be opened) stock logging meets
/// next; another error goes on.
pub(super) fn call<'py>(function: Option<&Owned>, handler: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(function) = function else { return Ok(None) };
    let py = handler.py();
    let answer = {
        let _error = ErrorKept::take(py);
        function.bind(py).call1((handler,))
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// After a flush: lets the handler's own stream follow a sink that has gone over to another file.
///
/// # Errors
///
/// What was raised meanwhile and is no `Exception`.
pub fn catch_up(handler: &Bound<'_, PyAny>) -> PyResult<()> {
    if known(handler).is_some_and(|state| state.turns() && state.open_sink().is_some()) {
        call_catch_up(handler)?;
    }
    Ok(())
}

/// Leaves a handler to stock logging for its next line.
///
/// # Errors
///
/// As for [`flush`] and [`catch_up`].
pub fn give_back(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    if known(handler).is_some_and(|state| state.turns()) {
        release(handler, timeout)
    } else {
        flush(handler, timeout).map(drop)
    }
}

/// Forgets a handler and closes its sink when everything queued for it is written.
///
/// # Errors
///
/// As for [`close`] and [`catch_up`].
pub fn release(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    let Some(state) = take(handler) else { return Ok(()) };
    let sink = state.take_sink();
    let closed = close(handler.py(), sink, timeout);
    if state.turns() && sink.is_some() {
        return closed.and(call_catch_up(handler));
    }
    closed
}

/// Forgets the handler that died. Its sink is closed when everything is written; nobody waits for that here.
pub fn forget(reference: &Bound<'_, PyAny>) {
    let gone = with_table(|table| {
        let address = table.by_reference.remove(&(reference.as_ptr() as usize))?;
        table.states.remove(&address)
    });
    let Some(entry) = gone else { return };
    let sink = entry.state.take_sink();
    // Moves the epoch, too: plans keep the handler's stream, and with it a descriptor, until they are made again.
    leave_to_writer(sink);
    table::forget_all(reference.py());
}

/// Before a sink is opened: waits until what dead handlers left is written, which may be for the same file.
///
/// # Errors
///
/// What a signal's handler raised meanwhile.
pub fn await_orphans(py: Python<'_>) -> PyResult<()> {
    while let Some((generation, id)) = with_table(|table| table.orphans.pop()) {
        if generation == pipeline::generation() {
            flushing::flush(py, Some(id), Some(SHORT_WAIT))
                .inspect_err(|_| with_table(|table| table.orphans.push((generation, id))))?;
        }
    }
    Ok(())
}

/// Closes a sink that was taken out of its handler's state when everything queued for it is written.
///
/// # Errors
///
/// What a signal's handler raised meanwhile; the sink is left to its writer then.
pub(super) fn close(py: Python<'_>, sink: Option<(u64, u32)>, timeout: Duration) -> PyResult<()> {
    // Whoever reads this epoch does not find the sink in the state any more, and who read an older one goes back
    // before it pushes: nobody pushes to a closed sink.
    environment::stop_pushes();
    let Some((_, id)) = sink.filter(is_of_now) else { return Ok(()) };
    if let Err(raised) = flushing::flush_before_close(py, id, timeout) {
        leave_to_writer(sink);
        return Err(raised);
    }
    outside(py, || pipeline::close_sink(id, timeout));
    ids::forget_routes(id);
    Ok(())
}

/// Leaves a sink that was taken out of its handler's state to its writer, which closes it when everything is written.
pub(super) fn leave_to_writer(sink: Option<(u64, u32)>) {
    environment::stop_pushes();
    if let Some((generation, id)) = sink.filter(is_of_now) {
        pipeline::retire_sink(id);
        with_table(|table| table.orphans.push((generation, id)));
    }
}

/// Waits until everything queued for a handler is written. `true` when that came true, or nothing is queued.
///
/// # Errors
///
/// What a signal's handler raised.
pub fn flush(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<bool> {
    let Some(id) = known(handler).and_then(|state| state.open_sink()) else { return Ok(true) };
    flushing::flush(handler.py(), Some(id), Some(timeout))
}

/// Waits until everything queued for the file of a text stream is written, whichever handlers queued it.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_beside(stream: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    if !text_stream::is_text_stream(stream) {
        return Ok(());
    }
    // SAFETY: a live object of an attached thread; `fileno()` of a stream without a file raises.
    let descriptor = unsafe { ffi::PyObject_AsFileDescriptor(stream.as_ptr()) };
    if descriptor < 0 {
        object::clear_error(stream.py());
        return Ok(());
    }
    let behind = SinkPlace::of(descriptor);
    let goes_there = |state: &State| {
        let Verdict::Adopted(adoption) = &state.verdict else { return false };
        adoption.stream.text == stream.as_ptr()
            || behind.is_some() && sinks::shared_place(&adoption.definition) == behind
    };
    let sinks: Vec<u32> = with_table(|table| {
        let states = table.states.values().map(|entry| &entry.state);
        states.filter(|state| goes_there(state)).filter_map(|state| state.open_sink()).collect()
    });
    for sink in sinks {
        flushing::flush(stream.py(), Some(sink), Some(timeout))?;
    }
    Ok(())
}
