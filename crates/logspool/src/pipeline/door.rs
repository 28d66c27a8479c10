//! Shutting the door: after it no record comes that was pushed under what held before.
//!
//! A push looks at the turn (`generation.rs`) inside the window in which it writes. Who moves the turn and then waits
//! until no window is open knows that every push under the old turn is published, and every later one takes its slow
//! way first, where it learns what has changed. So a sink is closed, and the process ended, behind the last record
//! for it, however long the thread that pushes it is kept from the processor.
//!
//! Atomics outside `queue` and `stats`: the word that says that the process ends, which threads on their slow way read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::barrier;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::generation;
use logspool_sys::nap::nap;

use super::slot::existing;
use super::state::Pipeline;

/// How long a push that passed its look at the turn may take to publish. Chosen: it takes nanoseconds, or as long as
/// its thread is kept from the processor, which is tens of milliseconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks. Chosen: a push that is under way takes less, and a thread that waits for the processor more.
const PAUSE: Duration = Duration::from_micros(50);

/// Lets every push take its slow way once, and waits for those that are under way. Async-signal-safe.
fn shut(pipeline: &Pipeline, patience: Duration) {
    generation::advance();
    barrier::heavy();
    let end = monotonic_ns() + patience.as_nanos() as u64;
    let lanes = pipeline.segment.header().lanes.load(Ordering::Acquire) as usize;
    for index in 0..lanes {
        while !pipeline.segment.lane(index).producer.has_no_window() && monotonic_ns() < end {
            nap(PAUSE);
        }
    }
}

/// Waits until no push is under way that began under what the caller has just changed.
pub(super) fn settle_pushes(pipeline: &Pipeline) {
    shut(pipeline, PATIENCE);
}

/// Waits until every push is published that began before the call. A later push takes its slow way once, where a shell
/// finds out what it changed before the call. Call without an interpreter lock.
pub fn settle() {
    if let Some(pipeline) = existing() {
        settle_pushes(pipeline);
    }
}

/// The process that is about to end, in the upper half, and the thread that ends it: other callers wait for that.
static DYING: AtomicU64 = AtomicU64::new(0);

/// When others wait no longer for the end that a crash announced; 0 is never.
static DYING_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// The id of no thread.
const NOBODY: u32 = 0;

fn thread_id() -> u32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Every push but this thread's waits on its slow way for good.
pub(super) fn shut_for_good(pipeline: &Pipeline) {
    shut_until(pipeline, 0, thread_id(), PATIENCE);
}

/// Takes [`shut_for_good`] back.
pub(super) fn open() {
    DYING.store(0, Ordering::Release);
}

/// Every push waits on its slow way until then, this thread's too. Async-signal-safe.
pub(super) fn shut_for_all(pipeline: &Pipeline, until_ns: u64, patience: Duration) {
    shut_until(pipeline, until_ns, NOBODY, patience);
}

/// Every push but the ender's waits on its slow way until then, or with 0 for good. Async-signal-safe.
fn shut_until(pipeline: &Pipeline, until_ns: u64, ender: u32, patience: Duration) {
    DYING_UNTIL_NS.store(until_ns, Ordering::Relaxed);
    // Release pairs with the Acquire in `wait_for_death`: who sees the word sees how long it holds.
    DYING.store(word(ender), Ordering::Release);
    shut(pipeline, patience);
}

fn word(ender: u32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(ender)
}

/// For an end that may not come: every push but this thread's waits until then at most. Async-signal-safe.
pub(super) fn shut_for_a_while(pipeline: &Pipeline, until_ns: u64, patience: Duration) {
    let own = word(thread_id());
    let dying = DYING.load(Ordering::Relaxed);
    // Who ends the process already has shut the door for good.
    if dying >> 32 != own >> 32 {
        DYING_UNTIL_NS.store(until_ns, Ordering::Relaxed);
        // Release as in `shut_until`.
        let _ = DYING.compare_exchange(dying, own, Ordering::Release, Ordering::Relaxed);
    }
    shut(pipeline, patience);
}

/// Takes [`shut_for_a_while`] of this thread back. Async-signal-safe.
pub(super) fn open_again() {
    if DYING_UNTIL_NS.load(Ordering::Relaxed) != 0 {
        let _ = DYING.compare_exchange(word(thread_id()), 0, Ordering::Release, Ordering::Relaxed);
    }
}

/// Holds the caller back while the process ends.
pub(super) fn wait_for_death() {
    loop {
        let dying = DYING.load(Ordering::Acquire);
        // A child that was forked meanwhile has the word and does not die.
        if dying == 0 || dying >> 32 != u64::from(std::process::id()) || dying as u32 == thread_id() {
            return;
        }
        let until = DYING_UNTIL_NS.load(Ordering::Relaxed);
        if until != 0 && monotonic_ns() >= until {
            return;
        }
        nap(Duration::from_millis(10));
    }
}
