//! The keeper: a process beside the program that delivers what this leaves when it is killed.
//!
//! Stop on the line: beside *recover*. The shell executes a process for it, with a descriptor of the program
//! (pidfd_open(2)) and the queue's folder; [`keep`] makes that process independent of everything else, sleeps until
//! the program is gone or has let go of its queue (`keeper/wait.rs`), and recovers as a later start would: under the same claims, so that starts, other keepers and
//! `recover` may be at work at the same time.
//!
//! It belongs to a session of its own, has no terminal, no descriptor but that of the program and three of /dev/null,
//! the root as its working directory, and blocks all signals: what is sent to the program's group does not end it
//! before its work, and nobody has to wait for it but that work itself.
//!
//! What it cannot deliver stays, and `doctor` tells why: it has nobody to tell.
//!
//! A queue in memory has a keeper of another kind ([`keep_memory`]): it holds the queue's files by their descriptors.
//! The program itself starts it (`keeper/spawn.rs`), with its first record.

mod memory;
mod spawn;

pub use memory::keep_memory;
pub use spawn::{Command, set_command, start};

mod wait;

use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_sys::folder::Folder;
use logspool_sys::nap::nap;

use crate::recover::{self, Options, Reason, Report, Undeliverable};

/// Descriptor of the program behind the three of /dev/null.
const WATCHED: RawFd = 3;

/// Descriptor of the socket by which the program hands over its files, where the queue is in memory.
const HANDOVER: RawFd = 4;

/// How long it looks for more once the program is gone.
///
/// Chosen: a kill of a whole group reaches the last process within milliseconds, and a worker that looks for its
/// parent each second ends by itself, which needs no recovery. Double keeps the keeper of a program that ended well
/// for longer where others use the same folder.
const LOOKED_AFTER: Duration = Duration::from_secs(2);

/// Pauses between two looks.
const PAUSES: std::ops::RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_millis(100);

/// Becomes the keeper of the process that `watched` is a pidfd of, and returns when its work is done, to be followed
/// by the end of the process.
///
/// The calling process goes on as the parent of the keeper and ends at once, so that who started it has nobody to wait
/// for. It must have one thread.
///
/// # Errors
///
/// When a system call fails about the fork, /dev/null or the descriptor. Then there is no keeper.
pub fn keep(watched: RawFd, folder: &Path) -> io::Result<()> {
    become_independent(watched, None)?;
    fork()?;
    wait::await_end(WATCHED, folder)?;
    look_after(folder);
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Keeps nothing of what was inherited but `watched`, at [`WATCHED`], and a socket that is at [`HANDOVER`]. Takes the
/// keeper's name: whoever started it may look for it by that.
fn become_independent(watched: RawFd, socket: Option<RawFd>) -> io::Result<()> {
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
fn fork() -> io::Result<()> {
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

/// Delivers what the program left, and what those leave that end with it.
fn look_after(folder: &Path) {
    let end = Instant::now() + LOOKED_AFTER;
    let mut pause = *PAUSES.start();
    while let Ok(report) = recover::recover(folder, |_| true, Options { undeliverable: Undeliverable::Keep }) {
        if is_settled(folder, &report) || Instant::now() >= end {
            break;
        }
        nap(pause);
        pause = (pause * 2).min(*PAUSES.end());
    }
    if let Ok(folder) = Folder::open_existing(folder) {
        folder.remove_if_empty();
    }
}

/// Whether nobody is left in the folder from whom more could come.
fn is_settled(folder: &Path, report: &Report) -> bool {
    let Ok(names) = Folder::open_existing(folder).and_then(|folder| folder.names()) else { return true };
    let is_stuck = |reason: &Reason| !matches!(reason, Reason::InWork | Reason::OwnerUnknown);
    let stays = |name: &str| report.kept.iter().any(|kept| kept.name == name && kept.reasons.iter().all(is_stuck));
    names.iter().all(|name| match name.split_once('.') {
        // A sidecar goes with what it is for.
        Some((_, "side")) => true,
        Some((owner, _)) => stays(owner),
        None => true,
    })
}
