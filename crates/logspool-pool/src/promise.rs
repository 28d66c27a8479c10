//! The state of one job that a thread may wait for. One word holds it: pending, running, cancelled or finished.
//!
//! The low half of the word holds the state and three flags. A thread that finishes a job first writes the result to
//! the job's own memory; the change of the state then publishes the result.
//!
//! - [`SLEEPERS`]: threads wait on the word and must be woken.
//! - [`WATCHED`]: callbacks or a `Condition` must be notified of the end. The watcher sets the flag before it reads the
//!   state, in the same word. So either the watcher sees the end, or the finishing thread sees the flag.
//! - [`LOCKED`]: a thread changes the list of callbacks.

use std::time::Duration;

use logspool_sys::futex::{WaitWord, low};
use logspool_sys::sync::{Ordering, guarded};

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum JobState {
    /// Not started.
    Pending = 0,
    /// Started.
    Running = 1,
    /// Cancelled before it started; its waiters are not notified yet.
    Cancelled = 2,
    /// Cancelled before it started, and its waiters are notified.
    CancelledAndNotified = 3,
    /// The job has a result or an exception.
    Finished = 4,
}

impl JobState {
    /// Whether the job has ended: finished or cancelled.
    #[inline]
    pub fn is_done(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }

    /// Whether the job will never run.
    #[inline]
    pub fn is_cancelled(self) -> bool {
        matches!(self, Self::Cancelled | Self::CancelledAndNotified)
    }

    fn of(word: u64) -> Self {
        match word & STATE {
            0 => Self::Pending,
            1 => Self::Running,
            2 => Self::Cancelled,
            3 => Self::CancelledAndNotified,
            _ => Self::Finished,
        }
    }
}

const STATE: u64 = 0b111;

/// Flag: threads sleep on the word and must be woken.
pub const SLEEPERS: u64 = 1 << 3;

/// Flag: callbacks or a `Condition` must be notified when the job ends.
pub const WATCHED: u64 = 1 << 4;

/// Flag: a thread reads or changes the data that [`PromiseGuard`] guards. It is set for nanoseconds.
const LOCKED: u64 = 1 << 5;

/// Ordering for loading the state: the thread also sees the result that was written before the state.
#[inline(always)]
fn read_state_order() -> Ordering {
    guarded("end_is_seen", Ordering::Acquire)
}

/// Ordering for storing the state; pairs with [`read_state_order`].
#[inline(always)]
fn set_state_order() -> Ordering {
    guarded("end_is_shown", Ordering::AcqRel)
}

/// The state word of a job.
#[derive(Debug)]
pub struct Promise {
    word: WaitWord,
}

impl Default for Promise {
    fn default() -> Self {
        Self::new()
    }
}

/// Exclusive access to the data that belongs to a promise, such as its callbacks. Dropping it releases the access.
#[derive(Debug)]
pub struct PromiseGuard<'a>(&'a Promise);

impl Promise {
    /// The promise of a job that has not started.
    pub fn new() -> Self {
        Self { word: WaitWord::new(JobState::Pending as u64) }
    }

    /// The state of the job. After the end, the result can be read.
    #[inline]
    pub fn state(&self) -> JobState {
        JobState::of(self.word.word.load(read_state_order()))
    }

