//! A word in memory to wait on until another thread changes it: Linux's futex, or its model under loom.

use std::time::Duration;

#[cfg(not(loom))]
use crate::platform;
use crate::sync::{AtomicU64, Ordering};

/// Two halves of 32 bits in one atomic word; threads wait on the low half.
///
/// The user defines the meaning of the halves. Both halves are in one word, so that a change of the low half sees in
/// the same atomic operation whether threads wait (high half). So no fence is needed, and no wake-up is sent without
/// need.
#[derive(Debug)]
pub struct WaitWord {
    /// The word itself. Users of the methods may change it with any atomic operation.
    pub word: AtomicU64,
    #[cfg(loom)]
    sleepers: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

/// The low half of a word.
#[inline]
pub const fn low(word: u64) -> u32 {
    word as u32
}

/// The high half of a word.
#[inline]
pub const fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

/// The word's value for a 1 in the high half.
pub const HIGH_ONE: u64 = 1 << 32;

impl WaitWord {
    /// A word with a first value.
    #[cfg(not(loom))]
    pub const fn new(word: u64) -> Self {
        Self { word: AtomicU64::new(word) }
    }

    /// A word with a first value.
    #[cfg(loom)]
    pub fn new(word: u64) -> Self {
        Self { word: AtomicU64::new(word), sleepers: Default::default() }
    }
}

#[cfg(not(loom))]
impl WaitWord {
    /// Waits while the low half is `expected`, at most for `timeout`; with `None` without limit.
    ///
    /// May return early, after this thread handled a signal or without a reason, so the caller must check the word
    /// again.
    #[inline]
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) {
        // SAFETY: the address lies in a word that lives as long as `self`.
        unsafe { platform::futex_wait(self.address(), expected, timeout) };
    }

    /// Wakes up to `count` waiting threads. Does not change the word.
    #[inline]
    pub fn wake(&self, count: u32) {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        // SAFETY: the address lies in a word that lives as long as `self`.
        unsafe { platform::futex_wake(self.address(), count) };
    }

    /// Address of the low half.
    fn address(&self) -> *const u32 {
        let halves = self.word.as_ptr().cast::<u32>().cast_const();
        if cfg!(target_endian = "little") { halves } else { halves.wrapping_add(1) }
    }
}

#[cfg(loom)]
impl WaitWord {
    /// As in the kernel, the check and the start of the sleep are one operation, as seen by the threads that wake.
    #[inline]
    pub fn wait(&self, expected: u32, _timeout: Option<Duration>) {
        let mut kept = self.sleepers.0.lock().unwrap();
        if low(self.word.load(Ordering::Relaxed)) == expected {
            kept = self.sleepers.1.wait(kept).unwrap();
        }
        drop(kept);
    }

    /// Wakes all threads, which the contract of `wait` allows: a waiting thread may return early.
    #[inline]
    pub fn wake(&self, _count: u32) {
        drop(self.sleepers.0.lock().unwrap());
        self.sleepers.1.notify_all();
    }
}

impl WaitWord {
    /// Loads the word without ordering other memory.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }
}
