//! What a pipeline has of its watcher (`watch.rs`).
//!
//! Atomics outside `queue` and `stats`: whether it runs or looks, which forks and the end of the process wait for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool_sys::clock::monotonic_ns;
use logspool_sys::nap::nap;

use crate::writer::Bell;

/// How long it looks no more after a drain: the process ends in that time, or goes on.
const REST_NS: u64 = 2_000_000_000;

/// What a pipeline has of its watcher.
#[derive(Debug, Default)]
pub(super) struct Watcher {
    pub(super) bell: Bell,
    pub(super) runs: AtomicBool,
    /// It is at work in the folder.
    pub(super) looks: AtomicBool,
    rests_until_ns: AtomicU64,
}

impl Watcher {
    /// Whether its thread runs.
    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// Wakes it, to see that it is to leave.
    pub(super) fn wake(&self) {
        self.bell.ring();
    }

    /// At the end of the process: no look from here on, so that no sidecar is opened after the last. A look that is under
    /// way is waited for until `deadline`; what it has not done is done by others.
    pub(super) fn rest(&self, deadline: Instant) {
        // SeqCst, as in `look`: either the look sees this, or it is seen here.
        self.rests_until_ns.store(monotonic_ns() + REST_NS, Ordering::SeqCst);
        while self.looks.load(Ordering::SeqCst) && Instant::now() < deadline {
            nap(Duration::from_micros(100));
        }
    }

    pub(super) fn rests(&self) -> bool {
        monotonic_ns() < self.rests_until_ns.load(Ordering::SeqCst)
    }
}
