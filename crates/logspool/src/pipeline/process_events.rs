//! What runs when a process without Python forks, crashes or ends.

use std::panic::catch_unwind;
use std::sync::Once;

use super::crash::install_crash_drain;
use super::late::{call_at_exit, expect_late_records};
use super::life::{after_fork_in_child, after_fork_in_parent, before_fork, end, watch_after_fork};
use super::settings::shutdown_timeout;
use super::signals::install_signal_drain;
use super::unwritten::report_unwritten;

extern "C" fn at_exit() {
    let _ = catch_unwind(|| {
        let timeout = shutdown_timeout();
        report_unwritten(end(timeout), timeout, "logspool recover");
    });
    expect_late_records(at_exit);
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

/// Who calls [`before_fork`] and its siblings around a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkHooks {
    /// The C library.
    Libc,
    /// The language of the program, as CPython does.
    Language,
}

/// Lets the end of the process, and a signal that ends it, write everything that is queued, and a fork leave parent
/// and child with queues that work. Only the first call has an effect.
///
/// `crash_signals`: as the option of that name.
pub fn handle_process_events(forks: ForkHooks, crash_signals: bool) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // The lists of libc grow as long as there is memory.
        call_at_exit(at_exit);
        if forks == ForkHooks::Libc {
            // SAFETY: the functions stay valid until the process ends, and none unwinds.
            unsafe { libc::pthread_atfork(Some(at_fork), Some(in_parent), Some(in_child)) };
        }
        install_signal_drain(shutdown_timeout());
        if crash_signals {
            install_crash_drain();
        }
    });
}
