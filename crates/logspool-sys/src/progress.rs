//! Callers sleep here while they wait for the native threads, and every step that may end a wait wakes them.
//!
//! One word for the whole process. A caller reads the count of steps, looks whether it still has to wait, and sleeps
//! only as long as the count is the same; so no step between the look and the sleep is missed. Steps cost one atomic
//! operation where nobody sleeps. Async-signal-safe.
//!
//! Atomics outside `queue` and `stats`: that word, because the collector must not take a lock to wake a caller.

use std::time::{Duration, Instant};

use crate::futex::{HIGH_ONE, WaitWord, high, low};
use crate::sync::Ordering;

/// Low half: steps so far, modulo 2^32. High half: sleeping callers.
static STEPS: WaitWord = WaitWord::new(0);

/// Notes a step, and wakes the callers that sleep.
pub fn note() {
    let step = |word: u64| Some(word - u64::from(low(word)) + u64::from(low(word).wrapping_add(1)));
    // Release pairs with the Acquire in `steps`: a caller that sees the step sees what was done in it.
    let (Ok(before) | Err(before)) = STEPS.word.fetch_update(Ordering::Release, Ordering::Relaxed, step);
    if high(before) > 0 {
        STEPS.wake(u32::MAX);
    }
}

/// The count of steps. Read it before looking whether there is something to wait for.
pub fn steps() -> u32 {
    low(STEPS.word.load(Ordering::Acquire))
}

/// Waits for a step after `seen` without sleeping, until `end`. Returns whether it came.
pub fn await_step(seen: u32, end: Instant) -> bool {
    while Instant::now() < end {
        if steps() != seen {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// Sleeps until a step after `seen`, at most for `time`, or until this thread has handled a signal.
pub fn sleep(seen: u32, time: Duration) {
    STEPS.word.fetch_add(HIGH_ONE, Ordering::Relaxed);
    STEPS.wait(seen, Some(time));
    STEPS.word.fetch_sub(HIGH_ONE, Ordering::Relaxed);
}

/// In a forked child: the parent's sleeping threads do not exist here.
pub fn forget_sleepers() {
    STEPS.word.store(0, Ordering::Relaxed);
}

#[cfg(test)]
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
                while high(STEPS.peek()) == 0 {
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
