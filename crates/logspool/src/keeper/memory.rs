//! The keeper of a queue in memory: holds the program's files, and delivers their records when the program has ended.
//!
//! Undelivered records are lost when the keeper ends. So it keeps running while a later try may succeed, for example
//! when a disk is full or a service is unreachable. It does not keep running for undeliverable records. These are
//! damaged records, and records for a terminal, a pipe or a file whose folder is gone.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_sys::folder::Folder;
use logspool_sys::handover;
use logspool_sys::memory_files::MemoryFiles;
use logspool_sys::sleep::sleep_interruptibly;

use super::independent::{HANDOVER, WATCHED, become_independent};
use super::{MAX_SEARCH_TIME, PAUSES};
use crate::recover::{self, Reason, RecoverOptions, Report};
use crate::sinks;

/// Longest pause between two tries to deliver to an output that accepts nothing.
///
/// Chosen: a try costs milliseconds. Doubling the pause would make a repaired disk wait longer than a person does.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How long the keeper keeps running for an output that accepts nothing.
///
/// Chosen: a full disk is noticed within a day. After a day, an operator no longer knows why the process exists.
const MAX_STAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Pause between two checks of a program that still runs but has closed the socket, in milliseconds.
const LOOK_MS: i32 = 100;

/// Turns this process into the keeper of the process `program`. Descriptor 3 is a pidfd of the program. Descriptor 4 is
/// the socket by which the program hands over its files. The function returns when the keeper's work is done; the
/// caller then ends the process.
///
/// The calling process must have one thread.
///
/// # Errors
///
/// Returns an error if a system call on the descriptors fails. Then there is no keeper.
pub fn keep_memory(program: u32) -> io::Result<()> {
    become_independent(WATCHED, Some(HANDOVER))?;
    allow_many_files();
    // SAFETY: the descriptor stays open until the process ends.
    let socket = unsafe { BorrowedFd::borrow_raw(HANDOVER) };
    let folder = Folder::in_memory(MemoryFiles::default());
    let held = folder.memory_files().expect("made above");
    collect(socket, held)?;
    while !is_gone(0) && is_mapped(program, held) {
        // The program has closed its descriptors but still runs.
        is_gone(LOOK_MS);
    }
    deliver(&folder);
    Ok(())
}

/// Raises the limit of open files to its maximum: each large record and each piece of overflow is a file.
fn allow_many_files() {
    // SAFETY: an all-zero rlimit is a valid value, and `limit` a valid buffer.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// Takes the files that the program hands over, until no more can follow.
fn collect(socket: BorrowedFd<'_>, held: &MemoryFiles) -> io::Result<()> {
    loop {
        let mut polled = [socket.as_raw_fd(), WATCHED].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        // SAFETY: two valid pollfds.
        if unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) } < 0 {
            match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => continue,
                error => return Err(error),
            }
        }
        // Read this flag before the socket: if the program has ended, all its messages have arrived.
        let is_gone = polled[1].revents & libc::POLLIN != 0;
        loop {
            match handover::receive(socket) {
                Ok(Some(message)) => held.apply(message),
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The process cannot take more descriptors, or the socket is broken. Deliver from the files received
                // until now.
                Err(_) => return Ok(()),
            }
        }
        if is_gone {
            return Ok(());
        }
    }
}

/// Whether the program has ended. Waits for its end at most `timeout` milliseconds.
fn is_gone(timeout: i32) -> bool {
    let mut poll = libc::pollfd { fd: WATCHED, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut poll, 1, timeout) > 0 && poll.revents & libc::POLLIN != 0 }
}

/// Whether the program still maps its segment. If so, it still runs and has only closed its descriptors, as daemons do.
fn is_mapped(program: u32, held: &MemoryFiles) -> bool {
    let names = held.names();
    let segments = names.iter().filter(|name| name.ends_with(".seg"));
    let inodes: Vec<u64> = segments.filter_map(|name| held.status(name).ok()).map(|status| status.st_ino).collect();
    let maps = std::fs::read_to_string(format!("/proc/{program}/maps")).unwrap_or_default();
    maps.lines().filter(|line| line.contains("/memfd:logspool")).any(|line| {
        let inode = line.split_ascii_whitespace().nth(4).and_then(|inode| inode.parse().ok());
        inode.is_some_and(|inode| inodes.contains(&inode))
    })
}

