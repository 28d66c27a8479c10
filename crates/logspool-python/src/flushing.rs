//! Waits for what is queued, in shares: between them Python's handlers of signals run.
//!
//! What the pipeline waits for itself no signal ends, and CPython only notes a signal until somebody looks.

use std::time::Duration;

use logspool::pipeline::{Flush, SyncWait};
use pyo3::prelude::*;

use crate::leaving::outside;
use crate::waiting::{self, Deadline};

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
    let Some(flush) = Flush::begin(sink) else { return Ok(true) };
    let done = wait(py, Deadline::within(timeout), |share| flush.wait(share))?;
    if let Some(timeout) = timeout.filter(|_| !done) {
        flush.note_late(timeout);
    }
    Ok(done)
}

/// As [`flush`] of one sink that is closed next; `timeout` is allowed for what comes right before and behind it, too.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_before_close(py: Python<'_>, sink: u32, timeout: Duration) -> PyResult<bool> {
    let Some(flush) = Flush::begin(Some(sink)) else { return Ok(true) };
    let timeout = flush.share(timeout);
    let done = wait(py, Deadline::within(Some(timeout)), |share| flush.wait(share))?;
    if !done {
        flush.note_late(timeout);
    }
    Ok(done)
}

/// As [`flush`] of all sinks, but without waiting for services.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_local(py: Python<'_>, timeout: Duration) -> PyResult<bool> {
    let Some(flush) = Flush::begin_local() else { return Ok(true) };
    wait(py, Deadline::within(Some(timeout)), |share| flush.wait(share))
}

/// As [`flush`] of all sinks, but until everything is durable.
///
/// # Errors
///
/// As for [`flush`].
pub fn flush_durable(py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
    let deadline = Deadline::within(timeout);
    let Some(flush) = Flush::begin(None) else { return Ok(true) };
    if !wait(py, deadline, |share| flush.wait(share))? {
        return Ok(false);
    }
    let Some(sync) = SyncWait::begin(None) else { return Ok(true) };
    Ok(wait(py, deadline, |share| sync.wait(share))? && sync.succeeded())
}

/// Waits by `step` at least once, so that what is done already needs no time.
fn wait(py: Python<'_>, deadline: Deadline, step: impl Fn(Duration) -> bool) -> PyResult<bool> {
    let first = deadline.slice().unwrap_or_default();
    Ok(outside(py, || step(first.min(SHARE))) || waiting::wait(py, deadline, |slice| step(slice.min(SHARE)))?)
}
