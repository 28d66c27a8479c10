//! Waits for the program to end. If the program releases its queue before it ends, delivers its records at once.
//!
//! `execv` called from C replaces the program without running any hook, and the process continues. But the kernel frees
//! the lock of the queue on exec as on exit. So the keeper blocks on that lock, without polling. While the program has
//! no lock, the keeper polls for one, ten times a second.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use logspool_sys::clock;
use logspool_sys::folder::{self, Folder, Times};
use logspool_sys::identity::ProcessIdentity;

use super::independent::check;
use crate::recover::{self, Reason, RecoverOptions, Report, Undeliverable};

/// Pause between two looks for the lock, in milliseconds. Chosen: records of a program that calls `execv` are delivered
/// within 200 ms.
const PAUSE_MS: libc::c_int = 100;

/// Returns when the process of `pidfd` has ended, and all its threads and locks are gone.
///
/// # Errors
///
/// Returns an error if a system call on the descriptor fails.
pub(super) fn await_end(pidfd: RawFd, folder: &Path) -> io::Result<()> {
    let mut queue = ProgramQueue::of(pidfd);
    while !has_ended(pidfd, if queue.is_some() { PAUSE_MS } else { -1 })? {
        // After an error the wait is tried again, for the last time when the program has ended.
        let _ = queue.as_mut().map(|queue| queue.await_release(folder));
    }
    Ok(())
}

/// Waits for the end of a process, for at most `milliseconds` (-1: no limit). Returns whether it has ended.
fn has_ended(pidfd: RawFd, milliseconds: libc::c_int) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: pidfd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    match check(unsafe { libc::poll(&mut poll, 1, milliseconds) }) {
        Ok(0) => Ok(false),
        Ok(_) if poll.revents & libc::POLLIN != 0 => Ok(true),
        Ok(_) => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// The queue of the program: the files in the folder that have its process id.
struct ProgramQueue {
    prefix: String,
    /// Identity and times of the folder at the last look. While they have not changed, further looks are skipped.
    seen: Option<((u64, u64), Times)>,
    /// Names of queues whose files stay, because their delivery was tried and failed.
    stuck: HashSet<String>,
}

impl ProgramQueue {
    /// `None` if the system does not reveal the process id.
    fn of(pidfd: RawFd) -> Option<Self> {
        let fdinfo = std::fs::read_to_string(format!("/proc/self/fdinfo/{pidfd}")).ok()?;
        let pid: u32 = fdinfo.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
        let prefix = format!("{}-{pid}-", ProcessIdentity::current().namespace);
        Some(Self { prefix, seen: None, stuck: HashSet::new() })
    }

    /// If the program has a queue, waits until it is released and delivers its records.
    fn await_release(&mut self, path: &Path) -> io::Result<()> {
        let Some((name, lock)) = self.find(path)? else { return Ok(()) };
        await_lock(&lock)?;
        let is_removed = lock.metadata()?.nlink() == 0;
        // Close the lock file before the recovery opens it again. Closing it later would drop the lock of that
        // recovery.
        drop(lock);
        self.seen = None;
        // If the program removed the lock file, there are no records to deliver.
        if !is_removed {
            let report = recover::recover(path, |_| true, RecoverOptions { undeliverable: Undeliverable::Keep })?;
            if is_stuck(&report, &name) {
                self.stuck.insert(name);
            }
        }
        Ok(())
    }

    /// Name and lock file of a queue of the program, if there is one.
    fn find(&mut self, path: &Path) -> io::Result<Option<(String, File)>> {
        let folder = Folder::open_existing(path)?;
        let now = (folder.device_and_inode(), folder.times()?);
        if self.seen.is_some_and(|(which, times)| which == now.0 && times.modified == now.1.modified) {
            return Ok(None);
        }
        for name in folder.names()? {
            let Some(owner) = name.strip_suffix(".seg").filter(|owner| owner.starts_with(&self.prefix)) else {
                continue;
            };
            if !self.stuck.contains(owner) {
                // A segment is created while its lock is held. So a free lock means that the program has released it.
                return Ok(Some((owner.to_owned(), folder.open_file(&format!("{owner}.lock"))?)));
            }
        }
        // Another change within the same tick of the kernel's clock would have the same time. So remember only older
        // times.
        self.seen = Some(now).filter(|(_, times)| clock::wall_ns() > times.modified + folder::CLOCK_TICK_NS);
        Ok(None)
    }
}

/// Waits until the holder releases the lock of a file, and takes it.
fn await_lock(lock: &File) -> io::Result<()> {
    let whole = folder::whole_file();
    loop {
        // SAFETY: the descriptor is open and `whole` lives through the call.
        match check(unsafe { libc::fcntl(lock.as_raw_fd(), libc::F_SETLKW, &whole) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map(|_| ()),
        }
    }
}

fn is_stuck(report: &Report, name: &str) -> bool {
    report.kept.iter().any(|kept| kept.name == name && !kept.reasons.contains(&Reason::InWork))
}
