//! A sleep between two checks of a condition.

use std::time::Duration;

/// Sleeps for `time`, or until a signal has been handled. Async-signal-safe.
///
/// After each signal, `std::thread::sleep` sleeps again for the remaining time, and the kernel adds its slack to that
/// time. If signals come every few microseconds, it never returns. Callers of this function check their condition again
/// and keep their own deadline.
pub fn sleep_interruptibly(time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos() as libc::c_long };
    // SAFETY: nanosleep is async-signal-safe and `time` is valid.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}
