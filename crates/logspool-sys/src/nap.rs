//! A sleep between two looks at what is waited for.

use std::time::Duration;

/// Sleeps, at most until a signal has been handled. Async-signal-safe.
///
/// `std::thread::sleep` begins the rest anew behind each signal, and the kernel counts its slack into that rest: where
/// signals come every few microseconds it never ends. Whoever waits looks again and knows the deadline.
pub fn nap(time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos() as libc::c_long };
    // SAFETY: nanosleep is async-signal-safe and `time` is valid.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}
