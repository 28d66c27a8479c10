//! How segment files are made, used again and freed, within the bound on bytes.
//!
//! A segment is safe to use after these steps, in this order: zeros and header, fdatasync, rename, fsync of the folder.
//! Only then is the first frame written. A segment loses its name only after a checkpoint that passes it is durable.
//! One spare file is kept in reserve, so that frames whose sync failed have a place on a full disk.

use super::checkpoint::CheckpointState;
use super::defect::Defect;
use super::disk::{Disk, DiskError};
use super::error::SpoolError;
use super::frame::FrameKey;
use super::id::Id;
use super::options::WhenFull;
use super::spool::{SpareFile, Spool};
use super::spool_segment::{HEADER_BYTES, Header, Segment, segment_name, spare_name, unfinished_name};

/// Number of zero bytes in one write.
///
/// Chosen: a larger write makes no disk faster, and halving the size makes no visible difference.
const ZERO_BYTES: usize = 1024 * 1024;

/// Maximum number of spare files kept: the reserve, and one for the next segment.
pub(super) const MAX_SPARES: usize = 2;

/// The record numbers that a segment begins with; see [`Header`].
#[derive(Debug, Clone, Copy)]
struct SegmentStart {
    first: u64,
    begins: u64,
}

impl<D: Disk> Spool<D> {
    /// Makes a segment for frames from number `first`.
    pub(super) fn begin_segment(&mut self, first: u64) -> Result<(), SpoolError> {
        // No frame waits in memory at this point, so no segment has to be kept for one.
        self.takes_over_from = None;
        for segment in &mut self.segments {
            segment.keeps_unsynced = false;
        }
        let limit = self.options.max_bytes - self.options.segment_bytes;
        let has_room = |spool: &Self| spool.used_bytes() + spool.options.segment_bytes <= limit;
        if !has_room(self) {
            // A checkpoint frees the acked segments before a batch is refused or a segment dropped.
            let _ = self.checkpoint();
        }
        while !has_room(self) {
            match self.options.when_full {
                WhenFull::RefuseNew => {
                    return Err(SpoolError::Full { bytes: self.bytes(), max_bytes: self.options.max_bytes });
                }
                WhenFull::DropOldest => self.drop_oldest()?,
            }
        }
        self.make_epoch_durable()?;
        let start = SegmentStart { first, begins: first };
        let made = match self.make_segment(start, 1) {
            Err(error) if error.is_full() && self.options.when_full == WhenFull::DropOldest => {
                self.drop_oldest()?;
                self.make_segment(start, 1)
            }
            made => made,
        };
        made?;
        self.prepare_reserve();
        Ok(())
    }

    /// Makes a segment for frames whose sync failed. It may use the reserve. `first` is the first number of all frames
    /// to take over. `begins` is the first number that is written into this segment.
    pub(super) fn begin_reserved(&mut self, first: u64, begins: u64) -> Result<(), SpoolError> {
        self.make_epoch_durable()?;
        Ok(self.make_segment(SegmentStart { first, begins }, 0)?)
    }

    /// Makes the epoch durable before its first segment is made. If two lives had the same epoch, the order of segments
    /// would be unclear.
    fn make_epoch_durable(&mut self) -> Result<(), SpoolError> {
        if self.saved.is_none() { self.save() } else { Ok(()) }
    }

    /// Number of bytes of all segments in use, without the spare files.
    fn used_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Number of bytes of all segment files, including spare files.
    pub fn bytes(&self) -> u64 {
        self.used_bytes() + self.spares.len() as u64 * self.options.segment_bytes
    }

    /// Makes a segment. Tries each folder in turn, and a spare file before a new one. Leaves `keep` spare files unused.
    fn make_segment(&mut self, start: SegmentStart, keep: usize) -> Result<(), DiskError> {
        let mut failed = None;
        for offset in 0..self.disks.len() {
            let disk = (self.preferred + offset) % self.disks.len();
            let spare = self.spares.iter().position(|spare| spare.disk == disk);
            let spare = spare.filter(|_| self.spares.len() > keep).map(|index| self.spares.swap_remove(index));
            let tried = match spare {
                Some(spare) => self.use_again(spare, start).or_else(|error| {
                    self.note_error(&error);
                    self.use_new(disk, start)
                }),
                None => {
                    self.remove_spares(keep);
                    self.use_new(disk, start)
                }
            };
            match tried {
                Ok(()) => {
                    self.preferred = disk;
                    self.is_writing = true;
                    return Ok(());
                }
                Err(error) => {
                    self.note_error(&error);
                    failed = failed.or(Some(error));
                }
            }
        }
        Err(failed.expect("a spool has a folder"))
    }

    /// Removes spare files while a new file would exceed `max_bytes`, but keeps `keep` of them.
    fn remove_spares(&mut self, keep: usize) {
        while self.spares.len() > keep && self.bytes() + self.options.segment_bytes > self.options.max_bytes {
            self.remove_spare();
        }
    }

    /// Removes one spare file. `false`: there is none.
    pub(super) fn remove_spare(&mut self) -> bool {
        let Some(spare) = self.spares.pop() else { return false };
        if let Err(error) = self.disks[spare.disk].remove(&spare_name(spare.number)) {
            self.note_error(&error);
        }
        true
    }

    fn use_new(&mut self, disk: usize, start: SegmentStart) -> Result<(), DiskError> {
        let number = self.next_number();
        let file = self.fill_with_zeros(disk, number)?;
        self.write_header_and_rename(disk, number, file, &unfinished_name(number), start)
    }

    fn use_again(&mut self, spare: SpareFile, start: SegmentStart) -> Result<(), DiskError> {
        let number = self.next_number();
        let file = self.disks[spare.disk].open(&spare_name(spare.number))?;
        self.write_header_and_rename(spare.disk, number, file, &spare_name(spare.number), start)
    }

