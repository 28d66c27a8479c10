//! The keeper: a process next to the program that delivers the program's records when it is killed.
//!
//! Pipeline stage: keeper, which starts a recovery (see ARCHITECTURE.md). A language binding executes a process for the
//! keeper, with a pidfd of the program (pidfd_open(2)) and the queue's folder. [`keep`] makes that process independent,
//! and sleeps until the program has ended or has released its queue (`keeper/wait.rs`). Then the keeper recovers the
//! records as a later start of the program would. It takes the same claims, so starts, other keepers and `recover` may
//! work at the same time.
//!
//! The keeper has its own session, no terminal, the root as its working directory, and all signals blocked. Its only
//! descriptors are the program's pidfd and three of /dev/null. So a signal to the program's process group does not end
//! it early. No process that reads a pipe of the program waits for it.
//!
//! Records that the keeper cannot deliver stay in the folder, and `doctor` reports why. The keeper itself has no
//! output.
//!
//! A queue in memory has another kind of keeper ([`keep_memory`]), which holds descriptors of the queue's files. The
//! program itself starts that keeper with its first record (`keeper/spawn.rs`).

mod independent;
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
use logspool_sys::sleep::sleep_interruptibly;

use independent::{WATCHED, become_independent, fork};

use crate::recover::{self, Reason, RecoverOptions, Report, Undeliverable};

/// How long the keeper looks for further dead processes after the program has ended.
///
/// Chosen: a kill of a whole process group ends its last process within milliseconds. A worker that checks for its
/// parent each second ends by itself, and needs no recovery. Doubling it keeps the keeper of a cleanly ended program
/// longer if other processes use the same folder.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(2);

/// First and longest pause between two recoveries of the folder.
const PAUSES: std::ops::RangeInclusive<Duration> = Duration::from_millis(5)..=Duration::from_millis(100);

/// Forks the keeper of the process that `watched` is a pidfd of. The function returns only in the child, which is the
/// keeper, when the keeper's work is done. The caller then ends the process.
///
/// The parent ends at once, so the process that started it has nothing to wait for. The calling process must have one
/// thread.
///
/// # Errors
///
/// Returns an error if fork fails, or a system call on /dev/null or on `watched`. Then there is no keeper.
pub fn keep(watched: RawFd, folder: &Path) -> io::Result<()> {
    become_independent(watched, None)?;
    fork()?;
    wait::await_end(WATCHED, folder)?;
    deliver_after_end(folder);
    Ok(())
}

/// Delivers the records of the program, and of other processes that end at the same time.
fn deliver_after_end(folder: &Path) {
    let end = Instant::now() + MAX_SEARCH_TIME;
    let mut pause = *PAUSES.start();
    while let Ok(report) = recover::recover(folder, |_| true, RecoverOptions { undeliverable: Undeliverable::Keep }) {
        if is_settled(folder, &report) || Instant::now() >= end {
            break;
        }
        sleep_interruptibly(pause);
        pause = (pause * 2).min(*PAUSES.end());
    }
    if let Ok(folder) = Folder::open_existing(folder) {
        folder.remove_if_empty();
    }
}

/// Whether the folder has no files left that another recovery could deliver.
fn is_settled(folder: &Path, report: &Report) -> bool {
    let Ok(names) = Folder::open_existing(folder).and_then(|folder| folder.names()) else { return true };
    let is_stuck = |reason: &Reason| !matches!(reason, Reason::InWork | Reason::OwnerUnknown);
    let stays = |name: &str| report.kept.iter().any(|kept| kept.name == name && kept.reasons.iter().all(is_stuck));
    names.iter().all(|name| match name.split_once('.') {
        // A sidecar is removed with the files that it belongs to.
        Some((_, "side")) => true,
        Some((owner, _)) => stays(owner),
        None => true,
    })
}
