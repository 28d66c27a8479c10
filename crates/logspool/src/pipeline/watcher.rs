//! State of a pipeline's watcher (`watch.rs`).
//!
//! Forks and the end of the process wait for whether it runs or looks.

use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::crossing::{Rest, Runs};
use logspool_sys::nap::nap;

use crate::writer::Bell;

/// How long it pauses after a drain: in that time the process ends, or it continues to run.
const REST_NS: u64 = 2_000_000_000;

/// Watcher state of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) bell: Bell,
    pub(super) runs: Runs,
    /// Looks, and the rest in which none may begin.
    pub(super) looks: Rest,
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
    pub(super) fn rest(&self, deadline: Instant) {
        // Either the look sees the rest, or this thread sees the look (model: `no_work_begins_in_a_rest`).
        self.looks.rest_until(monotonic_ns() + REST_NS);
        while self.looks.is_at_work() && Instant::now() < deadline {
            nap(Duration::from_micros(100));
        }
    }

    pub(super) fn rests(&self) -> bool {
        self.looks.rests_at(monotonic_ns())
    }
}
