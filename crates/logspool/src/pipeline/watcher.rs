//! State of a pipeline's watcher (`watch.rs`).
//!
//! Forks and the end of the process wait for whether it runs or looks.

use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::crossing::{RunningFlag, WorkPause};
use logspool_sys::sleep::sleep_interruptibly;

use crate::writer::Bell;

/// How long it pauses after a drain: in that time the process ends, or it continues to run.
const PAUSE_NS: u64 = 2_000_000_000;

/// Watcher state of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) bell: Bell,
    pub(super) runs: RunningFlag,
    /// Looks, and the rest in which none may begin.
    pub(super) looks: WorkPause,
}

impl Watcher {
    /// Whether the watcher thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.is_running()
    }

    /// Wakes the thread, so that it sees the request to leave.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Starts no more looks at the end of the process, so that no sidecar is opened after the last one was closed.
    /// Waits until `deadline` for a look under way. Other processes do what it left undone.
    pub(super) fn pause(&self, deadline: Instant) {
        // Either the look sees the rest, or this thread sees the look (model: `no_work_begins_in_a_pause`).
        self.looks.pause_until(monotonic_ns() + PAUSE_NS);
        while self.looks.is_working() && Instant::now() < deadline {
            sleep_interruptibly(Duration::from_micros(100));
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.looks.is_paused_at(monotonic_ns())
    }
}
