//! Waits for what is queued, in shares: between them Python's handlers of signals run.
//!
//! What the pipeline waits for itself no signal ends, and CPython only notes a signal until somebody looks.

use std::time::Duration;

use logspool::pipeline::{Flush, SyncWait};
use pyo3::prelude::*;

use crate::interpreter::leaving::outside;
use crate::interpreter::waiting::{self, Deadline};

/// Longest wait at a time.
///
/// Chosen: nobody notices a tenth of a second behind Ctrl-C, and coming back ten times a second costs nothing.
pub const SHARE: Duration = Duration::from_millis(100);

/// Waits until everything queued before is written: to one sink, or with `None` to all. `false`: not within `timeout`,
/// without which there is no end.
///
/// # Errors
///
/// What a signal's handler raised.
pub fn flush(py: Python<'_>, sink: Option<u32>, timeout: Option<Duration>) -> PyResult<bool> {
    let begun = wait(py, Deadline::within(timeout), || Flush::begin(sink), Flush::wait)?;
    if let (Some((flush, false)), Some(timeout)) = (&begun, timeout) {
        flush.note_late(timeout);
    }
    Ok(begun.is_none_or(|(_, done)| done))
}

/// As [`flush`] of one sink that is closed next; `timeout` is allowed for what comes right before and behind it, too.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_before_close(py: Python<'_>, sink: u32, timeout: Duration) -> PyResult<bool> {
    let Some(flush) = outside(py, || Flush::begin(Some(sink))) else { return Ok(true) };
    let timeout = flush.share(timeout);
    let begun = wait(py, Deadline::within(Some(timeout)), || Some(flush), Flush::wait)?;
    if let Some((flush, false)) = &begun {
        flush.note_late(timeout);
    }
    Ok(begun.is_none_or(|(_, done)| done))
}

/// As [`flush`] of all sinks, but without waiting for services.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_local(py: Python<'_>, timeout: Duration) -> PyResult<bool> {
    let begun = wait(py, Deadline::within(Some(timeout)), Flush::begin_local, Flush::wait)?;
    Ok(begun.is_none_or(|(_, done)| done))
}

/// As [`flush`] of all sinks, but until everything is durable.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_durable(py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
    let deadline = Deadline::within(timeout);
    let begun = wait(py, deadline, || Flush::begin(None), Flush::wait)?;
    if begun.is_some_and(|(_, done)| !done) {
        return Ok(false);
    }
    let begun = wait(py, deadline, || SyncWait::begin(None), SyncWait::wait)?;
    Ok(begun.is_none_or(|(sync, done)| done && sync.succeeded()))
}

/// Begins what is waited for by `step`, and waits at least once: what is done already needs no time. Gives back what
/// was begun, and whether it came true; `None` where there is nothing to wait for.
///
/// All of it is outside of the interpreter: who begins may wait for a lock that a writer holds.
fn wait<T: Send + Sync>(
    py: Python<'_>,
    deadline: Deadline,
    begin: impl FnOnce() -> Option<T> + Send,
    step: impl Fn(&T, Duration) -> bool + Send + Sync,
) -> PyResult<Option<(T, bool)>> {
    let first = deadline.slice().unwrap_or_default().min(SHARE);
    let begun = outside(py, || begin().map(|begun| (step(&begun, first), begun)));
    let Some((done, begun)) = begun else { return Ok(None) };
    let done = done || waiting::wait(py, deadline, |slice| step(&begun, slice.min(SHARE)))?;
    Ok(Some((begun, done)))
}
