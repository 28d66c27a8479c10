//! What a process that lives does for dead ones of its user: deliver what they left, for any file.
//!
//! Every process with a pipeline looks, each half a second (`pipeline/watch.rs`), so a look must cost little, and what
//! cannot be delivered must not be tried by each of them each time. So the time of the next try is in the folder: in the
//! times of the lock file of the dead process, which mean nothing else.
//!
//! Only processes of the same pid namespace count. Another container may share the folder, and a path means another file
//! there: what it leaves is for its own next start, for the same file.

use std::cell::RefCell;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use logspool_sys::clock;
use logspool_sys::folder::{Folder, Times};

use super::leftover::{self, Leftover, Owner};
use super::orphan::{Retention, cap, retention};
use super::report::{Reason, Report};
use super::run::{Options, Undeliverable, Want, recover_one};
use super::work;
use crate::sidecar;

/// The first pause before the next try, and the longest, in nanoseconds.
///
/// Chosen: a disk that has room again gets what waits within a minute, and a segment that stays for good costs its
/// reading once a minute.
const PAUSES_NS: RangeInclusive<i64> = 1_000_000_000..=60_000_000_000;

/// A lock file without a segment is looked at when it is so old, in nanoseconds.
///
/// Chosen: a process that starts makes its segment within milliseconds, and must not find its new lock taken; the file
/// holds nothing and takes no memory.
const LOCK_ALONE_NS: i64 = 10_000_000_000;

/// Which of the dead processes are dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deliver {
    /// Those whose last try, if there was one, is long enough ago.
    Due,
    /// All.
    All,
}

/// What a look came to.
#[derive(Debug, Default)]
pub struct Found {
    /// What was done.
    pub report: Report,
    /// Whether another process of this pid namespace has files in the folder.
    pub has_others: bool,
}

/// Delivers what dead processes of this pid namespace left in `folder`, and removes what holds nothing any more.
///
/// `want` is asked for each file, until `stop` says that no further process is to be dealt with. Records for terminals
/// and pipes stay while the folder's cap has room for them.
///
/// # Errors
///
/// When the folder cannot be read. What goes wrong with one process is in the report.
pub fn deliver_relatives(
    folder: &Folder,
    which: Deliver,
    want: impl Fn(&Path) -> Want,
    stop: impl Fn() -> bool,
) -> io::Result<Found> {
    let mut found = Found::default();
    let mut kept = Vec::new();
    // What does not take the records of one process does not take those of the next either.
    let failed: RefCell<Vec<PathBuf>> = RefCell::default();
    let want = |path: &Path| if failed.borrow().iter().any(|each| each == path) { Want::Leave } else { want(path) };
    let dead = dead(folder, &mut found.has_others)?;
    for leftover in dead.iter().filter(|leftover| which == Deliver::All || is_due(folder, leftover)) {
        if stop() {
            return Ok(found);
        }
        let report = recover_one(folder, leftover, want, Options { undeliverable: Undeliverable::Keep })?;
        for each in &report.kept {
            let unwritable = |reason: &Reason| match reason {
                Reason::Unwritable { path, .. } => Some(path.clone()),
                _ => None,
            };
            failed.borrow_mut().extend(each.reasons.iter().filter_map(unwritable));
            // Who has it in work says what becomes of it.
            if !each.reasons.contains(&Reason::InWork) {
                put_off(folder, leftover);
                kept.push(leftover.name.clone());
            }
        }
        found.report.add(report);
    }
    if !kept.is_empty() {
        evict(folder, &kept, want, &mut found)?;
    }
    if !found.report.removed.is_empty() {
        sidecar::sweep(folder, &folder.names()?);
    }
    Ok(found)
}

/// The dead processes, oldest first.
fn dead(folder: &Folder, has_others: &mut bool) -> io::Result<Vec<Leftover>> {
    let now = clock::wall_ns();
    let mut found = leftover::list(folder)?;
    found.retain(Leftover::is_of_this_namespace);
    *has_others = !found.is_empty();
    found.retain(|leftover| {
        let is_new = || status_times(folder, leftover).is_some_and(|times| now < times.modified + LOCK_ALONE_NS);
        let is_lock_alone = leftover.lock && leftover.bytes() == 0 && !leftover.segment;
        work::owner(folder, leftover) == Owner::Dead && !(is_lock_alone && is_new())
    });
    Ok(found)
}

/// Of those that stay, gives up what can go nowhere where the folder's cap has no room for it.
fn evict(folder: &Folder, kept: &[String], want: impl Fn(&Path) -> Want, found: &mut Found) -> io::Result<()> {
    let cap = cap(folder);
    let mut taken = 0_u64;
    for leftover in dead(folder, &mut false)?.iter().rev() {
        taken = taken.saturating_add(leftover.bytes());
        if retention(taken, cap) == Retention::ToBeEvicted && kept.contains(&leftover.name) {
            let options = Options { undeliverable: Undeliverable::Discard };
            found.report.add(recover_one(folder, leftover, &want, options)?);
        }
    }
    Ok(())
}

fn status_times(folder: &Folder, leftover: &Leftover) -> Option<Times> {
    folder.status(&leftover.lock_name()).ok().map(|status| Times::of(&status))
}

/// Whether it may be tried: the lock file was never put off, or the time in it has come, or the clock was set back.
fn is_due(folder: &Folder, leftover: &Leftover) -> bool {
    let now = clock::wall_ns();
    status_times(folder, leftover).is_none_or(|times| now >= times.accessed || now < times.modified)
}

/// Notes a try that failed: it was now, and the next one comes after twice the pause of before.
fn put_off(folder: &Folder, leftover: &Leftover) {
    let Some(times) = status_times(folder, leftover) else { return };
    let pause = times.accessed.saturating_sub(times.modified).saturating_mul(2);
    let pause = pause.clamp(*PAUSES_NS.start(), *PAUSES_NS.end());
    let now = clock::wall_ns();
    // Where that fails, the next look tries it.
    let _ = folder.set_times(&leftover.lock_name(), Times { modified: now, accessed: now.saturating_add(pause) });
}
