//! How often plans are made, and when that is given up for a while.
//!
//! Stop on the line: *capture*, its slow part. A program that changes handlers all the time, in another thread say,
//! makes plans stale before they are used. Then each call would make one in vain, and threads would wait for each
//! other to do so. After [`MOST_IN_VAIN`] such plans the next calls take the stock path at once.
//!
//! Atomics outside `queue`: counters of all threads, on the slow part of a call.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Plans made in vain, one after the other, after which calls take the stock path without one.
///
/// Chosen: beginning the pipeline and closing a sink each cost one, so a quiet program has two or three.
const MOST_IN_VAIN: u32 = 8;

/// Calls that take the stock path before plans are tried again.
///
/// Chosen: eight plans in vain cost some 200 us, which is 0.2 us for each of these calls.
const CALLS_WITHOUT: u32 = 1000;

/// Plans made, used or not.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Plans made in vain since the last one that was used.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Calls that still take the stock path without a plan.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Plans made so far.
pub fn made() -> u64 {
    MADE.load(Relaxed)
}

/// A plan is about to be made.
pub fn count() {
    MADE.fetch_add(1, Relaxed);
}

/// Whether this call makes no plan.
pub fn given_up() -> bool {
    LEFT.load(Relaxed) > 0 && LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// A plan was stale before it was used.
pub fn in_vain() {
    if IN_VAIN.fetch_add(1, Relaxed) + 1 >= MOST_IN_VAIN {
        IN_VAIN.store(0, Relaxed);
        LEFT.store(CALLS_WITHOUT, Relaxed);
    }
}

/// A plan was used.
pub fn used() {
    if IN_VAIN.load(Relaxed) != 0 {
        IN_VAIN.store(0, Relaxed);
    }
}
