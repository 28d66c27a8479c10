//! A lock that a forked child can take even if its holder is a thread of the parent.
//!
//! The native threads are asked to stop before a fork, but a thread in a long or stuck call does not stop. A `Mutex`
//! held by such a thread would stay locked in the child for ever. A [`ForkSafeLock`] stores its holder's process number
//! (`generation.rs`) instead. Unlike a process id, a process number is never used again by a child or grandchild. A
//! child may find the data half changed, so a `ForkSafeLock` holds plain data only. [`PerProcess`] is for all other
//! data.
//!
//! Orderings: `lock_order`, when a thread takes the lock, pairs with `unlock_order` in `ForkSafeGuard::drop`. The pair
//! makes the last holder's writes visible (model: `a_lock_makes_writes_of_its_last_holder_visible`).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use crate::generation;
use crate::sleep::sleep_interruptibly;
use crate::sync::{AtomicU64, Ordering, guarded};

/// First and longest pause between two tries. Chosen: most holders finish in microseconds. Recovery holds the lock for
/// as long as its files take, and a poll every 2 ms costs nothing.
const FIRST_PAUSE: Duration = Duration::from_micros(50);
const MAX_PAUSE: Duration = Duration::from_millis(2);

/// Acquire: see [`unlock_order`].
#[inline(always)]
fn lock_order() -> Ordering {
    guarded("lock_is_taken", Ordering::Acquire)
}

/// Release: the thread that takes the lock next sees what this holder wrote.
#[inline(always)]
fn unlock_order() -> Ordering {
    guarded("lock_is_released", Ordering::Release)
}

/// Data with at most one holder at a time in each process.
pub struct ForkSafeLock<T: Copy> {
    /// Process number of the holder, or 0.
    holder: AtomicU64,
    data: UnsafeCell<T>,
}

// SAFETY: the data is reached only through a `ForkSafeGuard`, and a process has at most one of them at a time.
unsafe impl<T: Copy + Send> Sync for ForkSafeLock<T> {}

/// A held lock; dropping it releases the lock.
pub struct ForkSafeGuard<'a, T: Copy>(&'a ForkSafeLock<T>);

impl<T: Copy> ForkSafeLock<T> {
    /// A lock that no thread holds.
    #[cfg(not(loom))]
    pub const fn new(data: T) -> Self {
        Self { holder: AtomicU64::new(0), data: UnsafeCell::new(data) }
    }

    /// A lock that no thread holds.
    #[cfg(loom)]
    pub fn new(data: T) -> Self {
        Self { holder: AtomicU64::new(0), data: UnsafeCell::new(data) }
    }

    /// Takes the lock, unless a thread of this process holds it.
    pub fn try_lock(&self) -> Option<ForkSafeGuard<'_, T>> {
        let process = generation::process();
        let mut holder = 0;
        loop {
            match self.holder.compare_exchange(holder, process, lock_order(), Ordering::Relaxed) {
                Ok(_) => return Some(ForkSafeGuard(self)),
                Err(other) if other == process => return None,
                // The lock was released meanwhile, or its holder is a thread of the parent, which does not exist here.
                Err(other) => holder = other,
            }
        }
    }

    /// Takes the lock, and waits for it without a limit. A thread that calls this while it holds the lock waits for
    /// ever.
    pub fn lock(&self) -> ForkSafeGuard<'_, T> {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Some(held) = self.try_lock() {
                return held;
            }
            sleep_interruptibly(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }
}

impl<T: Copy> Deref for ForkSafeGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this is the only `ForkSafeGuard` of the process (`try_lock`).
        unsafe { &*self.0.data.get() }
    }
}

impl<T: Copy> DerefMut for ForkSafeGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only `ForkSafeGuard` of the process (`try_lock`).
        unsafe { &mut *self.0.data.get() }
    }
}

impl<T: Copy> Drop for ForkSafeGuard<'_, T> {
    fn drop(&mut self) {
        self.0.holder.store(0, unlock_order());
    }
}

/// A value per process, used by one thread at a time. A forked child begins with a new value and leaves the parent's
/// value unchanged.
pub struct PerProcess<T>(ForkSafeLock<ValuePlace<T>>);

struct ValuePlace<T> {
    /// Number of the process that owns the value; 0 if there is no value.
    process: u64,
    value: *mut T,
}

impl<T> Clone for ValuePlace<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ValuePlace<T> {}

// SAFETY: only the holder of the lock uses the pointer.
unsafe impl<T: Send> Send for ValuePlace<T> {}

#[cfg(not(loom))]
impl<T: Default + Send> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
impl<T: Default + Send> PerProcess<T> {
    /// A `PerProcess` without a value yet.
    pub const fn new() -> Self {
        Self(ForkSafeLock::new(ValuePlace { process: 0, value: std::ptr::null_mut() }))
    }

    /// Runs `work` on this process's value. A thread that calls this inside `work` waits for ever.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut place = self.0.lock();
        let process = generation::process();
        if place.process != process {
            *place = ValuePlace { process, value: Box::into_raw(Box::default()) };
        }
        // SAFETY: this process made the value above and never frees it; only the holder of the lock is here.
        work(unsafe { &mut *place.value })
    }

    /// In a forked child without a value of its own: calls `look` with the parent's value, unless a thread of the
    /// parent was using it at the fork.
    pub fn inspect_inherited(&self, look: impl FnOnce(&T)) {
        // Relaxed: `try_lock` below orders the reads of the value.
        let is_whole = self.0.holder.load(Ordering::Relaxed) == 0;
        let Some(place) = self.0.try_lock().filter(|_| is_whole) else { return };
        if place.process != generation::process() && !place.value.is_null() {
            // SAFETY: the parent made the value and never frees it. No thread was changing it at the fork, and only the
            // holder of the lock is here.
            look(unsafe { &*place.value });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_the_lock() {
        static LOCK: ForkSafeLock<u64> = ForkSafeLock::new(0);
        let count = || (0..10_000).for_each(|_| *LOCK.lock() += 1);
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));

        assert_eq!(40_000, *LOCK.lock());
        let _held = LOCK.lock();
        assert!(LOCK.try_lock().is_none());
    }

    #[test]
    fn a_forked_child_takes_the_lock_from_a_thread_of_its_parent() {
        static LOCK: ForkSafeLock<u64> = ForkSafeLock::new(7);
        let held = LOCK.lock();
        // SAFETY: the child does nothing but atomics and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let taken = LOCK.try_lock().is_some_and(|held| *held == 7);
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!taken)) };
        }
        let mut status = -1;
        // SAFETY: a child of ours and a local.
        unsafe { libc::waitpid(child, &mut status, 0) };

        assert_eq!(0, status);
        assert!(LOCK.try_lock().is_none(), "the child's lock is not the parent's");
        drop(held);
    }

    #[test]
    fn a_forked_child_starts_with_its_own_value() {
        static VALUE: PerProcess<u64> = PerProcess::new();
        VALUE.with(|value| *value = 7);
        // SAFETY: the child does nothing but atomics, two allocations and `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut shown = Vec::new();
            VALUE.inspect_inherited(|value| shown.push(*value));
            let is_new = VALUE.with(|value| std::mem::replace(value, 8)) == 0 && VALUE.with(|value| *value) == 8;
            VALUE.inspect_inherited(|value| shown.push(*value));
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!is_new || shown != [7])) };
        }
        let mut status = -1;
        // SAFETY: a child of ours and a local.
        unsafe { libc::waitpid(child, &mut status, 0) };

        assert_eq!((0, 7), (status, VALUE.with(|value| *value)));
    }
}
