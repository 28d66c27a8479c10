//! Recovers spools whose segment is gone. This happens after a reboot, after the end of a container that had its own
//! shared memory, or after a user's shared memory was cleared.
//!
//! Each spool is opened under its lock, as its process would have opened it, and read to its end. Delivered records are
//! acked and made durable piece by piece. The progress after the last checkpoint is lost, so the records of the last
//! second may be delivered twice. A spool in use is left to its owner. A spool with a segment is left to the recovery
//! of that segment.

use std::io::{self, ErrorKind};
use std::path::Path;

use logspool_lanes::segment::layout::Table;
use logspool_spool::pointer::{self, SegmentPresence, SpoolTarget};
use logspool_spool::{RealDisk, SpoolError, View};
use logspool_sys::folder::Folder;
use logspool_sys::opening::entries;

use super::Retention;
use super::report::{Delivered, Kept, Reason, Removed, Report};
use super::target::Target;
use super::work::Work;
use crate::writer::{BacklogRead, SinkSpool};

/// Number of bytes that are delivered before an ack.
///
/// Chosen: each piece needs a sync of the file. Halving it costs twice as many syncs; doubling it repeats more records
/// after a kill between delivery and ack.
const PIECE_BYTES: usize = 4 * 1024 * 1024;

/// Delivers the records of those spools below `folder` whose segment is gone, if `is_wanted` accepts their destination.
/// Removes spools without undelivered records.
///
/// `own` names the folder of this process's spools, which is skipped. A record lock excludes only other processes, and
/// is dropped when the file is closed a second time.
///
/// # Errors
///
/// Returns an error if the folder cannot be read. A missing folder counts as empty. The report lists failures on single
/// spools.
pub fn recover_spools(folder: &Path, own: Option<&str>, is_wanted: impl Fn(&Path) -> bool) -> io::Result<Report> {
    let mut report = Report::default();
    let entries = match entries(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(report),
        entries => entries?,
    };
    for entry in entries {
        let Ok(name) = entry.name.into_string() else { continue };
        if own == Some(&name) {
            continue;
        }
        // Skip a folder that is accessible to others: it holds no spools of this user.
        let Ok(folder) = Folder::open_existing(&folder.join(&name)) else { continue };
        // The folder has no lock; each spool in it has one.
        if let Some(work) = Work::join(&folder, "", None)? {
            Process { folder, work, name, report: &mut report }.settle(&is_wanted);
        }
    }
    Ok(report)
}

/// Whether a folder holds spools of this user.
pub fn holds_spools(folder: &Path) -> bool {
    let entries = entries(folder).unwrap_or_default();
    let mut folders = entries.iter().filter_map(|entry| Folder::open_existing(&folder.join(&entry.name)).ok());
    folders.any(|process| process.names().is_ok_and(|names| names.iter().any(|name| pointer::sink_of(name).is_some())))
}

struct Process<'a> {
    folder: Folder,
    work: Work,
    name: String,
    report: &'a mut Report,
}

/// Result of the recovery of one spool.
enum SpoolOutcome {
    /// All its records are delivered, or have no destination.
    Empty,
    /// The spool is skipped, since it is in use or has a segment.
    NotOurs,
    /// The spool stays, for this reason.
    Stays(Reason),
}

