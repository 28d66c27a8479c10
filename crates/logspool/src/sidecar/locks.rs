//! Record locks on single bytes of a file.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Byte that the appending process locks exclusively.
pub const ENTER: i64 = 0;
/// Byte that all processes with an open sidecar lock together (a shared lock).
pub const USE: i64 = 1;

/// State of the lock on one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockState {
    /// Held exclusively.
    Alone,
    /// Held together with other processes.
    Shared,
    /// Released.
    Free,
}

/// Sets this process's lock on `byte` to `lock`, without waiting. Returns `Ok(false)` if another process's lock
/// conflicts.
pub fn set(file: &File, byte: i64, lock: LockState) -> io::Result<bool> {
    set_raw(file.as_raw_fd(), byte, lock)
}

/// Does the same as [`set`], and is async-signal-safe.
pub fn set_raw(descriptor: RawFd, byte: i64, lock: LockState) -> io::Result<bool> {
    let kind = match lock {
        LockState::Alone => libc::F_WRLCK,
        LockState::Shared => libc::F_RDLCK,
        LockState::Free => libc::F_UNLCK,
    };
    let lock = request(kind as i16, byte);
    // SAFETY: fcntl checks the descriptor itself, and `lock` lives through the call.
    if unsafe { libc::fcntl(descriptor, libc::F_SETLK, &lock) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        error => Err(error),
    }
}

/// Locks byte [`USE`], which this process shares, exclusively. Releases the shared lock first. So if several processes
/// end at the same time, the last one succeeds.
pub fn lock_exclusively(file: &File) -> bool {
    lock_exclusively_raw(file.as_raw_fd())
}

/// Does the same as [`lock_exclusively`], and is async-signal-safe.
pub fn lock_exclusively_raw(descriptor: RawFd) -> bool {
    let _ = set_raw(descriptor, USE, LockState::Free);
    matches!(set_raw(descriptor, USE, LockState::Alone), Ok(true))
}

/// Whether another process has a lock on a byte.
pub fn is_held_elsewhere(file: &File, byte: i64) -> io::Result<bool> {
    let mut lock = request(libc::F_WRLCK as i16, byte);
    // SAFETY: the descriptor is open and `lock` lives through the call.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut lock) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(lock.l_type != libc::F_UNLCK as i16)
}

fn request(kind: i16, byte: i64) -> libc::flock {
    libc::flock { l_type: kind, l_whence: libc::SEEK_SET as i16, l_start: byte, l_len: 1, l_pid: 0 }
}
