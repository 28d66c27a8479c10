//! Opens a spool: brings the folders into a clean state after whatever happened.
//!
//! 1. The newest checkpoint of all folders counts; without one only the segments count.
//! 2. Every segment is scanned. Its frames from the first number of a later segment on are not believed; `spool_segment.rs`
//!    covers the case of several segments that take over together. The frames that the last segment was to take over
//!    are an exception. Of two such frames that overlap, the one in the later segment counts: the other is left from a
//!    failed append.
//! 3. The first checkpoint of this life is made durable, in a new file.
//! 4. The frames of the former life's last segment are read into memory, written into a new segment and synced. Their
//!    pages may be in the cache alone, and a sync that failed in the former life would not fail again.
//! 5. Segments that no consumer needs are freed.
//!
//! The contents of the files never make an opening fail. Bytes that no checksum confirms are copied to `quarantine/`
//! and counted. Numbers without records become a gap for each consumer. A full disk postpones step 3 or 4. A second
//! opening of the same folder delivers the same records, even if the first one was cut short anywhere.

use std::collections::{BTreeMap, VecDeque};

use super::checkpoint::{self, CheckpointWriter};
use super::defect::Defect;
use super::disk::{Disk, DiskError};
use super::error::SpoolError;
use super::frame::{FrameHead, FrameKey};
use super::id::Id;
use super::item::Consumer;
use super::options::Options;
use super::room::MAX_SPARES;
use super::scan::{Damage, scan};
use super::spool::{SpareFile, Spool};
use super::spool_segment::{FileKind, Header, Segment, aside_name, file_kind, segment_name, spare_name};
use super::undeliverable::UndeliverableCopies;

/// Maximum number of unreadable segments kept for inspection.
const MAX_ASIDE: usize = 4;

/// Maximum number of bytes copied of a segment's damaged end, which is mainly zeros or frames of a former use of the
/// file.
///
/// Chosen: it is a quarter of the largest frame. A person reads only the beginning of the copy.
const MAX_TAIL_BYTES: u64 = 1024 * 1024;

/// A segment file with a valid header.
pub(super) struct FoundSegment<D: Disk> {
    pub(super) disk: usize,
    pub(super) file: D::File,
    pub(super) bytes: u64,
    pub(super) header: Header,
}

/// A damaged place in a segment. Records below `end` may be missing because of it.
pub(super) struct DamagedRange {
    number: u64,
    pub(super) damage: Damage,
    end: u64,
}

impl<D: Disk> Spool<D> {
    /// Opens the spool in these folders, or begins a new one. The first folder is used until it fails, then the others
    /// in turn.
    ///
    /// # Errors
    ///
    /// The options are invalid, or no folder can be listed.
    pub fn open(disks: Vec<D>, options: Options) -> Result<Self, SpoolError> {
        options.check()?;
        let inherited = checkpoint::newest(&disks);
        let mut spool = Self {
            disks,
            preferred: 0,
            options,
            state: inherited.clone().unwrap_or_default(),
            keeper: CheckpointWriter::new(),
            inherited,
            saved: None,
            saved_floor: 0,
            segments: VecDeque::new(),
            is_writing: false,
            spares: Vec::new(),
            next_segment: 0,
            unsynced: VecDeque::new(),
            unsynced_bytes: 0,
            takes_over_from: None,
            next: 0,
            consumers: BTreeMap::new(),
            undeliverable: UndeliverableCopies::new(),
            failed_syncs: 0,
            disk_errors: 0,
            last_error: None,
        };
        let found = spool.find_segments()?;
        spool.adopt_stream(&found);
        let damages = spool.adopt_segments(found);
        spool.restore_positions();
        if let Err(error) = spool.save() {
            spool.last_error = Some(error.to_string());
        }
        spool.report_damages(damages);
        if let Err(error) = spool.take_over() {
            spool.last_error = Some(error.to_string());
        }
        spool.free_acked_segments();
        Ok(spool)
    }

