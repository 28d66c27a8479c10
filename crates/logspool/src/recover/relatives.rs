//! A living process delivers the records that dead processes of its user left, for any file.
//!
//! Every process with a pipeline looks for such records each half a second (`pipeline/orphan_watch.rs`). A look must therefore
//! be cheap, and the processes must not all retry the same failed delivery. So the time of the next try is kept in the
//! folder: it is stored in the timestamps of the dead process's lock file, which have no other meaning.
//!
//! Only processes of the same pid namespace count. Another container may share the folder, but a path in that container
//! means another file. The records of its dead processes wait for its own next start with the same file.

use std::cell::RefCell;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use logspool_sys::clock;
use logspool_sys::folder::{Folder, Times};

use super::file_action::{FileAction, RecoverOptions, Undeliverable};
use super::leftover::{self, Leftover, OwnerState};
use super::orphan::{Retention, cap, retention};
use super::report::{Reason, Report};
use super::run::recover_one;
use super::work;
use crate::sidecar;

/// The first and the longest pause before the next try, in nanoseconds.
///
/// Chosen: after a full disk has room again, waiting records are delivered within a minute. A segment that can never be
/// delivered is read once a minute.
const PAUSES_NS: RangeInclusive<i64> = 1_000_000_000..=60_000_000_000;

/// Age at which a lock file without a segment is examined, in nanoseconds.
///
/// Chosen: a starting process makes its segment within milliseconds. Its new lock must not be taken before that. A lock
/// file alone holds no records and takes no memory.
const LOCK_ALONE_NS: i64 = 10_000_000_000;

/// Which dead processes to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// Recover processes that were never tried or whose next try is due.
    Due,
    /// Recover all dead processes.
    All,
}

/// Result of one look for dead processes.
#[derive(Debug, Default)]
pub struct FoundRelatives {
    /// Report of all recoveries of this look.
    pub report: Report,
    /// Whether another process of this pid namespace has files in the folder.
    pub has_others: bool,
}

/// Recovers dead processes of this pid namespace in `folder`, and removes files without undelivered records.
///
/// `action_for` is called for each file. After `stop` returns true, no further process is recovered. Records for
/// terminals and pipes stay while the folder's cap has room for them.
///
/// # Errors
///
/// Returns an error if the folder cannot be read. The report lists failures on single processes.
pub fn deliver_relatives(
    folder: &Folder,
    which: Deliver,
    action_for: impl Fn(&Path) -> FileAction,
    stop: impl Fn() -> bool,
) -> io::Result<FoundRelatives> {
    let mut found = FoundRelatives::default();
    let mut kept = Vec::new();
    // A file that rejects the records of one process would reject those of the next process too.
    let failed: RefCell<Vec<PathBuf>> = RefCell::default();
    let action_for = |path: &Path| {
        if failed.borrow().iter().any(|each| each == path) { FileAction::Leave } else { action_for(path) }
    };
    let dead = dead(folder, &mut found.has_others)?;
    for leftover in dead.iter().filter(|leftover| which == Deliver::All || is_due(folder, leftover)) {
        if stop() {
            return Ok(found);
        }
        let report = recover_one(folder, leftover, action_for, RecoverOptions { undeliverable: Undeliverable::Keep })?;
        for each in &report.kept {
            let unwritable = |reason: &Reason| match reason {
                Reason::Unwritable { path, .. } => Some(path.clone()),
                _ => None,
            };
            failed.borrow_mut().extend(each.reasons.iter().filter_map(unwritable));
            // If a recoverer is working on this process, that recoverer decides when the next try is due.
            if !each.reasons.contains(&Reason::InWork) {
                postpone(folder, leftover);
                kept.push(leftover.name.clone());
            }
        }
        found.report.add(report);
    }
    if !kept.is_empty() {
        evict(folder, &kept, action_for, &mut found)?;
    }
    if !found.report.removed.is_empty() {
        sidecar::sweep(folder, &folder.names()?);
    }
    Ok(found)
}

/// Lists the dead processes of this pid namespace, oldest first.
fn dead(folder: &Folder, has_others: &mut bool) -> io::Result<Vec<Leftover>> {
    let now = clock::wall_ns();
    let mut found = leftover::list(folder)?;
    found.retain(Leftover::is_of_this_namespace);
    *has_others = !found.is_empty();
    found.retain(|leftover| {
        let is_new = || status_times(folder, leftover).is_some_and(|times| now < times.modified + LOCK_ALONE_NS);
        let is_lock_alone = leftover.lock && leftover.bytes() == 0 && !leftover.segment;
        work::owner(folder, leftover) == OwnerState::Dead && !(is_lock_alone && is_new())
    });
    Ok(found)
}

/// Drops undeliverable records of those orphans in `kept` for which the folder's cap has no room.
fn evict(
    folder: &Folder,
    kept: &[String],
    action_for: impl Fn(&Path) -> FileAction,
    found: &mut FoundRelatives,
) -> io::Result<()> {
    let cap = cap(folder);
    let mut taken = 0_u64;
    for leftover in dead(folder, &mut false)?.iter().rev() {
        taken = taken.saturating_add(leftover.bytes());
        if retention(taken, cap) == Retention::ToBeEvicted && kept.contains(&leftover.name) {
            let options = RecoverOptions { undeliverable: Undeliverable::Discard };
            found.report.add(recover_one(folder, leftover, &action_for, options)?);
        }
    }
    Ok(())
}

fn status_times(folder: &Folder, leftover: &Leftover) -> Option<Times> {
    folder.status(&leftover.lock_name()).ok().map(|status| Times::of(&status))
}

/// Whether a try is due: no earlier try has postponed it, its stored time has passed, or the clock was set back.
fn is_due(folder: &Folder, leftover: &Leftover) -> bool {
    let now = clock::wall_ns();
    status_times(folder, leftover).is_none_or(|times| now >= times.accessed || now < times.modified)
}

/// Stores in the lock file's times that a try failed now, and that the next try is due after twice the previous pause.
fn postpone(folder: &Folder, leftover: &Leftover) {
    let Some(times) = status_times(folder, leftover) else { return };
    let pause = times.accessed.saturating_sub(times.modified).saturating_mul(2);
    let pause = pause.clamp(*PAUSES_NS.start(), *PAUSES_NS.end());
    let now = clock::wall_ns();
    // If this fails, the next look tries the delivery again.
    let _ = folder.set_times(&leftover.lock_name(), Times { modified: now, accessed: now.saturating_add(pause) });
}
