//! Makes the keeper's process independent of the program that it watches, and of its starter.

use std::io;
use std::os::fd::RawFd;

/// Descriptor of the program's pidfd. It follows the three descriptors of /dev/null.
pub(super) const WATCHED: RawFd = 3;

/// Descriptor of the socket by which the program hands over its files, if the queue is in memory.
pub(super) const HANDOVER: RawFd = 4;

pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Closes all inherited descriptors except `watched`, which moves to [`WATCHED`], and the socket, if one is given,
/// which is already at [`HANDOVER`]. Also sets the keeper's process name, by which its starter may look for it.
pub(super) fn become_independent(watched: RawFd, socket: Option<RawFd>) -> io::Result<()> {
    // SAFETY: prctl has no preconditions, and the name ends with a NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"logspool-keeper".as_ptr()) };
    // SAFETY: system calls on local values; no descriptor that is closed here is owned by code of this process.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        // Move `watched` above the fixed descriptors first, so that it is not overwritten.
        let kept = check(libc::fcntl(watched, libc::F_DUPFD_CLOEXEC, HANDOVER + 1))?;
        let null = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC))?;
        for descriptor in 0..WATCHED {
            check(libc::dup2(null, descriptor))?;
        }
        check(libc::dup2(kept, WATCHED))?;
        let first = socket.unwrap_or(WATCHED) + 1;
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            // Linux before 5.9 has no close_range.
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as RawFd;
            (first..most).for_each(|descriptor| _ = libc::close(descriptor));
        }
        check(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}

/// Continues in a child with its own session; the parent ends.
pub(super) fn fork() -> io::Result<()> {
    // SAFETY: the process has one thread, so the child may do everything the parent could; _exit runs no exit handlers.
    unsafe {
        // setsid(2) fails if the starter has already made this process a session leader; the error does not matter.
        libc::setsid();
        if check(libc::fork())? != 0 {
            libc::_exit(0);
        }
    }
    Ok(())
}
