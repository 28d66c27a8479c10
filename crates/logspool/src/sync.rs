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
