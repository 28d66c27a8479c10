//! Atomics and locks behind one door: the standard library's, or loom's when the models run.

pub use std::sync::{PoisonError, TryLockError};

#[cfg(loom)]
pub use loom::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
    thread::yield_now as pause,
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop as pause,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    sync::{Mutex, MutexGuard},
};

/// An ordering that a model guards, and that the models run without where `LOGSPOOL_WEAKEN` has its name.
#[inline(always)]
pub fn guarded(name: &str, strong: Ordering) -> Ordering {
    if is_weakened(name) { Ordering::Relaxed } else { strong }
}

/// Whether the models run without what has this name.
#[cfg(loom)]
pub fn is_weakened(name: &str) -> bool {
    // The standard library's: the models must not see it.
    static WEAKENED: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("LOGSPOOL_WEAKEN").unwrap_or_default());
    *WEAKENED == name
}

/// Outside of the models nothing is.
#[cfg(not(loom))]
#[inline(always)]
pub const fn is_weakened(_name: &str) -> bool {
    false
}