    /// Changes the state from `from` to `to`. Returns whether the state was `from`. If `to` is an end, wakes the
    /// threads that sleep.
    fn step(&self, from: JobState, to: JobState) -> bool {
        let mut word = self.word.peek();
        while JobState::of(word) == from {
            let mut next = word & !STATE | to as u64;
            if to.is_done() {
                next &= !SLEEPERS;
            }
            match self.word.word.compare_exchange_weak(word, next, set_state_order(), Ordering::Relaxed) {
                Ok(_) => {
                    if word & SLEEPERS != 0 && to.is_done() {
                        self.word.wake(u32::MAX);
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }

    /// Starts the job. Returns false if the job is not pending.
    #[inline]
    pub fn start(&self) -> bool {
        self.step(JobState::Pending, JobState::Running)
    }

    /// Cancels the job. Returns false if the job is not pending.
    pub fn cancel(&self) -> bool {
        self.step(JobState::Pending, JobState::Cancelled)
    }

    /// Records that the waiters of a cancelled job are notified. Returns false if the job is not
    /// [`JobState::Cancelled`].
    #[inline]
    pub fn note_waiters_notified(&self) -> bool {
        self.step(JobState::Cancelled, JobState::CancelledAndNotified)
    }

    /// Ends the job if only sleeping threads must be notified. Returns false if the job is watched, locked or already
    /// ended.
    #[inline]
    pub fn try_finish_unwatched(&self) -> bool {
        let mut word = self.word.peek();
        loop {
            if word & (WATCHED | LOCKED) != 0 || JobState::of(word).is_done() {
                return false;
            }
            match self.word.word.compare_exchange_weak(
                word,
                JobState::Finished as u64,
                set_state_order(),
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    if word & SLEEPERS != 0 {
                        self.word.wake(u32::MAX);
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
    }

    /// Ends the job, whether it is watched or not. Returns false if the job has already ended. The watchers to notify
    /// are listed in the data that `PromiseGuard` guards.
    #[inline]
    pub fn finish(&self, _locked: &PromiseGuard<'_>) -> bool {
        self.step(JobState::Running, JobState::Finished) || self.step(JobState::Pending, JobState::Finished)
    }

    /// In a forked child: ends a job that has not started, or records that a cancelled one is notified. Every thread
    /// that sleeps, watches, holds the lock or would notify is in the parent. Returns false if there was nothing to do.
    pub fn end_after_fork(&self) -> bool {
        let end = match self.state() {
            JobState::Pending => JobState::Finished,
            JobState::Cancelled => JobState::CancelledAndNotified,
            _ => return false,
        };
        // In a forked child no other thread exists.
        self.word.word.swap(end as u64, set_state_order());
        true
    }

    /// Waits for the end until woken, a signal was handled or `timeout` is over. Returns whether the job is done.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut word = self.word.word.load(read_state_order());
        loop {
            if JobState::of(word).is_done() {
                return true;
            }
            if word & SLEEPERS != 0 {
                break;
            }
            match self.word.word.compare_exchange_weak(word, word | SLEEPERS, set_state_order(), read_state_order()) {
                Ok(_) => word |= SLEEPERS,
                Err(now) => word = now,
            }
        }
        self.word.wait(low(word), timeout);
        self.state().is_done()
    }

    /// Takes exclusive access to the data that belongs to the promise.
    #[inline]
    pub fn lock(&self) -> PromiseGuard<'_> {
        self.lock_with(LOCKED)
    }

    /// As [`Self::lock`], and the end must be notified from now on.
    #[inline]
    pub fn lock_and_watch(&self) -> PromiseGuard<'_> {
        self.lock_with(LOCKED | WATCHED)
    }

    #[inline]
    fn lock_with(&self, flags: u64) -> PromiseGuard<'_> {
        let mut word = self.word.peek();
        loop {
            if word & LOCKED != 0 {
                logspool_sys::sync::pause();
                word = self.word.peek();
                continue;
            }
            match self.word.word.compare_exchange_weak(word, word | flags, set_state_order(), Ordering::Relaxed) {
                Ok(_) => return PromiseGuard(self),
                Err(now) => word = now,
            }
        }
    }
}

impl Drop for PromiseGuard<'_> {
    fn drop(&mut self) {
        self.0.word.word.fetch_and(!LOCKED, set_state_order());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_ends_waiting_jobs_whoever_held_the_lock() {
        let promise = Promise::new();
        std::mem::forget(promise.lock_and_watch());
        assert!(promise.end_after_fork());
        assert_eq!(JobState::Finished, promise.state());
        drop(promise.lock_and_watch());
        assert!(!promise.end_after_fork());
    }

    #[test]
    fn a_forked_child_leaves_running_jobs_and_completes_cancelled_ones() {
        let (running, cancelled) = (Promise::new(), Promise::new());
        assert!(running.start());
        assert!(cancelled.cancel());
        std::mem::forget(cancelled.lock_and_watch());

        assert!(!running.end_after_fork());
        assert!(cancelled.end_after_fork());
        assert_eq!((JobState::Running, JobState::CancelledAndNotified), (running.state(), cancelled.state()));
        drop(cancelled.lock_and_watch());
    }
}
