//! The recoveries that a process runs: at its start, before it writes its first line to a file, and on request.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::relatives::count;
use super::relief;
use super::settings::{options, queue_folder};
use super::slot::existing;
use super::truncated::deliver_to;
use crate::copies;
use crate::recover::{self, FileAction, Orphan, RecoverOptions, Report, Retention, RunningQueue, Undeliverable};
use crate::sidecar;

fn run(folder: &Path, is_wanted: impl Fn(&Path) -> bool, undeliverable: Undeliverable) -> io::Result<Report> {
    // If another copy of the library has locked a file, closing that file here would release the lock.
    copies::check()?;
    let action_for = |path: &Path| if is_wanted(path) { deliver_to(path) } else { FileAction::Leave };
    // A folder other than this process's queue folder may be a folder of spools, and such a folder may be accessible to
    // other users.
    let by_hand = Some(folder).filter(|folder| *folder != queue_folder());
    let mut report = match recover::recover_as(folder, action_for, RecoverOptions { undeliverable }) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && by_hand.is_some_and(recover::holds_spools) => {
            Report::default()
        }
        done => done?,
    };
    // This process's own spool must not be recovered. If the shared memory of a dead process is gone, only its spools
    // are left.
    let own = existing().and_then(|pipeline| pipeline.spooler.as_ref()).map(|spooler| &*spooler.home.name);
    for spools in [options().spool_dir.as_deref(), by_hand].into_iter().flatten() {
        report.add(recover::recover_spools(spools, own, |path| action_for(path) == FileAction::Append)?);
    }
    count(&report);
    Ok(report)
}

/// Delivers the records that dead processes left in `folder`, for any file. `None` is this process's queue folder.
///
/// Records for terminals and pipes are dropped, and counted in the report. Blocks until the files have accepted the
/// records, so call it without an interpreter lock.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn recover(folder: Option<&Path>) -> io::Result<Report> {
    run(&folder.map_or_else(queue_folder, Path::to_owned), |_| true, Undeliverable::Discard)
}

/// Delivers the records that dead processes left for these files, and removes segments without undelivered records. If
/// tmpfs is short of space, it first delivers the records that dead processes left for other files.
///
/// Records for terminals and pipes are kept and listed until the orphans exceed the folder's size limit. Then
/// undeliverable records are dropped, and a line on standard error says so.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn recover_targets(paths: &[PathBuf]) -> io::Result<Report> {
    relief::relieve(&queue_folder());
    run_capped(&queue_folder(), |path| paths.iter().any(|wanted| wanted == path))
}

fn run_capped(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> io::Result<Report> {
    let report = run(folder, &is_wanted, Undeliverable::Keep)?;
    let over = report.kept.iter().any(|kept| kept.retention == Retention::ToBeEvicted);
    if over { run(folder, is_wanted, Undeliverable::Discard) } else { Ok(report) }
}

/// Works as [`recover_targets`] for one file; a writer calls it before it begins. Ignores errors, since files of an
/// earlier run must never make a start fail. `orphans` lists the remaining files.
pub(super) fn recover_target(folder: &Path, target: &Path) {
    let _ = run_capped(folder, |path| path == target);
}

/// Lists the orphans in `folder`. `None` is this process's queue folder. Changes nothing.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn orphans(folder: Option<&Path>) -> io::Result<Vec<Orphan>> {
    copies::check()?;
    recover::scan(&folder.map_or_else(queue_folder, Path::to_owned))
}

/// Lists the queues of running processes in `folder`, this process excluded. `None` is this process's queue folder.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn running(folder: Option<&Path>) -> io::Result<Vec<RunningQueue>> {
    copies::check()?;
    recover::running(&folder.map_or_else(queue_folder, Path::to_owned))
}

/// Lists the sidecars of log files in `folder` that are in use or hold an unfinished append, and removes all other
/// sidecars. `None` is this process's queue folder.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn sidecars(folder: Option<&Path>) -> io::Result<Vec<sidecar::ListedSidecar>> {
    copies::check()?;
    sidecar::list(&folder.map_or_else(queue_folder, Path::to_owned))
}
