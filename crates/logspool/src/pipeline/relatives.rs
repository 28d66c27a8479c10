//! Delivers the records that dead processes left in the queue's folder, and counts them.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: counters of the records that this
//! process recovered, independent of its pipeline.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_sys::folder::Folder;

use super::truncated::deliver_to;
use crate::recover::{self, Deliver, Report};

static RECORDS: AtomicU64 = AtomicU64::new(0);
static DISCARDED: AtomicU64 = AtomicU64::new(0);

/// Counts of recovered records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryCounts {
    /// Records of dead processes that were appended to their files.
    pub records: u64,
    /// Records of dead processes that were dropped, because they were for a terminal, a pipe, or a file that this
    /// program truncated.
    pub discarded: u64,
}

/// Counts of the records that this process has recovered.
pub fn recovery_counts() -> RecoveryCounts {
    RecoveryCounts { records: RECORDS.load(Ordering::Relaxed), discarded: DISCARDED.load(Ordering::Relaxed) }
}

/// Adds a report to the counters, and prints the number of dropped records.
pub(super) fn count(report: &Report) {
    DISCARDED.fetch_add(report.done_away, Ordering::Relaxed);
    RECORDS.fetch_add(report.records(), Ordering::Relaxed);
    let discarded: u64 = report.removed.iter().map(|removed| removed.discarded).sum();
    if discarded > 0 {
        DISCARDED.fetch_add(discarded, Ordering::Relaxed);
        crate::fallback::report(&format!(
            "logspool: {discarded} records that a killed process had queued for its terminal or pipe are dropped\n"
        ));
    }
}

/// Delivers the records of dead processes of this pid namespace, for any file, until `stop` returns true. Returns
/// whether other processes use the folder: these may leave more records.
///
/// # Errors
///
/// Fails if the folder cannot be read.
pub(super) fn deliver_relatives(folder: &Folder, which: Deliver, stop: impl Fn() -> bool) -> io::Result<bool> {
    let found = recover::deliver_relatives(folder, which, deliver_to, stop)?;
    count(&found.report);
    Ok(found.has_others)
}
