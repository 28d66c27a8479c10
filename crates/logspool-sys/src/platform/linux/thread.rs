//! The number of a thread.

/// Returns the kernel's number of the calling thread. Async-signal-safe.
#[inline]
pub fn thread_id() -> libc::pid_t {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}
