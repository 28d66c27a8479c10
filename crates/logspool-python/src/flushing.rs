//! Waits for queued records in short slices, so that Python's signal handlers run between the slices.
//!
//! A signal does not end a wait inside the pipeline, and CPython only notes a signal until a thread checks for signals.

use std::sync::OnceLock;
use std::time::Duration;

use logspool::pipeline::{Flush, SyncWait};
use pyo3::prelude::*;

use crate::interpreter::leaving::detached;
use crate::interpreter::waiting::{self, Deadline, SHARE};

/// The functions for the records about records that rules have left out.
#[derive(Debug, Clone, Copy)]
pub struct Summaries {
    /// Queues the records that are due.
    pub push_due: fn(Python<'_>) -> PyResult<()>,
    /// Queues all records.
    pub push_all: fn(Python<'_>) -> PyResult<()>,
    /// Drops the records that are not queued.
    pub forget: fn(),
}

/// Empty until rules are in force.
static SUMMARIES: OnceLock<Summaries> = OnceLock::new();

/// Sets the functions of the rules. Later calls change nothing.
pub fn set_summaries(functions: Summaries) {
    let _ = SUMMARIES.set(functions);
}

/// Queues the records about left-out records that are due.
fn push_due_summaries(py: Python<'_>) -> PyResult<()> {
    SUMMARIES.get().map_or(Ok(()), |summaries| (summaries.push_due)(py))
}

/// Queues all records about left-out records.
///
/// # Errors
///
/// The error that a signal handler raised while the call waited for room.
pub fn push_all_summaries(py: Python<'_>) -> PyResult<()> {
    SUMMARIES.get().map_or(Ok(()), |summaries| (summaries.push_all)(py))
}

/// Drops the records about left-out records that are not queued, because a sink is about to be closed.
pub fn forget_summaries() {
    if let Some(summaries) = SUMMARIES.get() {
        (summaries.forget)();
    }
}

/// Waits until everything queued before is written to `sink`, or with `None` to all sinks. Returns `false` if it is not
/// written within `timeout`, or if a sink has dropped records because the program closed its descriptor. Without a
/// timeout the wait is unlimited.
///
/// # Errors
///
/// The error that a signal handler raised.
pub fn flush(py: Python<'_>, sink: Option<u32>, timeout: Option<Duration>) -> PyResult<bool> {
    push_due_summaries(py)?;
    let begun = wait(py, Deadline::within(timeout), || Flush::begin(sink), Flush::wait)?;
    if let (Some((flush, false)), Some(timeout)) = (&begun, timeout) {
        flush.note_timeout(timeout);
    }
    Ok(begun.is_none_or(|(flush, done)| done && flush.succeeded()))
}

/// Like [`flush`], for one sink that is closed next. `timeout` also covers the close, and the waits for this sink that
/// timed out just before.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_before_close(py: Python<'_>, sink: u32, timeout: Duration) -> PyResult<bool> {
    let Some(flush) = detached(py, || Flush::begin(Some(sink))) else { return Ok(true) };
    let timeout = flush.remaining(timeout);
    let begun = wait(py, Deadline::within(Some(timeout)), || Some(flush), Flush::wait)?;
    if let Some((flush, false)) = &begun {
        flush.note_timeout(timeout);
    }
    Ok(begun.is_none_or(|(_, done)| done))
}

/// Like [`flush`] for all sinks, but does not wait for services.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_local(py: Python<'_>, timeout: Duration) -> PyResult<bool> {
    push_due_summaries(py)?;
    let begun = wait(py, Deadline::within(Some(timeout)), Flush::begin_local, Flush::wait)?;
    Ok(begun.is_none_or(|(flush, done)| done && flush.succeeded()))
}

/// Like [`flush`] for all sinks, but waits until everything is durable.
///
/// # Errors
///
/// The errors of [`flush`].
pub fn flush_durable(py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
    push_due_summaries(py)?;
    let deadline = Deadline::within(timeout);
    let begun = wait(py, deadline, || Flush::begin(None), Flush::wait)?;
    if begun.is_some_and(|(flush, done)| !done || !flush.succeeded()) {
        return Ok(false);
    }
    let begun = wait(py, deadline, || SyncWait::begin(None), SyncWait::wait)?;
    Ok(begun.is_none_or(|(sync, done)| done && sync.succeeded()))
}

/// Begins a wait with `begin` and runs `step` at least once, so that a finished wait succeeds even with a zero timeout.
/// Returns the result of `begin`, and true if the wait succeeded. Returns `None` if there is nothing to wait for.
///
/// `begin` and `step` run detached from the interpreter, because `begin` may wait for a lock that a writer holds.
fn wait<T: Send + Sync>(
    py: Python<'_>,
    deadline: Deadline,
    begin: impl FnOnce() -> Option<T> + Send,
    step: impl Fn(&T, Duration) -> bool + Send + Sync,
) -> PyResult<Option<(T, bool)>> {
    let first = deadline.slice().unwrap_or_default().min(SHARE);
    let begun = detached(py, || begin().map(|begun| (step(&begun, first), begun)));
    let Some((done, begun)) = begun else { return Ok(None) };
    let done = done || waiting::wait(py, deadline, |slice| step(&begun, slice.min(SHARE)))?;
    Ok(Some((begun, done)))
}
