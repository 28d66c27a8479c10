//! Sleeping on a word in memory. The operations are the private ones: only threads of one process meet on a word.

use std::time::Duration;

/// Sleeps while `*word` is `expected`, at most for `timeout`; with `None` without limit. Returns the error number, or 0.
///
/// # Safety
///
/// `word` is valid for reads during the call.
#[inline]
pub unsafe fn futex_wait(word: *const u32, expected: u32, timeout: Option<Duration>) -> i32 {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the caller says that the word is valid; the limit is null or valid for the call.
    let result = unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, limit) };
    if result >= 0 { 0 } else { std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::ENOSYS).max(1) }
}

/// Wakes up to `count` threads that sleep on a word.
///
/// # Safety
///
/// `word` is the address of a word that is valid during the call.
#[inline]
pub unsafe fn futex_wake(word: *const u32, count: i32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the caller says that the word is valid; the operation has no other effect than waking.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, count) };
}
