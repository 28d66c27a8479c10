//! State of a pipeline's watcher (`watch.rs`).
//!
//! Atomics outside `queue` and `stats`: whether it runs or looks, which forks and the end of the process wait for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::nap::nap;

use crate::writer::Bell;

/// How long it pauses after a drain: in that time the process ends, or it continues to run.
const REST_NS: u64 = 2_000_000_000;

/// Watcher state of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) bell: Bell,
    pub(super) runs: AtomicBool,
    /// Whether a look is under way.
    pub(super) looks: AtomicBool,
    rests_until_ns: AtomicU64,
}

impl Watcher {
    /// Whether the watcher thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// Wakes the thread, so that it sees the request to leave.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// Starts no more looks at the end of the process, so that no sidecar is opened after the last one was closed.
    /// Waits until `deadline` for a look under way. Other processes do what it left undone.
    pub(super) fn rest(&self, deadline: Instant) {
        // SeqCst, as in `look`: either the look sees this store, or this thread sees the look.
        self.rests_until_ns.store(monotonic_ns() + REST_NS, Ordering::SeqCst);
        while self.looks.load(Ordering::SeqCst) && Instant::now() < deadline {
            nap(Duration::from_micros(100));
        }
    }

    pub(super) fn rests(&self) -> bool {
        monotonic_ns() < self.rests_until_ns.load(Ordering::SeqCst)
    }
}
