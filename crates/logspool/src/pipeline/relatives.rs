//! Delivers what dead processes left in the queue's folder, and counts what this process recovered.
//!
//! Atomics outside `queue` and `stats`: counters of what was recovered by this process, whatever its pipeline.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_sys::folder::Folder;

use super::opened_anew::deliver_to;
use crate::recover::{self, Deliver, Report};

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

/// Counts what a recovery did, and says what it gave up.
pub(super) fn count(report: &Report) {
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
