//! Atomics and locks for the crates: the standard library's, or loom's when the models run.

pub use std::sync::{PoisonError, TryLockError};

#[cfg(loom)]
pub use loom::{
    sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
    thread::yield_now as pause,
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop as pause,
    sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence},
    sync::{Condvar, Mutex, MutexGuard},
};

/// Returns `strong`. In a model run whose `LOGSPOOL_WEAKEN` is `name` it returns `Relaxed`, so that the model fails.
#[inline(always)]
pub fn guarded(name: &str, strong: Ordering) -> Ordering {
    if is_weakened(name) { Ordering::Relaxed } else { strong }
}

/// Whether this model run leaves out the ordering or fence `name`.
#[cfg(loom)]
pub fn is_weakened(name: &str) -> bool {
    // Uses a lock of the standard library, because the models must not see it.
    static WEAKENED: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("LOGSPOOL_WEAKEN").unwrap_or_default());
    *WEAKENED == name
}

/// Always false: outside of model runs nothing is weakened.
#[cfg(not(loom))]
#[inline(always)]
pub const fn is_weakened(_name: &str) -> bool {
    false
}
