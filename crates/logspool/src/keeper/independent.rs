//! How the process of a keeper becomes independent of the program that it watches, and of who started it.

use std::io;
use std::os::fd::RawFd;

/// Descriptor of the program behind the three of /dev/null.
pub(super) const WATCHED: RawFd = 3;

/// Descriptor of the socket by which the program hands over its files, where the queue is in memory.
pub(super) const HANDOVER: RawFd = 4;

pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Keeps nothing of what was inherited but `watched`, at [`WATCHED`], and a socket that is at [`HANDOVER`]. Takes the
/// keeper's name: whoever started it may look for it by that.
pub(super) fn become_independent(watched: RawFd, socket: Option<RawFd>) -> io::Result<()> {
    // SAFETY: prctl has no preconditions, and the name ends with a NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"logspool-keeper".as_ptr()) };
    // SAFETY: system calls on local values; no descriptor that is closed here belongs to anything in this process.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        // Above the three, wherever it is now, so that it is not overwritten.
        let kept = check(libc::fcntl(watched, libc::F_DUPFD_CLOEXEC, HANDOVER + 1))?;
        let null = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC))?;
        for descriptor in 0..WATCHED {
            check(libc::dup2(null, descriptor))?;
        }
        check(libc::dup2(kept, WATCHED))?;
        let first = socket.unwrap_or(WATCHED) + 1;
        if libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9.
            let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(0, 1 << 20) as RawFd;
            (first..most).for_each(|descriptor| _ = libc::close(descriptor));
        }
        check(libc::chdir(c"/".as_ptr()))?;
    }
    Ok(())
}

/// Goes on in a child in a session of its own; the parent ends.
pub(super) fn fork() -> io::Result<()> {
    // SAFETY: one thread, so the child may do whatever the parent could; _exit runs nothing of it.
    unsafe {
        // Fails where the starter has made it the first of a session already.
        libc::setsid();
        if check(libc::fork())? != 0 {
            libc::_exit(0);
        }
    }
    Ok(())
}