/// What to do after a try to deliver.
#[derive(Debug, PartialEq, Eq)]
enum NextTry {
    /// End the keeper: no deliverable record is left.
    End,
    /// Try again soon: another recoverer is at work, or a process is about to end.
    Soon,
    /// Try again later: an output does not accept its records.
    Later,
}

fn deliver(folder: &Folder) {
    let begun = Instant::now();
    let mut pause = *PAUSES.start();
    while let Ok(report) = recover::recover_in(folder, RecoverOptions::default()) {
        let longest = match next(&folder.names().unwrap_or_default(), &report) {
            NextTry::End => return,
            NextTry::Soon if begun.elapsed() >= MAX_SEARCH_TIME => return,
            NextTry::Later if begun.elapsed() >= MAX_STAY => return,
            NextTry::Soon => *PAUSES.end(),
            NextTry::Later => MAX_PAUSE,
        };
        sleep_interruptibly(pause);
        pause = (pause * 2).min(longest);
    }
}

fn next(names: &[String], report: &Report) -> NextTry {
    let reasons = || report.kept.iter().flat_map(|kept| &kept.reasons);
    if reasons().any(|reason| matches!(reason, Reason::Unwritable { path, .. } if may_be_repaired(path))) {
        return NextTry::Later;
    }
    let is_passing = |reason: &Reason| matches!(reason, Reason::InWork | Reason::OwnerUnknown);
    // If the report gives no reason for some files, their owner is alive.
    let is_told = |name: &str| report.kept.iter().any(|kept| kept.name == name);
    let is_alive = |name: &String| name.split_once('.').is_some_and(|(owner, end)| end != "side" && !is_told(owner));
    if reasons().any(is_passing) || names.iter().any(is_alive) { NextTry::Soon } else { NextTry::End }
}

/// Whether an output that accepts nothing now may do so later.
fn may_be_repaired(path: &Path) -> bool {
    let is_program = path.to_str().is_some_and(|place| sinks::from_recovery_address(place).is_some());
    is_program
        || match path.metadata() {
            Ok(status) => status.is_file(),
            Err(error) if error.kind() == ErrorKind::NotFound => path.parent().is_some_and(Path::is_dir),
            Err(_) => true,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recover::{Kept, Retention};

    fn after(names: &[&str], reasons: Vec<Reason>) -> NextTry {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let name = "1-2-3-4".to_owned();
        let mut report = Report::default();
        if !reasons.is_empty() {
            report.kept.push(Kept { name, pid: 2, bytes: 0, reasons, retention: Retention::Stay });
        }
        next(&names, &report)
    }

    #[test]
    fn the_keeper_stays_while_records_can_still_be_delivered() {
        let files = ["1-2-3-4.lock", "1-2-3-4.seg", "file-1-2.side"];
        let unwritable = |path: &str| Reason::Unwritable { path: path.into(), error: "why".into(), records: 3 };
        let gone = || Reason::Undeliverable { sink: "stderr".into(), records: 3 };
        assert_eq!(NextTry::End, after(&[], vec![]));
        assert_eq!(NextTry::End, after(&files[2..], vec![]));
        assert_eq!(NextTry::Soon, after(&files, vec![]));
        assert_eq!(NextTry::Soon, after(&files, vec![Reason::InWork]));
        for path in ["/a.log", "tcp://127.0.0.1:1"] {
            assert_eq!(NextTry::Later, after(&files, vec![gone(), unwritable(path)]));
        }
        for path in ["/missing/a.log", "/dev/null"] {
            assert_eq!(NextTry::End, after(&files, vec![unwritable(path)]));
        }
        assert_eq!(NextTry::End, after(&files, vec![gone()]));
    }
}
