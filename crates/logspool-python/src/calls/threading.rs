//! Puts the values of a call into the queue of a `logspool.ThreadHandler`, whose thread then makes the record.
//!
//! Pipeline stage: between *capture* and *queue* (see ARCHITECTURE.md). It does what `handle` and `emit` of
//! `python/logspool/thread/_handler.py` do with a record, where nobody in the call sees the record. A record that finds
//! no room is counted and never made.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::calls::deferring::{self, RECORD_BYTES};
use crate::calls::log_record::RecordValues;
use crate::calls::record_queue::{self, RecordQueue};
use crate::calls::site::Site;
use crate::calls::unmade_record::UnmadeRecord;
use crate::interpreter::dict;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::{self, names};
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::record_class;
use crate::plans::plan::RecordPlan;

/// Puts the values of the running call into the queue of `handler`, the only handler of the plan, or counts the record
/// as refused. Returns `false` if nothing was done: the record has to be made first.
///
/// # Errors
///
/// [`Failure::Stock`]: nothing was done either. [`Failure::Raised`]: an exception is set that leaves the call.
pub fn put(
    handler: Object<'_, '_>,
    plan: &RecordPlan,
    site: &Site,
    values: &RecordValues<'_, '_>,
) -> Result<bool, Failure> {
    let py = handler.py();
    let names = names();
    let own = object::own_attributes(handler)?;
    let own = own.bind(py);
    let is_own = [&names.handle, &names.emit].iter().all(|name| !dict::has(own, name));
    if !is_own || !plan.filters_of(handler).is_some_and(|filters| object::is_empty_list(filters.bind(py))) {
        return Ok(false);
    }
    let (Some(writer), Some(blocking)) =
        (dict::get(own, &names.writer_of_handler), dict::get(own, &names.blocking_levels))
    else {
        return Ok(false);
    };
    let writer = writer.bind(py);
    let queue = object::attribute(writer, &names.queue).ok_or(Failure::Stock)?;
    let queue = queue.bind(py);
    let queue = queue.cast::<RecordQueue>().map_err(|_| Failure::Stock)?.get();
    if queue.is_full() {
        return if waits(blocking.bind(py), values.levelno)? {
            Ok(false)
        } else {
            refuse(queue, writer, values.levelno).map(|()| true)
        };
    }
    let is_fixed = values.args.iter().all(|value| deferring::is_fixed(*value));
    let Some(texts) = record_queue::length_of(values.msg, values.args).filter(|_| is_fixed) else { return Ok(false) };
    let class = record_class().ok_or(Failure::Stock)?;
    let unmade = UnmadeRecord::of(py, class, site, &plan.globals, values)?;
    let unmade = Py::new(py, unmade).map_err(|error| Failure::raised(py, error))?;
    match queue.put(py, unmade.into_any(), RECORD_BYTES + texts) {
        None => Ok(true),
        Some(outcome) if outcome.as_ptr() == names.wake.as_ptr() => {
            let woken = leaving::method_of_values(&names.wake, &[writer]);
            woken.map(|_| true).ok_or(Failure::Raised)
        }
        // The queue has no room for its bytes, or is shut.
        Some(_) => Ok(false),
    }
}

/// True if a record of this level waits for room.
fn waits(blocking: Object<'_, '_>, level: Object<'_, '_>) -> Result<bool, Failure> {
    // SAFETY: live objects of an attached thread. The levels are an exact frozenset of ints, so no Python code runs.
    match unsafe { ffi::PySet_Contains(blocking.as_ptr(), level.as_ptr()) } {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::of_error(level.py())),
    }
}

/// Counts a record for which there is no room. Once in a while this looks after the thread.
fn refuse(queue: &RecordQueue, writer: Object<'_, '_>, level: Object<'_, '_>) -> Result<(), Failure> {
    if queue.refuse(&level) {
        return Ok(());
    }
    let reason = Owned::of(&names::bound(level.py(), &names().queue_full));
    let refused = leaving::method_of_values(&names().refuse, &[writer, reason.bind(level.py()), level]);
    refused.map(drop).ok_or(Failure::Raised)
}
