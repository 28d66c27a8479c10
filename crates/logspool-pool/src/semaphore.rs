//! A counting semaphore: one atomic operation if no thread waits, a futex otherwise.
//!
//! Low half of the word: free permits. High half: threads that wait or are about to. A thread that finds no permit
//! counts itself as waiting in the same operation, so a release sees it and wakes it. A release before the sleep
//! changes the low half, and the sleep does not begin. Another thread may take the permit before the woken one. The
//! woken thread then sleeps again, still counted, and the next release wakes it. Like `threading.Semaphore` it is not
//! fair, and no permit is lost.

use std::fmt;
use std::time::Duration;

use logspool_sys::futex::{HIGH_ONE, WaitWord, high, low};
use logspool_sys::sync::{Ordering, guarded};

/// Maximum number of free permits.
pub const MAX_PERMITS: u32 = i32::MAX as u32;

/// The release would exceed `MAX_PERMITS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPermits;

impl fmt::Display for TooManyPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a semaphore holds at most {MAX_PERMITS} permits")
    }
}

/// Ordering for taking a permit: shows the taker what the permit's last holder wrote.
#[inline(always)]
fn acquire_order() -> Ordering {
    guarded("permit_is_taken", Ordering::Acquire)
}

/// Ordering for giving permits back: pairs with [`acquire_order`].
#[inline(always)]
fn release_order() -> Ordering {
    guarded("permit_is_given", Ordering::Release)
}

/// A counted set of permits that threads acquire and release.
///
/// ```
/// let semaphore = logspool_pool::Semaphore::new(1).unwrap();
/// assert!(semaphore.try_acquire());
/// assert!(!semaphore.try_acquire());
/// semaphore.release(1).unwrap();
/// ```
#[derive(Debug)]
pub struct Semaphore {
    word: WaitWord,
}

impl Semaphore {
    /// A semaphore with `permits` free.
    ///
    /// # Errors
    ///
    /// `permits` is more than `MAX_PERMITS`.
    pub fn new(permits: u32) -> Result<Self, TooManyPermits> {
        if permits > MAX_PERMITS {
            return Err(TooManyPermits);
        }
        Ok(Self { word: WaitWord::new(permits.into()) })
    }

    /// Number of free permits at this moment.
    #[inline]
    pub fn permits(&self) -> u32 {
        low(self.word.peek())
    }

    /// Threads waiting at the moment.
    pub fn waiting(&self) -> u32 {
        high(self.word.peek())
    }

    /// Takes a permit if one is free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        let mut word = self.word.peek();
        while low(word) > 0 {
            match self.word.word.compare_exchange_weak(word, word - 1, acquire_order(), Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Takes a permit, after waiting for at most `timeout`. Returns early on a wake-up or a handled signal. `false`: no
    /// permit was taken, and the caller decides whether to wait again.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        if !self.acquire_or_wait() {
            return true;
        }
        self.word.wait(0, timeout);
        self.acquire_or_stop_waiting()
    }

    /// Takes a permit, or counts this thread as waiting if no permit is free. Returns whether it waits.
    fn acquire_or_wait(&self) -> bool {
        let mut word = self.word.peek();
        loop {
            let next = if low(word) > 0 { word - 1 } else { word + HIGH_ONE };
            match self.word.word.compare_exchange_weak(word, next, acquire_order(), Ordering::Relaxed) {
                Ok(_) => return low(word) == 0,
                Err(now) => word = now,
            }
        }
    }

    /// Stops counting this thread as waiting, and takes a permit if one is free. Returns whether it took one.
    fn acquire_or_stop_waiting(&self) -> bool {
        let mut word = self.word.peek();
        loop {
            let taken = low(word) > 0;
            let next = word - HIGH_ONE - u64::from(taken);
            match self.word.word.compare_exchange_weak(word, next, acquire_order(), Ordering::Relaxed) {
                Ok(_) => return taken,
                Err(now) => word = now,
            }
        }
    }

    /// Gives back `count` permits and wakes as many threads.
    ///
    /// # Errors
    ///
    /// The sum would exceed `MAX_PERMITS`; no permit is given back then.
    #[inline]
    pub fn release(&self, count: u32) -> Result<(), TooManyPermits> {
        let mut word = self.word.peek();
        loop {
            if count > MAX_PERMITS - low(word) {
                return Err(TooManyPermits);
            }
            match self.word.word.compare_exchange_weak(
                word,
                word + u64::from(count),
                release_order(),
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if high(word) > 0 {
            self.word.wake(count);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::Instant;

    use super::*;

    #[test]
    fn permits_are_acquired_and_released() {
        let semaphore = Semaphore::new(2).unwrap();

        assert!(semaphore.try_acquire());
        assert!(semaphore.try_acquire());
        assert!(!semaphore.try_acquire());
        semaphore.release(3).unwrap();

        assert_eq!(3, semaphore.permits());
    }

    #[test]
    fn more_permits_than_fit_are_refused_and_change_nothing() {
        assert!(Semaphore::new(MAX_PERMITS + 1).is_err());
        let semaphore = Semaphore::new(MAX_PERMITS - 1).unwrap();

        assert_eq!(Err(TooManyPermits), semaphore.release(2));
        assert_eq!(Err(TooManyPermits), semaphore.release(u32::MAX));
        assert_eq!(Ok(()), semaphore.release(1));

        assert_eq!(MAX_PERMITS, semaphore.permits());
    }

    #[test]
    fn a_finished_wait_leaves_no_counted_waiter() {
        let semaphore = Semaphore::new(0).unwrap();
        let began = Instant::now();

        while began.elapsed() < Duration::from_millis(20) {
            assert!(!semaphore.wait(Some(Duration::from_millis(20))));
        }

        assert_eq!((0, 0), (semaphore.permits(), semaphore.waiting()));
    }

    #[test]
    fn one_permit_lets_one_thread_in_at_a_time() {
        let (semaphore, inside, rounds) = (Semaphore::new(1).unwrap(), AtomicU32::new(0), AtomicU32::new(0));

        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        while !semaphore.wait(None) {}
                        assert_eq!(0, inside.fetch_add(1, Ordering::Relaxed));
                        if rounds.fetch_add(1, Ordering::Relaxed) % 64 == 0 {
                            std::thread::yield_now();
                        }
                        inside.fetch_sub(1, Ordering::Relaxed);
                        semaphore.release(1).unwrap();
                    }
                });
            }
        });

        assert_eq!((1, 0, 80_000), (semaphore.permits(), semaphore.waiting(), rounds.into_inner()));
    }
}
