//! One recovery. It claims each orphan, delivers the wanted records, removes empty orphans and reports the other
//! orphans.

use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use logspool_sys::folder::Folder;

use super::adopter::Adopter;
use super::claim::Claim;
use super::decoded::Decoded;
use super::delivery::{Delivery, DeliveryOutput};
use super::file_action::{FileAction, RecoverOptions, Undeliverable};
use super::image::{SinkSlot, UnreadableSegment};
use super::leftover::{self, Leftover, OwnerState};
use super::orphan::{Retention, cap, retention};
use super::pending::{PendingPlace, PendingRecords};
use super::report::{Kept, Reason, Removed, Report};
use super::shrink;
use super::spilled::Spilled;
use super::work;
use crate::sidecar::{self, IntentVerdict};

/// Delivers the records that dead processes of this user left in `folder`, if `action_for` accepts their file. Removes
/// files that hold no undelivered records.
///
/// `action_for` gets each path as the dead process configured it. The module documentation states the guarantees. The
/// function blocks while the files accept records. It waits for another thread of this process that delivers the same
/// records, while that thread makes progress. It skips orphans that another process is recovering.
///
/// # Errors
///
/// Returns an error if the folder cannot be read or is accessible to others. A missing folder counts as empty. The
/// report lists failures on single orphans.
pub fn recover(folder: &Path, action_for: impl Fn(&Path) -> bool, options: RecoverOptions) -> io::Result<Report> {
    recover_as(folder, |path| if action_for(path) { FileAction::Append } else { FileAction::Leave }, options)
}

/// Does the same as [`recover`], but `action_for` chooses a [`FileAction`] for each file.
///
/// # Errors
///
/// Returns the errors of [`recover`].
pub fn recover_as(
    folder: &Path,
    action_for: impl Fn(&Path) -> FileAction,
    options: RecoverOptions,
) -> io::Result<Report> {
    match Folder::open_existing(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Report::default()),
        opened => run(&opened?, action_for, options, None),
    }
}

/// Delivers all records that dead processes left in an open folder of this user.
///
/// # Errors
///
/// Returns an error if the folder cannot be read.
pub(crate) fn recover_in(folder: &Folder, options: RecoverOptions) -> io::Result<Report> {
    run(folder, |_| FileAction::Append, options, None)
}

/// Recovers the orphans of an open folder.
pub(super) fn run(
    folder: &Folder,
    action_for: impl Fn(&Path) -> FileAction,
    options: RecoverOptions,
    adopter: Option<&dyn Adopter>,
) -> io::Result<Report> {
    let torn_before = sidecar::torn_lines();
    let mut recovery = Recovery { folder, action_for, options, adopter, report: Report::default() };
    let mut names = folder.names()?;
    let found = leftover::list_of(folder, &names);
    for leftover in &found {
        if adopter.is_none_or(|adopter| adopter.looks_at(&leftover.name)) {
            recovery.recover_process(leftover)?;
        }
    }
    let mut report = recovery.report;
    if folder.is_own() {
        if !found.is_empty() {
            names = folder.names()?;
        }
        sidecar::sweep(folder, &names);
    }
    report.torn_lines = sidecar::torn_lines() - torn_before;
    if report.kept.is_empty() {
        return Ok(report);
    }
    let cap = cap(folder);
    let mut taken = 0_u64;
    for kept in report.kept.iter_mut().rev() {
        taken = taken.saturating_add(kept.bytes);
        kept.retention = retention(taken, cap);
    }
    Ok(report)
}

/// Does the same as [`recover_as`] for one dead process. The kept files are not compared with the folder's cap.
pub(super) fn recover_one(
    folder: &Folder,
    leftover: &Leftover,
    action_for: impl Fn(&Path) -> FileAction,
    options: RecoverOptions,
) -> io::Result<Report> {
    let torn_before = sidecar::torn_lines();
    let mut recovery = Recovery { folder, action_for, options, adopter: None, report: Report::default() };
    recovery.recover_process(leftover)?;
    let mut report = recovery.report;
    report.torn_lines = sidecar::torn_lines() - torn_before;
    Ok(report)
}

/// Result of the recovery of one dead process.
#[derive(Default)]
struct OrphanOutcome {
    /// Why the files stay. The list is empty if they may be removed.
    reasons: Vec<Reason>,
    /// Number of records that are dropped when the files are removed.
    given_up: u64,
    /// The decoded files. `None` if a part of them is damaged.
    decoded: Option<Decoded>,
}

impl OrphanOutcome {
    fn kept(reason: Reason) -> Self {
        Self { reasons: vec![reason], ..Self::default() }
    }
}

struct Recovery<'a, W> {
    folder: &'a Folder,
    action_for: W,
    options: RecoverOptions,
    adopter: Option<&'a dyn Adopter>,
    report: Report,
}