impl Process<'_> {
    fn settle(mut self, is_wanted: impl Fn(&Path) -> bool) {
        let names = self.folder.names().unwrap_or_default();
        let sink = |name: String| pointer::sink_of(&name).map(|id| (name, id));
        let sinks: Vec<(String, u32)> = names.into_iter().filter_map(sink).collect();
        let mut reasons = Vec::new();
        let mut is_empty = !sinks.is_empty();
        for (sink, id) in sinks {
            let path = self.folder.path().join(&sink);
            let outcome = self.settle_sink(&path, id, &is_wanted).unwrap_or_else(|error| match error.kind() {
                ErrorKind::WouldBlock => SpoolOutcome::NotOurs,
                _ => SpoolOutcome::Stays(Reason::Unreadable { why: format!("{}: {error}", path.display()) }),
            });
            match outcome {
                SpoolOutcome::Empty => {}
                SpoolOutcome::NotOurs => is_empty = false,
                SpoolOutcome::Stays(reason) => {
                    is_empty = false;
                    reasons.push(reason);
                }
            }
        }
        let (name, pid) = (self.name.clone(), 0);
        let last = if is_empty { self.work.close() } else { None };
        if last.is_some() && pointer::remove_spools(self.folder.path()).is_ok() {
            self.report.removed.push(Removed { name, pid, bytes: 0, discarded: 0 });
        } else if !reasons.is_empty() {
            self.report.kept.push(Kept { name, pid, bytes: 0, reasons, retention: Retention::Stay });
        }
    }

    fn settle_sink(&mut self, path: &Path, id: u32, is_wanted: impl Fn(&Path) -> bool) -> io::Result<SpoolOutcome> {
        let folder = Folder::open_existing(path)?;
        let Some(target) = pointer::read_target(&folder)? else {
            return Ok(SpoolOutcome::Stays(Reason::Unreadable { why: format!("{} names no target", path.display()) }));
        };
        if target.is_alone == SegmentPresence::No {
            return Ok(SpoolOutcome::NotOurs);
        }
        let is_alone = target.is_alone;
        let SpoolTarget { place: Some(place), .. } = target else { return Ok(SpoolOutcome::Empty) };
        if !is_wanted(&place) {
            return Ok(SpoolOutcome::Stays(Reason::Unwanted { path: place, records: count(path)? }));
        }
        if !self.work.take_sink(Table::Sinks.slot(id)) {
            return Ok(SpoolOutcome::NotOurs);
        }
        let mut spool = SinkSpool::open_left(path)?;
        let mut delivered = Delivered { path: place.clone(), records: 0, bytes: 0, taken: false };
        let result = deliver(&mut spool, &place, &self.work, &mut delivered, &mut self.report.refused);
        self.report.add_delivered(place.clone(), delivered.records, delivered.bytes, false);
        Ok(match result {
            // A live process that is invisible from this pid namespace may be about to lock the spool.
            Ok(()) if is_alone == SegmentPresence::NotSeen && delivered.records == 0 => SpoolOutcome::NotOurs,
            Ok(()) => SpoolOutcome::Empty,
            Err(error) => SpoolOutcome::Stays(Reason::Unwritable { path: place, error: error.to_string(), records: 0 }),
        })
    }
}

/// Counts the records of a spool that are not acked.
fn count(path: &Path) -> io::Result<u64> {
    let view = RealDisk::open_read_only(path).and_then(View::open).map_err(SpoolError::from)?;
    let mut records = 0;
    let walked = view.walk(&mut [], |frame, _| {
        if frame.end() > view.acked() {
            records += u64::from(frame.count);
        }
    });
    walked.map_err(SpoolError::from)?;
    Ok(records)
}

fn deliver(
    spool: &mut SinkSpool,
    place: &Path,
    work: &Work,
    delivered: &mut Delivered,
    more_refused: &mut u64,
) -> io::Result<()> {
    let mut target = Target::open_without_sidecar(place)?;
    let (mut unacked, mut reached) = (0, 0);
    let mut pass_on = || -> io::Result<()> {
        while let BacklogRead::Chunk(chunk, end) = spool.next()? {
            work.step();
            target.append_without_sidecar(&chunk)?;
            let refused = target.take_refused();
            *more_refused += refused;
            delivered.records += chunk.marks.len() as u64 - refused;
            delivered.bytes += chunk.bytes.len() as u64;
            (unacked, reached) = (unacked + chunk.bytes.len(), end);
            if unacked >= PIECE_BYTES {
                settle(spool, &mut target, reached)?;
                unacked = 0;
            }
        }
        Ok(())
    };
    let passed_on = pass_on();
    // Ack even after an error, so that each further try does not repeat the delivered records.
    passed_on.and(settle(spool, &mut target, reached))
}

fn settle(spool: &mut SinkSpool, target: &mut Target, reached: u64) -> io::Result<()> {
    target.sync()?;
    spool.ack(reached)?;
    Ok(spool.checkpoint()?)
}