    /// Writes the header into a file of zeros or old frames, and renames the file. A file that fails here is never
    /// used.
    fn write_header_and_rename(
        &mut self,
        disk: usize,
        number: u64,
        file: D::File,
        name: &str,
        start: SegmentStart,
    ) -> Result<(), DiskError> {
        let folder = &self.disks[disk];
        let SegmentStart { first, begins } = start;
        let id = Id(folder.random_id());
        let bytes = self.options.segment_bytes;
        let CheckpointState { stream, epoch, .. } = self.state;
        let header = Header { stream, epoch, number, first, begins, id, bytes };
        let made = folder
            .write_at(&file, &header.encode(), 0)
            .and_then(|()| folder.sync_data(&file))
            .and_then(|()| folder.rename(name, &segment_name(number)))
            .and_then(|()| if Defect::NoFolderSync.is_planted() { Ok(()) } else { folder.sync_folder() });
        if made.is_err() {
            // After a crash the file may have either name. A segment without frames does no harm, because its header is
            // correct.
            let _ = folder.remove(name);
            let _ = folder.remove(&segment_name(number));
        }
        made?;
        self.segments.push_back(Segment {
            number,
            disk,
            file,
            key: FrameKey::new(&id),
            bytes,
            runs: Vec::new(),
            offset: HEADER_BYTES,
            first,
            keeps_unsynced: false,
            is_failed: false,
            has_leftovers: false,
        });
        Ok(())
    }

    fn fill_with_zeros(&self, disk: usize, number: u64) -> Result<D::File, DiskError> {
        let folder = &self.disks[disk];
        let name = unfinished_name(number);
        let file = folder.create(&name)?;
        let bytes = self.options.segment_bytes;
        let zeros = vec![0; ZERO_BYTES.min(bytes as usize)];
        let mut offset = 0;
        while offset < bytes {
            let piece = (bytes - offset).min(zeros.len() as u64);
            if let Err(error) = folder.write_at(&file, &zeros[..piece as usize], offset) {
                let _ = folder.remove(&name);
                return Err(error);
            }
            offset += piece;
        }
        Ok(file)
    }

    /// Keeps a spare file ready for frames whose sync may fail. If the file cannot be made, no record is lost: a later
    /// rescue uses the room that is left then.
    fn prepare_reserve(&mut self) {
        if !self.spares.is_empty() {
            return;
        }
        let (disk, number) = (self.preferred, self.next_number());
        let made = self.fill_with_zeros(disk, number).and_then(|file| {
            self.disks[disk].sync_data(&file)?;
            self.disks[disk].rename(&unfinished_name(number), &spare_name(number))
        });
        match made {
            Ok(()) => self.spares.push(SpareFile { disk, number }),
            Err(error) => {
                let _ = self.disks[disk].remove(&unfinished_name(number));
                self.note_error(&error);
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        self.next_segment += 1;
        self.next_segment
    }

    /// Drops the oldest segment. Called only while no segment is being written.
    fn drop_oldest(&mut self) -> Result<(), SpoolError> {
        let full = SpoolError::Full { bytes: self.bytes(), max_bytes: self.options.max_bytes };
        let floor = self.floor();
        let Some(oldest) = self.segments.front() else { return Err(full) };
        let records = |run: &super::spool_segment::FrameRun| run.end.saturating_sub(run.first.max(floor));
        let before = self.state.clone();
        self.state.dropped_records += oldest.runs.iter().map(records).sum::<u64>();
        self.state.dropped_end = self.state.dropped_end.max(oldest.end());
        if !Defect::DropWithoutCheckpoint.is_planted()
            && let Err(error) = self.save()
        {
            // The new count is not durable, so the segment is not dropped.
            self.state.dropped_records = before.dropped_records;
            self.state.dropped_end = before.dropped_end;
            return Err(error);
        }
        if self.free_segment(0) { Ok(()) } else { Err(full) }
    }

    /// Frees every segment that a durable checkpoint has passed.
    pub(super) fn free_acked_segments(&mut self) {
        let floor = if Defect::RecycleBeforeCheckpoint.is_planted() { self.floor() } else { self.saved_floor };
        let mut index = 0;
        while index < self.segments.len() {
            let segment = &self.segments[index];
            let is_written = self.is_writing && index + 1 == self.segments.len();
            let is_needed = segment.keeps_unsynced || is_written || segment.end() > floor;
            let is_gone = !is_needed && self.free_segment(index);
            if !is_gone {
                if self.segments[index].has_leftovers {
                    break;
                }
                index += 1;
            }
        }
    }

    /// Removes the last segment, whose frames do not count.
    pub(super) fn discard_segment(&mut self) {
        self.is_writing = false;
        if let Some(segment) = self.segments.back_mut() {
            segment.is_failed = true;
            segment.has_leftovers = true;
            self.preferred = (segment.disk + 1) % self.disks.len();
            self.free_segment(self.segments.len() - 1);
        }
    }

    /// Frees one segment: makes it a spare file or removes it. `false`: the disk refuses, and a later call tries again.
    fn free_segment(&mut self, index: usize) -> bool {
        let segment = &self.segments[index];
        let folder = &self.disks[segment.disk];
        let (disk, number, name) = (segment.disk, segment.number, segment_name(segment.number));
        let is_usable = !segment.is_failed && segment.bytes == self.options.segment_bytes;
        if is_usable && self.spares.len() < MAX_SPARES && folder.rename(&name, &spare_name(number)).is_ok() {
            self.spares.push(SpareFile { disk, number });
        } else if let Err(error) = folder.remove(&name) {
            self.note_error(&error);
            return false;
        }
        self.segments.remove(index);
        true
    }
}