    /// Sorts the files of all folders and returns the segments, in the order in which they were made.
    fn find_segments(&mut self) -> Result<Vec<FoundSegment<D>>, SpoolError> {
        let mut found = Vec::new();
        let mut failed: Vec<DiskError> = Vec::new();
        let mut aside = 0;
        for disk in 0..self.disks.len() {
            let mut names = match self.disks[disk].names() {
                Ok(names) => names,
                Err(error) => {
                    self.note_error(&error);
                    failed.push(error);
                    continue;
                }
            };
            names.sort_unstable();
            for name in names {
                match file_kind(&name) {
                    FileKind::Segment(number) => {
                        self.next_segment = self.next_segment.max(number);
                        match self.open_segment(disk, number) {
                            Ok(Some(segment)) => found.push(segment),
                            Ok(None) => {}
                            Err(error) => self.note_error(&error),
                        }
                    }
                    FileKind::Spare(number) => {
                        self.next_segment = self.next_segment.max(number);
                        self.adopt_spare(disk, number);
                    }
                    FileKind::SetAside(number) => {
                        self.next_segment = self.next_segment.max(number);
                        aside += 1;
                        if aside > MAX_ASIDE {
                            let _ = self.disks[disk].remove(&name);
                        }
                    }
                    FileKind::Unfinished(number) => {
                        // A file that cannot be removed does no harm, because the next segment gets another number.
                        self.next_segment = self.next_segment.max(number.unwrap_or(0));
                        let _ = self.disks[disk].remove(&name);
                    }
                    FileKind::Other => {}
                }
            }
        }
        if failed.len() == self.disks.len()
            && let Some(error) = failed.pop()
        {
            return Err(error.into());
        }
        // Sorts by epoch first: a file that a crash brings back may have a number that was used again.
        found.sort_by_key(|segment| (segment.header.epoch, segment.header.number));
        Ok(found)
    }

    /// Opens a segment file. `None`: the file is not a segment in use.
    fn open_segment(&mut self, disk: usize, number: u64) -> Result<Option<FoundSegment<D>>, DiskError> {
        let folder = &self.disks[disk];
        let name = segment_name(number);
        let file = folder.open(&name)?;
        let bytes = folder.bytes(&file)?;
        match Header::read(folder, &file)? {
            Some(header) if header.number == number => Ok(Some(FoundSegment { disk, file, bytes, header })),
            // A crash undid the renames of a file that was to be used again. The file has not been written since then.
            Some(header) if header.number > number => {
                drop(file);
                folder.rename(&name, &spare_name(number))?;
                self.next_segment = self.next_segment.max(header.number);
                self.adopt_spare(disk, number);
                Ok(None)
            }
            _ => {
                self.set_aside(disk, number)?;
                Ok(None)
            }
        }
    }

    fn set_aside(&mut self, disk: usize, number: u64) -> Result<(), DiskError> {
        self.undeliverable.quarantined_frames += 1;
        self.disks[disk].rename(&segment_name(number), &aside_name(number))
    }

    fn adopt_spare(&mut self, disk: usize, number: u64) {
        let folder = &self.disks[disk];
        let name = spare_name(number);
        let bytes = folder.open(&name).and_then(|file| folder.bytes(&file));
        if self.spares.len() < MAX_SPARES && bytes.is_ok_and(|bytes| bytes == self.options.segment_bytes) {
            self.spares.push(SpareFile { disk, number });
        } else {
            // If the file cannot be removed, the next opening tries again.
            let _ = folder.remove(&name);
        }
    }

    /// Continues the stream of the checkpoint, or else of the newest segment, or else begins a new one. The epoch is
    /// always new.
    fn adopt_stream(&mut self, found: &[FoundSegment<D>]) {
        if self.inherited.is_none() {
            let newest = found.last().map(|segment| segment.header.stream);
            self.state.stream = newest.unwrap_or_else(|| Id(self.disks[0].random_id()));
        }
        let stream = self.state.stream;
        let epochs = found.iter().map(|segment| segment.header).filter(|header| header.stream == stream);
        let highest = epochs.map(|header| header.epoch).max().unwrap_or(0).max(self.state.epoch);
        self.state.epoch = highest.saturating_add(1);
    }

    /// Scans the stream's segments and returns their damaged places.
    fn adopt_segments(&mut self, found: Vec<FoundSegment<D>>) -> Vec<DamagedRange> {
        let (own, foreign): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|segment| segment.header.stream == self.state.stream);
        for segment in foreign {
            if let Err(error) = self.set_aside(segment.disk, segment.header.number) {
                self.note_error(&error);
            }
        }
        let (segments, damages) = believed(&self.disks, own);
        self.segments = segments;
        damages
    }

    /// Restores the consumers' positions, and sets the next number so that no number is used twice.
    fn restore_positions(&mut self) {
        let ends = self.segments.iter().flat_map(|segment| &segment.runs).map(|run| run.end).max().unwrap_or(0);
        let acked = self.state.positions.values().copied().max().unwrap_or(0);
        let known = acked.max(self.state.durable).max(self.state.dropped_end);
        self.next = if Defect::ForgetNumbers.is_planted() { ends } else { ends.max(known) };
        self.consumers = self.state.positions.iter().map(|(id, position)| (*id, Consumer::at(*position))).collect();
    }

    /// Counts and copies damage in segments that a consumer still needs.
    fn report_damages(&mut self, damages: Vec<DamagedRange>) {
        let floor = self.floor();
        for DamagedRange { number, damage, end } in damages {
            if let Some(segment) = self.segments.iter().find(|segment| segment.number == number)
                && end > floor
            {
                self.undeliverable.quarantine(&self.disks[segment.disk], &segment.file, number, damage);
            }
        }
    }
}

