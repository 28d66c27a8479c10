//! What runs when a process without Python forks, crashes or ends.

use std::panic::catch_unwind;
use std::sync::Once;

use super::crash::install_crash_drain;
use super::life::{after_fork_in_child, after_fork_in_parent, before_fork, end, watch_after_fork};
use super::settings::shutdown_timeout;
use super::signals::install_signal_drain;

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
    let _ = catch_unwind(|| end(shutdown_timeout()));
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
