//! When a process recovers the records of dead ones: at its start, and before its first line in a file.
//!
//! Atomics outside `queue` and `stats`: counters of the records recovered by this process, whatever its pipeline.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use logspool_sys::clock;
use logspool_sys::folder::Folder;

use super::life::queue_folder;
use crate::copies;
use crate::recover::{self, Deliver, Options, Orphan, Report, Retention, Undeliverable, Want};
use crate::sidecar;

static RECORDS: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);

/// Counts of recovered records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryCounts {
    /// Records of dead processes that were appended to their files.
    pub records: u64,
    /// Dropped records of dead processes: for terminals and pipes, and for files that this program truncated.
    pub discarded: u64,
}

/// Counts of the records that this process has recovered.
pub fn recovery_counts() -> RecoveryCounts {
    RecoveryCounts { records: RECORDS.load(Ordering::Relaxed), discarded: DISCARDED.load(Ordering::Relaxed) }
}

/// Files that this program truncated by opening them (`mode="w"`). A list that only grows, because a forked child may
/// inherit a lock held by a thread that it does not have.
static OPENED_ANEW: AtomicPtr<Anew> = AtomicPtr::new(std::ptr::null_mut());
/// Start time of this program, in nanoseconds since the epoch.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Notes the start of this program. Forked children belong to the same program.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has truncated a file by opening it. Records that earlier programs left for it belong before
/// that point, so they are dropped. Records of its own forked children are appended.
pub fn opened_anew(path: PathBuf) {
    if was_opened_anew(&path) {
        return;
    }
    let anew = Box::leak(Box::new(Anew { path, before: None }));
    let mut newest = OPENED_ANEW.load(Ordering::Acquire);
    loop {
        // SAFETY: entries are stored below and never freed.
        anew.before = unsafe { newest.as_ref() };
        // Release pairs with the Acquire of the loads: a reader that finds an entry sees its contents.
        match OPENED_ANEW.compare_exchange(newest, anew, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return,
            Err(other) => newest = other,
        }
    }
}

struct Anew {
    path: PathBuf,
    before: Option<&'static Anew>,
}

fn was_opened_anew(path: &Path) -> bool {
    // SAFETY: entries are never freed.
    let newest = unsafe { OPENED_ANEW.load(Ordering::Acquire).as_ref() };
    std::iter::successors(newest, |anew| anew.before).any(|anew| anew.path == path)
}

/// What to do with records that a dead process left for a wanted file.
fn deliver_to(path: &Path) -> Want {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_opened_anew(path) { Want::DoneAway(begun) } else { Want::Append }
}

fn run(folder: &Path, want: impl Fn(&Path) -> bool, undeliverable: Undeliverable) -> io::Result<Report> {
    // Closing a file that another copy of the library has locked would drop its lock.
    copies::check()?;
    let want = |path: &Path| if want(path) { deliver_to(path) } else { Want::Leave };
    // A folder that is not this process's queue may be a folder of spools, which may be accessible to others.
    let by_hand = Some(folder).filter(|folder| *folder != queue_folder());
    let mut report = match recover::recover_as(folder, want, Options { undeliverable }) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && by_hand.is_some_and(recover::holds_spools) => {
            Report::default()
        }
        done => done?,
    };
    // If the shared memory is gone, only the spools are left.
    let own = super::life::existing().and_then(|pipeline| pipeline.spooler.as_ref()).map(|spooler| &*spooler.home.name);
    for spools in [super::life::options().spool_dir.as_deref(), by_hand].into_iter().flatten() {
        report.add(recover::recover_spools(spools, own, |path| want(path) == Want::Append)?);
    }
    count(&report);
    Ok(report)
}

/// Adds a report to the counters, and prints the number of dropped records.
fn count(report: &Report) {
    DISCARDED.fetch_add(report.done_away, Ordering::Relaxed);
    RECORDS.fetch_add(report.records(), Ordering::Relaxed);
    let discarded: u64 = report.removed.iter().map(|removed| removed.discarded).sum();
    if discarded > 0 {
        DISCARDED.fetch_add(discarded, Ordering::Relaxed);
        crate::fallback::tell(&format!(
            "logspool: {discarded} records that a killed process had queued for its terminal or pipe are given up\n"
        ));
    }
}

/// Recovers dead processes of this pid namespace, for any file, until `stop`. Returns whether other processes use the
/// folder, from which more may come.
///
/// # Errors
///
/// When the folder cannot be read.
pub(super) fn deliver_relatives(folder: &Folder, which: Deliver, stop: impl Fn() -> bool) -> io::Result<bool> {
    let found = recover::deliver_relatives(folder, which, deliver_to, stop)?;
    count(&found.report);
    Ok(found.has_others)
}

/// Delivers the records that dead processes left in `folder`, for any file. `None` is this process's queue folder.
///
/// Records for terminals and pipes are dropped, and counted in the report. Blocks while the files accept records; call
/// it without an interpreter lock.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn recover(folder: Option<&Path>) -> io::Result<Report> {
    run(&folder.map_or_else(queue_folder, Path::to_owned), |_| true, Undeliverable::Discard)
}

/// Delivers the records that dead processes left for these files, and removes segments without undelivered records. If
/// tmpfs is short, first delivers their records for other files.
///
/// Records for terminals and pipes stay and are listed, until the orphans exceed the folder's cap. Then undeliverable
/// records are dropped, with a line on standard error.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn recover_targets(paths: &[PathBuf]) -> io::Result<Report> {
    super::relief::relieve(&queue_folder());
    run_capped(&queue_folder(), |path| paths.iter().any(|wanted| wanted == path))
}

fn run_capped(folder: &Path, want: impl Fn(&Path) -> bool) -> io::Result<Report> {
    let report = run(folder, &want, Undeliverable::Keep)?;
    let over = report.kept.iter().any(|kept| kept.retention == Retention::ToBeEvicted);
    if over { run(folder, want, Undeliverable::Discard) } else { Ok(report) }
}

/// As [`recover_targets`] for one file, for a writer that is about to begin. Ignores errors, since files of an earlier
/// run must never make a start fail; `orphans` lists the remaining files.
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

/// Lists the sidecars of log files in `folder` that are in use or hold an unfinished append; removes the others. `None`
/// is this process's queue folder.
///
/// # Errors
///
/// When the folder cannot be read or is accessible to others; when another copy of this library has the queue of the
/// process.
pub fn sidecars(folder: Option<&Path>) -> io::Result<Vec<sidecar::Listed>> {
    copies::check()?;
    sidecar::list(&folder.map_or_else(queue_folder, Path::to_owned))
}