/// Scans the segments of one stream, oldest first in `found`. Returns them with the frames that are believed, and their
/// damaged places.
pub(super) fn believed<D: Disk>(disks: &[D], found: Vec<FoundSegment<D>>) -> (VecDeque<Segment<D>>, Vec<DamagedRange>) {
    let last_first = found.last().map_or(u64::MAX, |segment| segment.header.first);
    let mut segments = VecDeque::new();
    let mut damages = Vec::new();
    let mut bounds = BelievedEnds::default();
    let mut taken_over = CoveredNumbers::default();
    // Goes from the newest to the oldest segment: the believed frames of a segment end where any later segment begins.
    for FoundSegment { disk, file, bytes, header } in found.into_iter().rev() {
        let key = FrameKey::new(&header.id);
        let bound = bounds.of(&header);
        let may_be_taken = bounds.lowest >= last_first;
        // A frame that begins before the last segment's first number is believed if it ends at or before `bound`. Any
        // other frame is believed only if the last segment was to take it over.
        let is_believed = |head: &FrameHead| {
            if head.first < last_first { head.end() <= bound } else { may_be_taken && taken_over.take(head) }
        };
        let scanned = scan(&disks[disk], &file, key, header.first, is_believed);
        let end = scanned.runs.last().map_or(header.first, |run| run.end);
        damages.extend(scanned.damages.into_iter().map(|damage| DamagedRange { number: header.number, damage, end }));
        // A segment with a later segment was synced to its end.
        if let Some(tail) = scanned.tail
            && bound != u64::MAX
            && end < bound
        {
            let damage = Damage { bytes: tail.bytes.min(MAX_TAIL_BYTES), ..tail };
            damages.push(DamagedRange { number: header.number, damage, end: bound });
        }
        bounds.add(&header);
        segments.push_front(Segment {
            number: header.number,
            disk,
            file,
            key,
            bytes,
            runs: scanned.runs,
            offset: 0,
            first: header.first,
            // Frames that are not believed because of a later segment may be durable only in this segment, until they
            // are taken over.
            keeps_unsynced: scanned.has_leftovers,
            is_failed: false,
            has_leftovers: scanned.has_leftovers,
        });
    }
    (segments, damages)
}

/// Computes the number at which a segment's believed frames end, from the later segments.
struct BelievedEnds {
    /// The lowest first record of all later segments.
    lowest: u64,
    /// The lowest first record of the later segments outside the group in `takes_over`.
    others: u64,
    /// Epoch and first record of the newest group of segments. Together these took over the frames of one earlier
    /// segment.
    takes_over: (u64, u64),
    /// The lowest number with which a segment of that group itself begins.
    begins: u64,
}

impl Default for BelievedEnds {
    fn default() -> Self {
        Self { lowest: u64::MAX, others: u64::MAX, takes_over: (u64::MAX, u64::MAX), begins: u64::MAX }
    }
}

impl BelievedEnds {
    /// The number from which on the frames of `header`'s segment are not believed. All segments added before must be
    /// later ones.
    fn of(&self, header: &Header) -> u64 {
        if self.takes_over == (header.epoch, header.first) { self.others.min(self.begins) } else { self.lowest }
    }

    fn add(&mut self, header: &Header) {
        let takes_over = (header.epoch, header.first);
        if self.takes_over != takes_over {
            *self = Self { lowest: self.lowest, others: self.lowest, takes_over, begins: u64::MAX };
        }
        self.lowest = self.lowest.min(header.first);
        self.begins = self.begins.min(header.begins);
    }
}

/// The numbers that frames of later segments cover, from the last segment's first number on.
#[derive(Default)]
struct CoveredNumbers {
    /// Maps the first number of each frame to the number after its last record.
    ends: BTreeMap<u64, u64>,
}

impl CoveredNumbers {
    /// Adds a frame. `false`: a frame of a later segment covers some of its numbers.
    fn take(&mut self, head: &FrameHead) -> bool {
        let before = self.ends.range(..head.end()).next_back();
        let is_free = before.is_none_or(|(_, end)| *end <= head.first) || Defect::OldCopyWins.is_planted();
        if is_free {
            self.ends.insert(head.first, head.end());
        }
        is_free
    }
}
