//! When a process delivers what dead ones left: at its start, and before its first line in a file.
//!
//! Atomics outside `queue` and `stats`: counters of what was recovered by this process, whatever its pipeline.

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

/// What this process recovered so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryCounts {
    /// Records of dead processes appended to their files.
    pub records: u64,
    /// Records for terminals and pipes of dead processes, and for files that were opened anew, given up.
    pub discarded: u64,
}

/// What this process recovered so far.
pub fn recovery_counts() -> RecoveryCounts {
    RecoveryCounts { records: RECORDS.load(Ordering::Relaxed), discarded: DISCARDED.load(Ordering::Relaxed) }
}

/// Files that this program opened anew (`mode="w"`): a list that only grows, because a lock could be held by a thread
/// that a forked child does not have.
static OPENED_ANEW: AtomicPtr<Anew> = AtomicPtr::new(std::ptr::null_mut());
/// When this program began.
static BEGUN_NS: OnceLock<i64> = OnceLock::new();

/// Notes when this program begins. Forked children are of the same program.
pub fn program_begins() {
    BEGUN_NS.get_or_init(clock::wall_ns);
}

/// Notes that this program has opened a file anew: what earlier programs left for it belongs in front of that, and
/// has gone with what the file held. What its own forked children leave is appended.
pub fn opened_anew(path: PathBuf) {
    if was_opened_anew(&path) {
        return;
    }
    let anew = Box::leak(Box::new(Anew { path, before: None }));
    let mut newest = OPENED_ANEW.load(Ordering::Acquire);
    loop {
        // SAFETY: entries are stored below and never freed.
        anew.before = unsafe { newest.as_ref() };
        // Release pairs with the Acquire of the loads: who finds an entry finds it whole.
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

/// What becomes of what a dead process left for a wanted file.
fn deliver_to(path: &Path) -> Want {
    let begun = BEGUN_NS.get().copied().unwrap_or(i64::MIN);
    if was_opened_anew(path) { Want::DoneAway(begun) } else { Want::Append }
}

fn run(folder: &Path, want: impl Fn(&Path) -> bool, undeliverable: Undeliverable) -> io::Result<Report> {
    // To close a file that another copy has locked would drop its lock.
    copies::check()?;
    let want = |path: &Path| if want(path) { deliver_to(path) } else { Want::Leave };
    // A folder that is not this process's queue may be one of spools, which others may enter.
    let by_hand = Some(folder).filter(|folder| *folder != queue_folder());
    let mut report = match recover::recover_as(folder, want, Options { undeliverable }) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && by_hand.is_some_and(recover::holds_spools) => {
            Report::default()
        }
        done => done?,
    };
    // Where the memory is gone the spools are all there is.
    let own = super::life::existing().and_then(|pipeline| pipeline.spooler.as_ref()).map(|spooler| &*spooler.home.name);
    for spools in [super::life::options().spool_dir.as_deref(), by_hand].into_iter().flatten() {
        report.add(recover::recover_spools(spools, own, |path| want(path) == Want::Append)?);
    }
    count(&report);
    Ok(report)
}

/// Counts what a recovery did, and says what it gave up.
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

/// Delivers what dead processes of this pid namespace left in the folder, for any file, until `stop`. Returns whether
/// others are there from whom more may come.
///
/// # Errors
///
/// When the folder cannot be read.
pub(super) fn deliver_relatives(folder: &Folder, which: Deliver, stop: impl Fn() -> bool) -> io::Result<bool> {
    let found = recover::deliver_relatives(folder, which, deliver_to, stop)?;
    count(&found.report);
    Ok(found.has_others)
}

/// Delivers what dead processes left in `folder` for any file. `None` is this process's queue folder.
///
/// Records for terminals and pipes are given up, and counted in the report. Blocks for as long as the files
/// take: call it without an interpreter lock.
///
/// # Errors
///
/// When the folder cannot be read or is not ours alone; when another copy of this library has the queue of the process.
pub fn recover(folder: Option<&Path>) -> io::Result<Report> {
    run(&folder.map_or_else(queue_folder, Path::to_owned), |_| true, Undeliverable::Discard)
}

/// Delivers what dead processes left for these files, and removes what holds nothing any more. Where tmpfs is short,
/// what they left for other files comes first.
///
/// Records for terminals and pipes stay and are listed, until what stays exceeds the folder's cap; then those
/// that can go nowhere are given up, with a line on standard error.
///
/// # Errors
///
/// When the folder cannot be read or is not ours alone; when another copy of this library has the queue of the process.
pub fn recover_targets(paths: &[PathBuf]) -> io::Result<Report> {
    super::relief::relieve(&queue_folder());
    run_capped(&queue_folder(), |path| paths.iter().any(|wanted| wanted == path))
}

fn run_capped(folder: &Path, want: impl Fn(&Path) -> bool) -> io::Result<Report> {
    let report = run(folder, &want, Undeliverable::Keep)?;
    let over = report.kept.iter().any(|kept| kept.retention == Retention::ToBeEvicted);
    if over { run(folder, want, Undeliverable::Discard) } else { Ok(report) }
}

/// As [`recover_targets`] for one file, for a writer that is about to begin. What goes wrong stays where it
/// is, and `orphans` tells about it: a start is never refused because of what an earlier run left.
pub(super) fn recover_target(folder: &Path, target: &Path) {
    let _ = run_capped(folder, |path| path == target);
}

/// What dead processes left in `folder`. `None` is this process's queue folder. Changes nothing.
///
/// # Errors
///
/// When the folder cannot be read or is not ours alone; when another copy of this library has the queue of the process.
pub fn orphans(folder: Option<&Path>) -> io::Result<Vec<Orphan>> {
    copies::check()?;
    recover::scan(&folder.map_or_else(queue_folder, Path::to_owned))
}

/// The sidecars of log files in `folder` that are in use or hold something unfinished; others are removed. `None` is
/// this process's queue folder.
///
/// # Errors
///
/// When the folder cannot be read or is not ours alone; when another copy of this library has the queue of the process.
pub fn sidecars(folder: Option<&Path>) -> io::Result<Vec<sidecar::Listed>> {
    copies::check()?;
    sidecar::list(&folder.map_or_else(queue_folder, Path::to_owned))
}
