//! State of a pipeline's watcher (`orphan_watch.rs`).
//!
//! A fork waits a limited time until the watcher thread has ended. The end of the process waits a limited time until no
//! look is under way.

use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::crossing::{RunningFlag, WorkPause};
use logspool_sys::sleep::sleep_interruptibly;

use crate::writer::Bell;

/// How long the watcher pauses after a drain. If the process still runs after this time, it has not ended and needs the
/// watcher again.
const PAUSE_NS: u64 = 2_000_000_000;

/// Watcher state of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) bell: Bell,
    pub(super) runs: RunningFlag,
    /// Tracks looks that are under way, and the pause during which no look may begin.
    pub(super) looks: WorkPause,
}

impl Watcher {
    /// Whether the watcher thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.is_running()
    }

    /// Wakes the thread, so that it sees the request to end.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Prevents further looks at the end of the process, so that no sidecar is opened after the last one was closed.
    /// Waits until `deadline` for a look that is under way. Other processes deliver what that look has not delivered.
    pub(super) fn pause(&self, deadline: Instant) {
        // Either the watcher sees the pause before it looks, or this thread sees the look (model:
        // `no_work_starts_during_a_pause`).
        self.looks.pause_until(monotonic_ns() + PAUSE_NS);
        while self.looks.is_working() && Instant::now() < deadline {
            sleep_interruptibly(Duration::from_micros(100));
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.looks.is_paused_at(monotonic_ns())
    }
}
