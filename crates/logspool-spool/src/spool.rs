//! The spool itself: its state, and the path of a batch from `append` to durable.
//!
//! One thread owns the spool, and every call may block on the disk. Invariants:
//!
//! - Frames that are not durable are also in memory (`unsynced`), so a file whose sync failed is never needed.
//! - Only the segment being written holds frames that are not durable: a full one is synced before the next is made.
//! - `Segment::runs` lists the frames that are durable and believed; `unsynced` begins after them.
//! - Numbers grow; the stream never uses a number twice.

use std::collections::{BTreeMap, VecDeque};

use super::checkpoint::{CheckpointState, CheckpointWriter};
use super::defect::Defect;
use super::disk::{Disk, DiskError};
use super::error::SpoolError;
use super::frame::{HEAD_BYTES, MAX_PAYLOAD_BYTES, UnsyncedFrame, frame_bytes};
use super::id::Id;
use super::item::Consumer;
use super::options::Options;
use super::spool_segment::{FrameRun, Segment};
use super::undeliverable::UndeliverableCopies;

/// Records to keep, encoded as their reader expects.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// Number of the first record. Numbers skipped since the last batch count as left out on purpose.
    pub first: u64,
    /// Number of records.
    pub count: u32,
    /// How the payload is encoded. The spool stores and returns this byte and does not interpret it.
    pub codec: u8,
    /// The encoded records.
    pub payload: &'a [u8],
}

/// A segment file that waits to be used again.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpareFile {
    pub(super) disk: usize,
    pub(super) number: u64,
}

/// The spool: append-only segments on disk, a checkpoint of all consumers, and the frames that are not durable yet.
#[derive(Debug)]
pub struct Spool<D: Disk> {
    pub(super) disks: Vec<D>,
    /// Index of the folder to try first for the next segment.
    pub(super) preferred: usize,
    pub(super) options: Options,
    /// State for the next checkpoint, except `durable` and the positions, which `save` fills in.
    pub(super) state: CheckpointState,
    pub(super) keeper: CheckpointWriter<D>,
    /// The former life's state, until this life has stored its first state.
    pub(super) inherited: Option<CheckpointState>,
    /// The last state that is durable.
    pub(super) saved: Option<CheckpointState>,
    /// A durable checkpoint has acked or dropped every record below this number.
    pub(super) saved_floor: u64,
    /// Segments in the order of their numbers.
    pub(super) segments: VecDeque<Segment<D>>,
    /// Whether the last segment accepts further frames.
    pub(super) is_writing: bool,
    pub(super) spares: Vec<SpareFile>,
    pub(super) next_segment: u64,
    /// Frames that no sync has made durable, in order.
    pub(super) unsynced: VecDeque<UnsyncedFrame>,
    pub(super) unsynced_bytes: u64,
    /// First record number of the segment that will replace files with frames that are not durable. The number does not
    /// change until the replacement is complete. Otherwise an unfinished try would make the next one look complete.
    pub(super) takes_over_from: Option<u64>,
    /// The number after the last record, which the next batch may use.
    pub(super) next: u64,
    pub(super) consumers: BTreeMap<u64, Consumer>,
    pub(super) undeliverable: UndeliverableCopies<D>,
    pub(super) failed_syncs: u64,
    pub(super) disk_errors: u64,
    pub(super) last_error: Option<String>,
}

impl<D: Disk> Spool<D> {
    /// Id of the stream. It is made once for a folder, and kept as long as the folder's files.
    pub fn stream(&self) -> Id {
        self.state.stream
    }

    /// Which life of the stream this is; every opening begins a new one.
    pub fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// The lowest number that the next batch may begin with.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Every record below this number is durable, delivered, or counted as lost or dropped.
    pub fn durable(&self) -> u64 {
        self.unsynced.front().map_or(self.next, |frame| frame.head.first)
    }

