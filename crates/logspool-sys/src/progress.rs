//! Callers that wait for the native threads sleep here, and every step that may end a wait wakes them.
//!
//! The whole process uses one word. A caller reads the count of steps, checks whether it must wait, and sleeps only
//! while the count is unchanged. So it misses no step between the check and the sleep. A step costs one atomic
//! operation if no caller sleeps. All functions are async-signal-safe.
//!
//! The word is an atomic, because the collector must not take a lock to wake a caller.

use std::time::Duration;
#[cfg(not(loom))]
use std::time::Instant;

use crate::futex::{HIGH_ONE, WaitWord, high, low};
use crate::sync::{Ordering, guarded};

/// Ordering of a step: a caller that sees the step also sees everything that was done before it (model:
/// `a_step_makes_its_work_visible_and_wakes_waiters`).
#[inline(always)]
fn step_order() -> Ordering {
    guarded("step_is_noted", Ordering::Release)
}

/// Ordering of the read of the count: pairs with [`step_order`].
#[inline(always)]
fn seen_order() -> Ordering {
    guarded("step_is_seen", Ordering::Acquire)
}

/// A count of steps that threads sleep on.
#[derive(Debug)]
pub(crate) struct Steps {
    /// Low half: number of steps, modulo 2^32. High half: number of sleeping callers.
    word: WaitWord,
}

impl Steps {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self { word: WaitWord::new(0) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self { word: WaitWord::new(0) }
    }

    pub(crate) fn note(&self) {
        let step = |word: u64| Some(word - u64::from(low(word)) + u64::from(low(word).wrapping_add(1)));
        let (Ok(before) | Err(before)) = self.word.word.fetch_update(step_order(), Ordering::Relaxed, step);
        if high(before) > 0 {
            self.word.wake(u32::MAX);
        }
    }

    pub(crate) fn steps(&self) -> u32 {
        low(self.word.word.load(seen_order()))
    }

    pub(crate) fn sleep(&self, seen: u32, time: Duration) {
        self.word.word.fetch_add(HIGH_ONE, Ordering::Relaxed);
        self.word.wait(seen, Some(time));
        self.word.word.fetch_sub(HIGH_ONE, Ordering::Relaxed);
    }
}

/// The step counter of this process.
#[cfg(not(loom))]
static STEPS: Steps = Steps::new();

/// Counts a step, and wakes the callers that sleep.
#[cfg(not(loom))]
pub fn note() {
    STEPS.note();
}

/// The count of steps. Read it before checking whether there is something to wait for.
#[cfg(not(loom))]
pub fn steps() -> u32 {
    STEPS.steps()
}

/// Waits for a step after `seen` without sleeping, until the time `end`. Returns whether a step came.
#[cfg(not(loom))]
pub fn spin_until_step(seen: u32, end: Instant) -> bool {
    while Instant::now() < end {
        if steps() != seen {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Sleeps until the number of steps differs from `seen`, for at most `time`. Returns earlier if this thread handles a
/// signal.
#[cfg(not(loom))]
pub fn sleep(seen: u32, time: Duration) {
    STEPS.sleep(seen, time);
}

/// In a forked child: resets the number of sleeping threads, because the parent's threads do not exist in the child.
#[cfg(not(loom))]
pub fn forget_sleepers() {
    STEPS.word.word.store(0, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_step_after_the_look_ends_the_sleep() {
        let seen = steps();
        note();

        let begun = Instant::now();
        sleep(seen, Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_sleeping_caller_is_woken_by_a_step() {
        let done = Arc::new(AtomicBool::new(false));
        let worker = std::thread::spawn({
            let done = done.clone();
            move || {
                while high(STEPS.word.peek()) == 0 {
                    std::thread::yield_now();
                }
                done.store(true, Ordering::Relaxed);
                note();
            }
        });

        let begun = Instant::now();
        loop {
            let seen = steps();
            if done.load(Ordering::Relaxed) {
                break;
            }
            sleep(seen, Duration::from_secs(60));
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        worker.join().expect("it does not panic");
    }

    #[test]
    fn a_sleep_without_a_step_ends_in_time() {
        let begun = Instant::now();
        sleep(steps(), Duration::from_millis(5));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
