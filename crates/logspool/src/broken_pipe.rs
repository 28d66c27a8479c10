//! The end of a program whose output has lost its reader, as in `program | head`.
//!
//! A program that writes to such a pipe itself gets SIGPIPE and ends, unless it has changed that. The writer threads
//! block all signals, so a signal for the process replaces the signal that the kernel has sent to the thread.
//!
//! Atomics belong in `queue` and `stats`; that of this file is an exception: the address of a signal handler.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The handler that writes queued records and then ends the process, if one is installed.
static DRAIN_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Notes the handler that replaces the default disposition.
pub(crate) fn note_drain_handler(handler: usize) {
    DRAIN_HANDLER.store(handler, Ordering::Relaxed);
}

/// Ends the process by SIGPIPE, if the program has left this signal at its default disposition.
pub(crate) fn end_by_default() {
    // SAFETY: an all-zero sigaction is valid, and sigaction fills it.
    let handler = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) != 0 {
            return;
        }
        action.sa_sigaction
    };
    if handler == libc::SIG_DFL || handler == DRAIN_HANDLER.load(Ordering::Relaxed) {
        // SAFETY: kill has no preconditions.
        unsafe { libc::kill(libc::getpid(), libc::SIGPIPE) };
    }
}
