//! What a Rust program needs at its end, and around a fork.

use std::sync::Once;

use crate::pipeline;

extern "C" fn end() {
    pipeline::end(pipeline::shutdown_timeout());
}

extern "C" fn before_fork() {
    pipeline::before_fork();
}

extern "C" fn in_parent() {
    pipeline::after_fork_in_parent();
    pipeline::watch_after_fork();
}

extern "C" fn in_child() {
    pipeline::after_fork_in_child();
}

/// Lets the end of the process write everything that is queued, and a fork leave parent and child with queues that
/// work.
pub(super) fn write_at_its_end(crash_signals: bool) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the functions stay valid until the process ends. Each returns without unwinding: a panic in an
        // `extern "C"` function ends the process.
        unsafe {
            libc::atexit(end);
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
        pipeline::install_signal_drain(pipeline::shutdown_timeout());
        if crash_signals {
            pipeline::install_crash_drain();
        }
    });
}
