//! Code shared by the two signal handlers: `signals.rs` handles signals that end the process, and `crash.rs` handles
//! crashes.

use std::time::Duration;

use super::spooler::Spooler;
use super::state::Pipeline;
use crate::sidecar;

/// How long the handler waits for pushes that are under way. A push that the handler itself interrupted cannot end
/// during this wait.
///
/// Chosen: a thread rarely waits longer for the processor, even on a busy machine, and at the end of a process this
/// delay goes unnoticed.
pub(super) const SIGNAL_TIMEOUT: Duration = Duration::from_millis(50);

/// Removes sidecars, segment and lock file. Their paths were built when the handler was installed or when the forked
/// child began its pipeline.
pub(super) fn unlink_in_handler(pipeline: &Pipeline) {
    if pipeline.spooler.as_ref().is_some_and(Spooler::has_files) {
        // The next start removes the spools, and sees from the segment that nothing in them is undelivered.
        return;
    }
    sidecar::unlink_async_signal_safe();
    pipeline.segment.unlink_async_signal_safe();
}
