//! `uninstall()`: adopted handlers go back to stock logging, each once its queue is written.

use std::time::Duration;

use pyo3::prelude::*;

use super::closing::{flush, leave_to_writer, release};
use super::table::{known, take, with_table};
use crate::interpreter::object::WeakReference;
use crate::plans::python_half;

/// Forgets all handlers but those of logspool's own; their sinks are closed when written, within `timeout` each.
///
/// Until its sink is closed a handler keeps it, so that a thread that goes on by stock logging can [`flush`] it first.
///
/// # Errors
///
/// As for [`release`]; every handler is forgotten all the same, and nobody waits for the queue of the others.
pub fn release_all(py: Python<'_>, timeout: Duration) -> PyResult<()> {
    let mut outcome = Ok(());
    let references: Vec<WeakReference> =
        with_table(|table| table.states.values().map(|entry| entry.reference.again(py)).collect());
    for reference in references {
        let Some(handler) = reference.upgrade(py) else { continue };
        if python_half::stands_alone(&handler) {
            continue;
        }
        if outcome.is_ok() {
            outcome = release_flushed(&handler, timeout);
        }
        if outcome.is_err()
            && let Some(state) = take(&handler)
        {
            leave_to_writer(state.take_sink());
        }
    }
    outcome
}

/// Releases a handler once everything queued for it is written. The stream of one that turns is opened anew then, which
/// must not happen while another thread writes to it: that one holds the handler's lock.
fn release_flushed(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    flush(handler, timeout)?;
    let turns = known(handler).is_some_and(|state| state.turns());
    let lock = if turns { handler.getattr("lock").ok().filter(|lock| !lock.is_none()) } else { None };
    let held = match &lock {
        Some(lock) => lock.call_method1("acquire", (true, timeout.as_secs_f64()))?.is_truthy()?,
        None => false,
    };
    let released = release(handler, timeout);
    if let Some(lock) = lock.filter(|_| held) {
        lock.call_method0("release")?;
    }
    released
}
