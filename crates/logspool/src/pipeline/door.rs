//! Shutting the door means: wait until every push that began before a change has ended.
//!
//! A push compares the generation (`generation.rs`) inside the window in which it writes. The closer advances the
//! generation and waits until no window is open. Then every push of the old generation is published, and every later
//! push takes its slow path first, where it sees the change. So a sink is closed, or the process is ended, only after
//! the last record for it. This holds however long the pushing thread waits for the processor.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the word that announces the end of the
//! process, read on the slow path.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logspool_sys::barrier;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::generation;
use logspool_sys::platform;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;

use super::slot::existing;
use super::state::Pipeline;

/// How long a push that has compared the generation may take to publish.
///
/// Chosen: publishing takes nanoseconds. If the thread has to wait for the processor, it takes tens of milliseconds on
/// a busy machine.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Pause between two checks. Chosen: a running push needs less time than this, and a thread that waits for the
/// processor needs more.
const PAUSE: Duration = Duration::from_micros(50);

/// Makes every producer take its slow path once, and waits for pushes that are under way. Async-signal-safe.
fn shut(pipeline: &Pipeline, patience: Duration) {
    generation::advance();
    barrier::heavy();
    let end = monotonic_ns() + patience.as_nanos() as u64;
    let lanes = pipeline.segment.header().lanes.observe() as usize;
    for index in 0..lanes {
        while !pipeline.segment.lane(index).window.is_closed() && monotonic_ns() < end {
            sleep_interruptibly(PAUSE);
        }
    }
}

/// Waits for all pushes that began before the caller's last change.
pub(super) fn settle_pushes(pipeline: &Pipeline) {
    shut(pipeline, TIMEOUT);
}

/// Waits until every push that began before the call is published. Each later push takes its slow path once, where a
/// language binding sees the changes that it made before this call. Call it without an interpreter lock.
pub fn settle() {
    if let Some(pipeline) = existing() {
        settle_pushes(pipeline);
    }
}

/// Id of the process that is about to end (upper half) and of the thread that ends it. Logging calls of other threads
/// wait while this word is set.
static DYING: AtomicU64 = AtomicU64::new(0);

/// Time on the monotonic clock when logging calls stop waiting for the announced end of the process; 0 means never.
static DYING_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// Used in place of a thread id: every thread waits.
const NO_THREAD: u32 = 0;

fn thread_id() -> u32 {
    platform::thread_id() as u32
}

/// Makes the pushes of all other threads wait on their slow path until [`open`] is called.
pub(super) fn shut_for_good(pipeline: &Pipeline) {
    shut_until(pipeline, 0, thread_id(), TIMEOUT);
}

/// Reverts [`shut_for_good`].
pub(super) fn open() {
    DYING.publish(0);
}

/// Makes every push, of this thread too, wait on its slow path until `until_ns`. Async-signal-safe.
pub(super) fn shut_for_all(pipeline: &Pipeline, until_ns: u64, patience: Duration) {
    shut_until(pipeline, until_ns, NO_THREAD, patience);
}

/// Makes the pushes of all threads except `ender` wait on their slow path until `until_ns`; 0 means for ever.
/// Async-signal-safe.
fn shut_until(pipeline: &Pipeline, until_ns: u64, ender: u32, patience: Duration) {
    DYING_UNTIL_NS.store(until_ns, Ordering::Relaxed);
    // Pairs with `observe` in `wait_for_death`: a reader of this word also sees the time until which it holds.
    DYING.publish(word(ender));
    shut(pipeline, patience);
}

fn word(ender: u32) -> u64 {
    u64::from(std::process::id()) << 32 | u64::from(ender)
}

/// Makes the pushes of all other threads wait until `until_ns` at most, for an end of the process that may not happen.
/// Async-signal-safe.
pub(super) fn shut_for_a_while(pipeline: &Pipeline, until_ns: u64, patience: Duration) {
    let own = word(thread_id());
    let dying = DYING.load(Ordering::Relaxed);
    // If the process is ending already, pushes already wait for good, so leave the word as it is.
    if dying >> 32 != own >> 32 {
        DYING_UNTIL_NS.store(until_ns, Ordering::Relaxed);
        // This publish has the same partner as the publish in `shut_until`.
        let _ = DYING.publish_over(dying, own);
    }
    shut(pipeline, patience);
}

/// Reverts [`shut_for_a_while`] of this thread. Async-signal-safe.
pub(super) fn open_again() {
    if DYING_UNTIL_NS.load(Ordering::Relaxed) != 0 {
        let _ = DYING.publish_over(word(thread_id()), 0);
    }
}

/// Blocks the caller while the process ends, unless the caller is the thread that ends it.
pub(super) fn wait_for_death() {
    loop {
        let dying = DYING.observe();
        // A child forked in the meantime inherits the word, but the child itself is not ending.
        if dying == 0 || dying >> 32 != u64::from(std::process::id()) || dying as u32 == thread_id() {
            return;
        }
        let until = DYING_UNTIL_NS.load(Ordering::Relaxed);
        if until != 0 && monotonic_ns() >= until {
            return;
        }
        sleep_interruptibly(Duration::from_millis(10));
    }
}
