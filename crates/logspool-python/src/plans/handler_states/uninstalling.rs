//! `uninstall()`: stock logging serves adopted handlers again, each after its queue is written.

use std::time::Duration;

use pyo3::prelude::*;

use super::closing::{flush, leave_to_writer, release};
use super::table::{known, take, with_table};
use crate::interpreter::object::WeakReference;
use crate::plans::callbacks;

/// Removes the states of all handlers except logspool's own. Each sink is closed after its records are written, within
/// `timeout`.
///
/// A handler keeps its sink until the sink is closed. A thread that continues in stock logging can [`flush`] the sink
/// before that.
///
/// # Errors
///
/// The errors of [`release`]. After an error the other handlers are removed without waiting for their queues.
pub fn release_all(py: Python<'_>, timeout: Duration) -> PyResult<()> {
    let mut outcome = Ok(());
    let references: Vec<WeakReference> =
        with_table(|table| table.states.values().map(|entry| entry.reference.clone_ref(py)).collect());
    for reference in references {
        let Some(handler) = reference.upgrade(py) else { continue };
        if callbacks::stands_alone(&handler) {
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

/// Releases a handler after everything queued for it is written. If the sink switches files, the handler's stream is
/// opened again. No other thread may write to the stream meanwhile, so this function takes the handler's lock.
fn release_flushed(handler: &Bound<'_, PyAny>, timeout: Duration) -> PyResult<()> {
    flush(handler, timeout)?;
    let rotates = known(handler).is_some_and(|state| state.rotates());
    let lock = if rotates { handler.getattr("lock").ok().filter(|lock| !lock.is_none()) } else { None };
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
