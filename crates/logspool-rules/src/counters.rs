//! Counts of the records that the rules of this process have left out or changed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Records that the rules have left out or changed, since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Records in which a secret was replaced or a control character was escaped. They were queued.
    pub rewritten: u64,
    /// Records left out by sampling.
    pub sampled: u64,
    /// Records left out as repetitions.
    pub repeated: u64,
    /// Records left out by the rate limit.
    pub over_rate: u64,
    /// Calls of the `..._once` functions after the first one.
    pub once: u64,
}

impl RuleCounts {
    /// The counts with their names in statistics and metrics.
    pub const fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("rewritten", self.rewritten),
            ("sampled", self.sampled),
            ("repeated", self.repeated),
            ("over_rate", self.over_rate),
            ("once", self.once),
        ]
    }
}

// The counters order nothing, so they need no module of their own for orderings.
static REWRITTEN: AtomicU64 = AtomicU64::new(0);
static SAMPLED: AtomicU64 = AtomicU64::new(0);
static REPEATED: AtomicU64 = AtomicU64::new(0);
static OVER_RATE: AtomicU64 = AtomicU64::new(0);
static ONCE: AtomicU64 = AtomicU64::new(0);

/// Sets all counts to zero. For a forked child.
pub fn reset_counts() {
    for count in [&REWRITTEN, &SAMPLED, &REPEATED, &OVER_RATE, &ONCE] {
        count.store(0, Relaxed);
    }
}

/// The counts of this process.
pub fn counts() -> RuleCounts {
    RuleCounts {
        rewritten: REWRITTEN.load(Relaxed),
        sampled: SAMPLED.load(Relaxed),
        repeated: REPEATED.load(Relaxed),
        over_rate: OVER_RATE.load(Relaxed),
        once: ONCE.load(Relaxed),
    }
}

/// Counts a record in which secrets were replaced.
pub fn note_rewritten() {
    count_rewritten();
}

pub(crate) fn count_rewritten() {
    REWRITTEN.fetch_add(1, Relaxed);
}

pub(crate) fn count_sampled() {
    SAMPLED.fetch_add(1, Relaxed);
}

pub(crate) fn count_repeated() {
    REPEATED.fetch_add(1, Relaxed);
}

pub(crate) fn count_over_rate() {
    OVER_RATE.fetch_add(1, Relaxed);
}

/// Counts a call of a `..._once` function that logs nothing.
pub fn note_once() {
    ONCE.fetch_add(1, Relaxed);
}