impl<W: Fn(&Path) -> FileAction> Recovery<'_, W> {
    /// Recovers one process if it is dead. Adds to the report why its files stay.
    fn recover_process(&mut self, leftover: &Leftover) -> io::Result<()> {
        let reasons = match work::owner(self.folder, leftover) {
            OwnerState::Alive => return Ok(()),
            // Another recoverer has removed the files in the meantime.
            OwnerState::Unknown if !Leftover::find(self.folder, &leftover.name)?.is_there() => return Ok(()),
            // Creating a lock file here would disturb the user who owns the folder.
            _ if !leftover.lock && !self.folder.is_own() => vec![Reason::OwnerUnknown],
            OwnerState::Unknown => vec![Reason::OwnerUnknown],
            // Files of an earlier run must never make a start fail, whatever they contain.
            OwnerState::Dead => match catch_unwind(AssertUnwindSafe(|| self.settle(leftover))) {
                Ok(Ok(reasons)) => reasons,
                Ok(Err(error)) => vec![Reason::Unreadable { why: error.to_string() }],
                Err(_) => vec![Reason::Failed],
            },
        };
        if !reasons.is_empty() {
            self.keep(leftover, reasons);
        }
        Ok(())
    }

    /// Recovers one dead process. Returns why its files stay. The list is empty if the files are removed.
    fn settle(&mut self, leftover: &Leftover) -> io::Result<Vec<Reason>> {
        let Some(mut claim) = Claim::take(self.folder, leftover)? else { return Ok(vec![Reason::InWork]) };
        let OrphanOutcome { mut reasons, given_up, mut decoded } = self.deliver(&mut claim)?;
        while !reasons.is_empty() {
            if let Some(decoded) = &mut decoded {
                // An error has one effect: memory stays allocated. The next recovery tries again.
                let _ = shrink::shrink(self.folder, &claim, decoded);
            }
            let Some(last) = claim.leave() else { return Ok(reasons) };
            claim = last;
            // Other threads may have delivered the remaining records in the meantime.
            if self.is_empty(&claim) {
                reasons.clear();
            }
        }
        match claim.close_to_others() {
            Some(claim) => self.remove(claim, given_up),
            // Other threads are still at work. The last thread that leaves removes the files.
            None => Ok(vec![Reason::InWork]),
        }
    }

    /// Whether a dead process has no undelivered records and no damage.
    fn is_empty(&self, claim: &Claim<'_>) -> bool {
        let Ok(Some(segment)) = claim.segment() else { return false };
        let decoded = Decoded::read(self.folder, &claim.leftover, segment);
        decoded.is_ok_and(|decoded| decoded.pending().is_empty() && !decoded.survey.damage.is_any())
    }

    /// Delivers the wanted records of one orphan.
    fn deliver(&mut self, claim: &mut Claim<'_>) -> io::Result<OrphanOutcome> {
        let Some(segment) = claim.segment()? else { return self.without_segment(claim) };
        let mut decoded = match Decoded::read(self.folder, &claim.leftover, segment) {
            Ok(decoded) => decoded,
            Err(UnreadableSegment::Unfinished) => return self.without_segment(claim),
            Err(UnreadableSegment::OtherVersion(major)) => {
                return Ok(OrphanOutcome::kept(Reason::OtherVersion { major }));
            }
            Err(UnreadableSegment::Broken(why)) => return Ok(OrphanOutcome::kept(Reason::Unreadable { why })),
        };
        claim.begin()?;
        let mut damage = decoded.survey.damage;
        let mut reasons = Vec::new();
        let mut gone = Vec::new();
        let mut outputs = Vec::new();
        for PendingRecords { place, records, sink } in decoded.pending() {
            match place {
                PendingPlace::File(path) => match (self.action_for)(&path) {
                    FileAction::Append | FileAction::Take | FileAction::DropOlder(_) if !claim.take_sink(sink) => {
                        if !reasons.contains(&Reason::InWork) {
                            reasons.push(Reason::InWork);
                        }
                    }
                    FileAction::DropOlder(before) if decoded.image.created_ns() < before => {
                        self.report.done_away += records;
                        claim.close(sink)?;
                    }
                    FileAction::Append | FileAction::DropOlder(_) if self.folder.is_own() => {
                        let numbering = decoded.progress.numbering(sink);
                        outputs.push(DeliveryOutput::new(decoded.image.sink_id(sink), path, numbering));
                    }
                    FileAction::Take if self.adopter.is_some() => {
                        outputs.push(DeliveryOutput::for_adopter(decoded.image.sink_id(sink), path));
                    }
                    FileAction::Leave | FileAction::Take | FileAction::Append | FileAction::DropOlder(_) => {
                        reasons.push(Reason::Unwanted { path, records })
                    }
                },
                PendingPlace::Gone(sink) => gone.push(Reason::Undeliverable { sink, records }),
                PendingPlace::Unknown => damage.records = damage.records.saturating_add(records),
            }
        }
        if self.folder.is_own() {
            let judge = |id: u32| self.decide_intent(&decoded, claim, id);
            match sidecar::settle(self.folder, &claim.leftover.name, judge) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(OrphanOutcome::kept(Reason::InWork)),
                settled => settled?,
            }
        }
        if !outputs.is_empty() {
            for output in &mut outputs {
                output.error = output.open(self.folder, claim).err();
            }
            if let Some(segment) = claim.segment()? {
                decoded.refresh(segment)?;
            }
            let outcome = Delivery::new(self.folder, claim, &decoded, outputs, self.adopter).run();
            // The survey has already counted some of these records.
            let more = outcome.damage.records.saturating_sub(decoded.survey.damage.records);
            damage.records = damage.records.saturating_add(more);
            claim.check()?;
            // Store this note before the sinks are closed. If all sinks were closed without it, the segment could be
            // removed.
            claim.note_unreadable(more)?;
            self.close(claim, &decoded, outcome.outputs, &mut reasons)?;
        }
        let is_whole = !damage.is_any();
        if !is_whole {
            reasons.push(Reason::Damaged(damage));
        }
        if self.options.undeliverable == Undeliverable::Keep || !reasons.is_empty() {
            reasons.append(&mut gone);
        }
        let given_up = |reason: &Reason| if let Reason::Undeliverable { records, .. } = reason { *records } else { 0 };
        let given_up = gone.iter().map(given_up).sum();
        Ok(OrphanOutcome { reasons, given_up, decoded: is_whole.then_some(decoded) })
    }

    /// Decides what to do with an append that the dead process had begun for sink `id`.
    fn decide_intent(&self, decoded: &Decoded, claim: &Claim<'_>, id: u32) -> IntentVerdict {
        let place = match decoded.image.place_of(id) {
            SinkSlot::Own(place) if claim.is_taken_by_another(place) => return IntentVerdict::Leave,
            SinkSlot::Own(place) => decoded.image.sink(place),
            SinkSlot::Another | SinkSlot::Unknown => None,
        };
        let Some((Some(path), _)) = place else { return IntentVerdict::Finish };
        match (self.action_for)(Path::new(&path)) {
            FileAction::DropOlder(before) if decoded.image.created_ns() < before => IntentVerdict::TakeBack,
            FileAction::Append | FileAction::DropOlder(_) | FileAction::Take => IntentVerdict::Finish,
            FileAction::Leave => IntentVerdict::Leave,
        }
    }

    /// Handles the files of a process without a finished segment. A lock file alone is removed. Overflow and blob files
    /// stay, since their destination is unknown.
    fn without_segment(&self, claim: &Claim<'_>) -> io::Result<OrphanOutcome> {
        let spilled = Spilled::index(self.folder, &claim.leftover)?;
        let is_empty = spilled.is_empty() && claim.leftover.blobs.is_empty();
        Ok(if is_empty { OrphanOutcome::default() } else { OrphanOutcome::kept(Reason::NoSegment) })
    }

    /// Closes the delivered sinks in the segment, and adds them to the report.
    fn close(
        &mut self,
        claim: &Claim<'_>,
        decoded: &Decoded,
        outputs: Vec<DeliveryOutput>,
        reasons: &mut Vec<Reason>,
    ) -> io::Result<()> {
        for DeliveryOutput { sink, path, records, refused, bytes, error, is_taken, .. } in outputs {
            self.report.refused += refused;
            self.report.add_delivered(path.clone(), records, bytes, is_taken);
            match error {
                None => claim.close(sink)?,
                Some(error) => {
                    let records = decoded
                        .survey
                        .pending
                        .get(&sink)
                        .map_or(0, |pending| pending.saturating_sub(records + refused));
                    reasons.push(Reason::Unwritable { path, error: error.to_string(), records });
                }
            }
        }
        Ok(())
    }

    fn remove(&mut self, claim: Claim<'_>, discarded: u64) -> io::Result<Vec<Reason>> {
        claim.check()?;
        let leftover = &claim.leftover;
        let (name, pid, bytes) = (leftover.name.clone(), leftover.pid(), leftover.bytes());
        claim.remove()?;
        self.report.removed.push(Removed { name, pid, bytes, discarded });
        Ok(Vec::new())
    }

    fn keep(&mut self, leftover: &Leftover, reasons: Vec<Reason>) {
        let (name, pid, bytes) = (leftover.name.clone(), leftover.pid(), leftover.bytes_now(self.folder));
        self.report.kept.push(Kept { name, pid, bytes, reasons, retention: Retention::Stay });
    }
}
