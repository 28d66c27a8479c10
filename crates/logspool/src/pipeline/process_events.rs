//! What runs when a process without Python forks, crashes or ends.
//!
//! Atomics belong in `queue` and `stats`; that of this file is an exception: whether the drain at the end has run, read
//! on the slow path.

use std::panic::catch_unwind;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use super::crash::install_crash_drain;
use super::life::{after_fork_in_child, after_fork_in_parent, before_fork, end, watch_after_fork};
use super::settings::shutdown_timeout;
use super::signals::install_signal_drain;
use super::unwritten::report_unwritten;

/// Calls a function at `exit()` and at `quick_exit()`, which have lists of their own. Returns whether both have room.
pub fn call_at_exit(function: extern "C" fn()) -> bool {
    unsafe extern "C" {
        // `at_quick_exit` is part of the C standard, but the crate `libc` does not declare it.
        fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
    }
    // SAFETY: the function stays valid until the process ends.
    unsafe { libc::atexit(function) == 0 && at_quick_exit(function) == 0 }
}

extern "C" fn at_exit() {
    let _ = catch_unwind(|| {
        let timeout = shutdown_timeout();
        report_unwritten(end(timeout), timeout, "logspool recover");
    });
    expect_late_records();
}

/// Whether the drain of `exit()` has run, and no other one is registered yet.
static IS_DRAINED: AtomicBool = AtomicBool::new(false);

/// Call it at the end of a function of [`call_at_exit`] that drains. Functions that were registered earlier run later,
/// such as destructors of C++ objects that are older than the logger. A record of them registers another drain.
pub fn expect_late_records() {
    IS_DRAINED.store(true, Ordering::Relaxed);
}

/// Call it on the slow path of a record, which each thread takes after [`end`].
#[inline]
pub(super) fn drain_late_records() {
    if IS_DRAINED.load(Ordering::Relaxed) {
        drain_again();
    }
}

/// `exit()` calls what is registered meanwhile as soon as the function that logs has returned.
#[cold]
fn drain_again() {
    if IS_DRAINED.swap(false, Ordering::Relaxed) {
        call_at_exit(at_exit);
    }
}

extern "C" fn at_fork() {
    let _ = catch_unwind(before_fork);
}

extern "C" fn in_parent() {
    let _ = catch_unwind(|| {
        after_fork_in_parent();
        watch_after_fork();
    });
}

extern "C" fn in_child() {
    let _ = catch_unwind(after_fork_in_child);
}

/// Lets the end of the process, and a signal that ends it, write everything that is queued, and a fork leave parent
/// and child with queues that work. Only the first call has an effect.
///
/// `forks`: not where the caller's language calls [`before_fork`] and its siblings itself, as CPython does.
/// `crash_signals`: as the option of that name.
pub fn handle_process_events(forks: bool, crash_signals: bool) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // The lists of libc grow as long as there is memory.
        call_at_exit(at_exit);
        if forks {
            // SAFETY: the functions stay valid until the process ends, and none unwinds.
            unsafe { libc::pthread_atfork(Some(at_fork), Some(in_parent), Some(in_child)) };
        }
        install_signal_drain(shutdown_timeout());
        if crash_signals {
            install_crash_drain();
        }
    });
}
