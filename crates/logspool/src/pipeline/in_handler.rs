//! What both handlers do, that of a signal which ends the process (`signals.rs`) and that of a crash (`crash.rs`).

use std::time::Duration;

use super::spooler::Spooler;
use super::state::Pipeline;
use crate::sidecar;

/// How long the handler waits for pushes: the one that it interrupted itself does not end.
///
/// Chosen: a thread that does not get to run for so long is rare even on a busy machine, and nobody notices the time
/// at the end of a process.
pub(super) const SIGNAL_PATIENCE: Duration = Duration::from_millis(50);

/// Removes sidecars, segment and lock; their paths were made when the handler was installed or the child began.
pub(super) fn unlink_in_handler(pipeline: &Pipeline) {
    if pipeline.spooler.as_ref().is_some_and(Spooler::has_files) {
        // The next start removes them, and learns from the segment that nothing in them is wanted.
        return;
    }
    sidecar::unlink_async_signal_safe();
    pipeline.segment.unlink_async_signal_safe();
}