    /// Appends a batch and returns the number after its last record. The batch is written, not durable: see
    /// [`Spool::sync`].
    ///
    /// # Errors
    ///
    /// After an error the batch is not kept. The caller may append it again, or drop it and use its numbers for another
    /// batch.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<u64, SpoolError> {
        let bytes = self.check(batch)?;
        if self.unsynced_bytes + bytes > self.options.max_unsynced_bytes {
            self.sync()?;
        }
        self.make_room(bytes, batch.first)?;
        let mut frame = UnsyncedFrame::new(batch.first, self.next, batch.count, batch.codec, batch.payload);
        let segment = self.segments.back_mut().expect("a place was made");
        let disk = &self.disks[segment.disk];
        let written = disk.write_at(&segment.file, frame.bytes_for(segment.key), segment.offset);
        segment.offset += bytes;
        self.keep_unsynced(frame);
        if let Err(error) = written {
            self.note_error(&error);
            self.abandon_segment();
            if let Err(error) = self.rescue() {
                let frame = self.unsynced.pop_back().expect("the frame was put there above");
                self.unsynced_bytes -= frame.len();
                return Err(error);
            }
        }
        self.next = batch.first + u64::from(batch.count);
        Ok(self.next)
    }

    /// Maximum number of bytes of a payload that fits into a frame of this spool.
    pub fn max_payload_bytes(&self) -> usize {
        (self.options.max_frame_bytes() - HEAD_BYTES as u64).min(MAX_PAYLOAD_BYTES as u64) as usize
    }

    fn check(&self, batch: &Batch<'_>) -> Result<u64, SpoolError> {
        let max_bytes = self.max_payload_bytes() as u64;
        let bytes = batch.payload.len() as u64;
        if bytes == 0 || bytes > max_bytes || batch.count == 0 {
            return Err(SpoolError::Size { bytes, max_bytes });
        }
        if batch.first < self.next || batch.first.checked_add(u64::from(batch.count)).is_none() {
            return Err(SpoolError::Order { first: batch.first, next: self.next });
        }
        Ok(frame_bytes(batch.payload.len()))
    }

    /// Makes sure that the last segment has room for `bytes` more.
    fn make_room(&mut self, bytes: u64, first: u64) -> Result<(), SpoolError> {
        if !self.is_writing && !self.unsynced.is_empty() {
            self.rescue()?;
        }
        if self.has_room(bytes) {
            return Ok(());
        }
        if self.is_writing {
            if !Defect::SealWithoutSync.is_planted() {
                self.sync()?;
            } else {
                self.note_durable();
            }
            // The sync may have continued in a new segment, which has more room.
            if self.has_room(bytes) {
                return Ok(());
            }
            self.is_writing = false;
        }
        self.begin_segment(first)
    }

    fn has_room(&self, bytes: u64) -> bool {
        self.is_writing && self.segments.back().is_some_and(|segment| segment.offset + bytes <= segment.bytes)
    }

    fn keep_unsynced(&mut self, frame: UnsyncedFrame) {
        self.unsynced_bytes += frame.len();
        self.unsynced.push_back(frame);
    }

    /// Makes every appended batch durable and returns the number after the last record.
    ///
    /// A file whose sync fails is never written again: its frames that are not durable go into a new segment.
    ///
    /// # Errors
    ///
    /// No folder takes the frames. They stay in memory, and the next call tries another file.
    pub fn sync(&mut self) -> Result<u64, SpoolError> {
        if self.unsynced.is_empty() {
            return Ok(self.next);
        }
        if !self.is_writing {
            self.rescue()?;
            return Ok(self.next);
        }
        match self.sync_segment() {
            Ok(()) => self.note_durable(),
            Err(error) => {
                self.note_failed_sync(&error);
                self.abandon_segment();
                self.rescue()?;
            }
        }
        Ok(self.next)
    }

    /// Syncs the segment being written.
    pub(super) fn sync_segment(&self) -> Result<(), DiskError> {
        let segment = self.segments.back().expect("a segment is written");
        let disk = &self.disks[segment.disk];
        let synced = disk.sync_data(&segment.file);
        if synced.is_err() && Defect::RetryFailedSync.is_planted() {
            return disk.sync_data(&segment.file);
        }
        synced
    }

    /// Records that all frames in memory are now durable in the last segment.
    fn note_durable(&mut self) {
        let segment = self.segments.back_mut().expect("a segment is written");
        let mut offset = segment.offset - self.unsynced_bytes;
        for frame in self.unsynced.drain(..) {
            FrameRun::of(&frame.head, offset).add_to(&mut segment.runs);
            offset += frame.len();
        }
        self.unsynced_bytes = 0;
    }

    /// Stops writing to the last segment after an error. Its frames that are not durable are also in memory.
    fn abandon_segment(&mut self) {
        self.is_writing = false;
        self.takes_over_from = self.takes_over_from.or(self.unsynced.front().map(|frame| frame.head.first));
        if let Some(segment) = self.segments.back_mut() {
            segment.keeps_unsynced = true;
            segment.is_failed = true;
            segment.has_leftovers = true;
            // With several folders, the next segment goes to another one first.
            self.preferred = (segment.disk + 1) % self.disks.len();
        }
    }

    /// Writes all frames that are not durable into new segments and syncs each.
    ///
    /// # Errors
    ///
    /// The error of the last try. Frames that became durable before the error are no longer in memory.
    pub(super) fn rescue(&mut self) -> Result<(), SpoolError> {
        if Defect::RescueForgets.is_planted() {
            self.unsynced.clear();
            self.unsynced_bytes = 0;
        }
        let mut tries = 2 * self.disks.len();
        while let Some(first) = self.unsynced.front().map(|frame| frame.head.first) {
            // The segment that an earlier round filled has no room for the remaining frames.
            self.is_writing = false;
            self.begin_reserved(self.takes_over_from.unwrap_or(first), first)?;
            if Defect::FreeTailBeforeCopy.is_planted() {
                self.free_copied_segments();
            }
            match self.fill_segment() {
                // The remaining frames keep the same first number, because earlier files also hold frames from that
                // number on.
                Ok(count) => self.note_durable_front(count),
                Err(error) => {
                    self.note_failed_sync(&error);
                    self.discard_segment();
                    tries -= 1;
                    if tries == 0 {
                        return Err(error.into());
                    }
                }
            }
        }
        self.free_copied_segments();
        Ok(())
    }

    /// Writes frames from the front of the queue into the empty last segment until it is full, and syncs the segment.
    fn fill_segment(&mut self) -> Result<usize, DiskError> {
        let segment = self.segments.back_mut().expect("a segment was begun");
        let disk = &self.disks[segment.disk];
        let mut count = 0;
        for frame in &mut self.unsynced {
            if segment.offset + frame.len() > segment.bytes {
                break;
            }
            disk.write_at(&segment.file, frame.bytes_for(segment.key), segment.offset)?;
            segment.offset += frame.len();
            count += 1;
        }
        self.sync_segment()?;
        Ok(count)
    }

    /// Records that the first `count` frames in memory are durable in the last segment, which holds no other frames.
    fn note_durable_front(&mut self, count: usize) {
        let rest = self.unsynced.split_off(count);
        let rest_bytes = rest.iter().map(UnsyncedFrame::len).sum();
        self.unsynced_bytes -= rest_bytes;
        self.note_durable();
        self.unsynced = rest;
        self.unsynced_bytes = rest_bytes;
    }

    /// Frees the segments that were kept because of frames in memory.
    pub(super) fn free_copied_segments(&mut self) {
        self.takes_over_from = None;
        for segment in &mut self.segments {
            segment.keeps_unsynced = false;
        }
        self.free_acked_segments();
    }

    pub(super) fn note_error(&mut self, error: &DiskError) {
        self.disk_errors += 1;
        self.last_error = Some(error.to_string());
    }

    fn note_failed_sync(&mut self, error: &DiskError) {
        self.failed_syncs += 1;
        self.note_error(error);
    }

    /// Makes all frames durable if the disk allows, stores a checkpoint and closes the files.
    ///
    /// # Errors
    ///
    /// The error of `sync` or `checkpoint`. The next opening finds all frames that were written.
    pub fn close(mut self) -> Result<(), SpoolError> {
        let synced = self.sync();
        self.checkpoint()?;
        synced.map(|_| ())
    }
}
