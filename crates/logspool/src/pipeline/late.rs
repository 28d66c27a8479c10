//! Records that are logged after the drain of `exit()`.
//!
//! Functions that a program has registered earlier run after that drain, such as the destructors of C++ objects that are
//! older than the logger. The first record of such a function registers another drain, which `exit()` calls as soon as
//! the function has returned.
//!
//! Atomics belong in `queue` and `stats`; that of this file is an exception: whether the drain has run, read on the slow
//! path.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the drain of `exit()` has run, and no other one is registered yet.
static IS_DRAINED: AtomicBool = AtomicBool::new(false);

/// The function that drains.
static DRAIN: OnceLock<extern "C" fn()> = OnceLock::new();

/// Calls a function at `exit()` and at `quick_exit()`, which have lists of their own. Returns whether both have room.
pub fn call_at_exit(function: extern "C" fn()) -> bool {
    unsafe extern "C" {
        // `at_quick_exit` is part of the C standard, but the crate `libc` does not declare it.
        fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
    }
    // SAFETY: the function stays valid until the process ends.
    unsafe { libc::atexit(function) == 0 && at_quick_exit(function) == 0 }
}

/// Call it at the end of a function of [`call_at_exit`] that drains. `drain` is registered for later records, and calls
/// this function, too.
pub fn expect_late_records(drain: extern "C" fn()) {
    DRAIN.get_or_init(|| drain);
    IS_DRAINED.store(true, Ordering::Relaxed);
}

/// Call it on the slow path of a record, which each thread takes after the drain.
#[inline]
pub(super) fn drain_late_records() {
    if IS_DRAINED.load(Ordering::Relaxed) {
        drain_again();
    }
}

#[cold]
fn drain_again() {
    if IS_DRAINED.swap(false, Ordering::Relaxed)
        && let Some(drain) = DRAIN.get()
    {
        call_at_exit(*drain);
    }
}
