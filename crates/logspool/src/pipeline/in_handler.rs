//! Code shared by both signal handlers: that of a signal that ends the process (`signals.rs`), and that of a crash
//! (`crash.rs`).

use std::time::Duration;

use super::spooler::Spooler;
use super::state::Pipeline;
use crate::sidecar;

/// How long the handler waits for pushes under way; one that it interrupted does not end.
///
/// Chosen: a thread rarely waits longer for the processor, even on a busy machine, and at the end of a process this
/// delay goes unnoticed.
pub(super) const SIGNAL_TIMEOUT: Duration = Duration::from_millis(50);

/// Removes sidecars, segment and lock file. Their paths were built when the handler was installed or the child began.
pub(super) fn unlink_in_handler(pipeline: &Pipeline) {
    if pipeline.spooler.as_ref().is_some_and(Spooler::has_files) {
        // The next start removes the spools, and sees from the segment that nothing in them is undelivered.
        return;
    }
    sidecar::unlink_async_signal_safe();
    pipeline.segment.unlink_async_signal_safe();
}
