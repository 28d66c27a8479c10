//! Counts how often plans are made, and pauses planning when plans become stale before they are used.
//!
//! Pipeline stage: *capture*, its slow path (see ARCHITECTURE.md). A program that keeps changing handlers, in another
//! thread for example, makes plans stale before they are used. Each call would then make a useless plan, and threads
//! would wait for each other. After [`MAX_UNUSED`] such plans the next calls take the stock path at once.
//!
//! Atomics belong in `queue`; those of this file are an exception: all threads share the counters, on the slow path of
//! a call.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Number of consecutive unused plans after which calls take the stock path without making a plan.
///
/// Chosen: starting the pipeline and closing a sink each make one plan stale. So even a program that changes nothing
/// has two or three unused plans, and the limit has to be clearly higher.
const MAX_UNUSED: u32 = 8;

/// Number of calls that take the stock path before plans are made again.
///
/// Chosen: eight unused plans cost about 200 us. Divided among these calls, that is 0.2 us per call.
const CALLS_WITHOUT: u32 = 1000;

/// Number of plans made, whether they were used or not.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Number of unused plans since a plan was last used.
static UNUSED: AtomicU32 = AtomicU32::new(0);

/// Number of calls that still have to take the stock path without a plan.
static CALLS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Total number of plans made.
pub fn made() -> u64 {
    MADE.load(Relaxed)
}

/// Counts a plan that is about to be made.
pub fn count() {
    MADE.fetch_add(1, Relaxed);
}

/// True if this call must not make a plan. Counts the call.
pub fn skip_planning() -> bool {
    CALLS_LEFT.load(Relaxed) > 0 && CALLS_LEFT.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Counts a plan that was stale before it was used.
pub fn count_unused() {
    if UNUSED.fetch_add(1, Relaxed) + 1 >= MAX_UNUSED {
        UNUSED.store(0, Relaxed);
        CALLS_LEFT.store(CALLS_WITHOUT, Relaxed);
    }
}

/// Resets the count of unused plans, because a plan was used.
pub fn used() {
    if UNUSED.load(Relaxed) != 0 {
        UNUSED.store(0, Relaxed);
    }
}
