//! Where segments come from and where they go: new files, files used again, the reserve, and the bound of bytes.
//!
//! The order that makes a segment safe to use: zeros and header, fdatasync, the name, fsync of the folder, and only
//! then the first frame. The order that makes it safe to give back: a checkpoint that passes it is durable, and only
//! then the name goes. One file is kept in reserve, so that frames whose sync failed find a place on a full disk.

use super::checkpoint::State;
use super::defect::Defect;
use super::disk::{Disk, DiskError};
use super::error::SpoolError;
use super::frame::Key;
use super::id::Id;
use super::options::WhenFull;
use super::segment::{HEADER_BYTES, Header, Segment, segment_name, spare_name, unfinished_name};
use super::spool::{Spare, Spool};

/// Bytes of zeros written in one piece.
///
/// Chosen: beyond it a disk gets no faster; half does not show either.
const ZERO_BYTES: usize = 1024 * 1024;

/// Files that wait to be used again: the reserve, and one for the next segment.
pub(super) const MAX_SPARES: usize = 2;

/// Where a segment stands among the numbers; see [`Header`].
#[derive(Debug, Clone, Copy)]
struct Start {
    first: u64,
    begins: u64,
}

impl<D: Disk> Spool<D> {
    /// Makes the segment that takes frames from number `first` on.
    pub(super) fn begin_segment(&mut self, first: u64) -> Result<(), SpoolError> {
        // Nothing waits in memory here: no file is kept for it.
        self.takes_over_from = None;
        for segment in &mut self.segments {
            segment.keeps_unsynced = false;
        }
        let limit = self.options.max_bytes - self.options.segment_bytes;
        let has_room = |spool: &Self| spool.used_bytes() + spool.options.segment_bytes <= limit;
        if !has_room(self) {
            // What is acked makes room before anything is refused or given up.
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
        let start = Start { first, begins: first };
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

    /// Makes a segment that takes frames whose sync failed; the reserve is for it. They are all those from `first` on,
    /// and those of them that no other such segment has begin with `begins`.
    pub(super) fn begin_reserved(&mut self, first: u64, begins: u64) -> Result<(), SpoolError> {
        self.make_epoch_durable()?;
        Ok(self.make_segment(Start { first, begins }, 0)?)
    }

    /// No segment is made in an epoch that another life could have too: the order of segments would not be certain.
    fn make_epoch_durable(&mut self) -> Result<(), SpoolError> {
        if self.saved.is_none() { self.save() } else { Ok(()) }
    }

    /// Bytes of all segments in use.
    fn used_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes of all segment files.
    pub fn bytes(&self) -> u64 {
        self.used_bytes() + self.spares.len() as u64 * self.options.segment_bytes
    }

    /// Tries one folder after the other, in each a spare file first; `keep` of the spares are left alone.
    fn make_segment(&mut self, start: Start, keep: usize) -> Result<(), DiskError> {
        let mut failed = None;
        for offset in 0..self.disks.len() {
            let disk = (self.preferred + offset) % self.disks.len();
            let spare = self.spares.iter().position(|spare| spare.disk == disk);
            let spare = spare.filter(|_| self.spares.len() > keep).map(|index| self.spares.swap_remove(index));
            let tried = match spare {
                Some(spare) => self.use_again(spare, start).or_else(|error| {
                    self.note(&error);
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
                    self.note(&error);
                    failed = failed.or(Some(error));
                }
            }
        }
        Err(failed.expect("a spool has a folder"))
    }

    /// Removes spare files of other folders where a new file would go beyond the bound with them.
    fn remove_spares(&mut self, keep: usize) {
        while self.spares.len() > keep && self.bytes() + self.options.segment_bytes > self.options.max_bytes {
            self.remove_spare();
        }
    }

    /// Removes one spare file; `false`: there is none.
    pub(super) fn remove_spare(&mut self) -> bool {
        let Some(spare) = self.spares.pop() else { return false };
        if let Err(error) = self.disks[spare.disk].remove(&spare_name(spare.number)) {
            self.note(&error);
        }
        true
    }

    fn use_new(&mut self, disk: usize, start: Start) -> Result<(), DiskError> {
        let number = self.next_number();
        let file = self.fill_with_zeros(disk, number)?;
        self.put_to_use(disk, number, file, &unfinished_name(number), start)
    }

    fn use_again(&mut self, spare: Spare, start: Start) -> Result<(), DiskError> {
        let number = self.next_number();
        let file = self.disks[spare.disk].open(&spare_name(spare.number))?;
        self.put_to_use(spare.disk, number, file, &spare_name(spare.number), start)
    }

    /// Gives a file of zeros or of old frames its header and its name. A file that fails here is never used.
    fn put_to_use(
        &mut self,
        disk: usize,
        number: u64,
        file: D::File,
        name: &str,
        start: Start,
    ) -> Result<(), DiskError> {
        let folder = &self.disks[disk];
        let Start { first, begins } = start;
        let id = Id(folder.random_id());
        let bytes = self.options.segment_bytes;
        let State { stream, epoch, .. } = self.state;
        let header = Header { stream, epoch, number, first, begins, id, bytes };
        let made = folder
            .write_at(&file, &header.encode(), 0)
            .and_then(|()| folder.sync_data(&file))
            .and_then(|()| folder.rename(name, &segment_name(number)))
            .and_then(|()| if Defect::NoFolderSync.is_planted() { Ok(()) } else { folder.sync_folder() });
        if made.is_err() {
            // Either name may stand after a crash; a segment without frames says nothing that is not so.
            let _ = folder.remove(name);
            let _ = folder.remove(&segment_name(number));
        }
        made?;
        self.segments.push_back(Segment {
            number,
            disk,
            file,
            key: Key::new(&id),
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

    /// Sees to it that a file waits for frames whose sync may fail. Without it nothing is lost yet: the bookkeeping
    /// does with what room there is then.
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
            Ok(()) => self.spares.push(Spare { disk, number }),
            Err(error) => {
                let _ = self.disks[disk].remove(&unfinished_name(number));
                self.note(&error);
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        self.next_segment += 1;
        self.next_segment
    }

    /// Gives up the oldest segment. None is written at this moment.
    fn drop_oldest(&mut self) -> Result<(), SpoolError> {
        let full = SpoolError::Full { bytes: self.bytes(), max_bytes: self.options.max_bytes };
        let floor = self.floor();
        let Some(oldest) = self.segments.front() else { return Err(full) };
        let records = |run: &super::segment::Run| run.end.saturating_sub(run.first.max(floor));
        let before = self.state.clone();
        self.state.dropped_records += oldest.runs.iter().map(records).sum::<u64>();
        self.state.dropped_end = self.state.dropped_end.max(oldest.end());
        if !Defect::DropWithoutCheckpoint.is_planted()
            && let Err(error) = self.save()
        {
            // Not durable: nothing is given up.
            self.state.dropped_records = before.dropped_records;
            self.state.dropped_end = before.dropped_end;
            return Err(error);
        }
        if self.give_back(0) { Ok(()) } else { Err(full) }
    }

    /// Gives back every segment that nobody needs any more, by a checkpoint that is durable.
    pub(super) fn give_back_segments(&mut self) {
        let floor = if Defect::RecycleBeforeCheckpoint.is_planted() { self.floor() } else { self.saved_floor };
        let mut index = 0;
        while index < self.segments.len() {
            let segment = &self.segments[index];
            let is_written = self.is_writing && index + 1 == self.segments.len();
            let is_needed = segment.keeps_unsynced || is_written || segment.end() > floor;
            let is_gone = !is_needed && self.give_back(index);
            if !is_gone {
                if self.segments[index].has_leftovers {
                    break;
                }
                index += 1;
            }
        }
    }

    /// Removes the last segment, which took no frame that counts.
    pub(super) fn discard_segment(&mut self) {
        self.is_writing = false;
        if let Some(segment) = self.segments.back_mut() {
            segment.is_failed = true;
            segment.has_leftovers = true;
            self.preferred = (segment.disk + 1) % self.disks.len();
            self.give_back(self.segments.len() - 1);
        }
    }

    /// Gives back one segment; `false`: the disk does not let it go, and it is tried again later.
    fn give_back(&mut self, index: usize) -> bool {
        let segment = &self.segments[index];
        let folder = &self.disks[segment.disk];
        let (disk, number, name) = (segment.disk, segment.number, segment_name(segment.number));
        let is_usable = !segment.is_failed && segment.bytes == self.options.segment_bytes;
        if is_usable && self.spares.len() < MAX_SPARES && folder.rename(&name, &spare_name(number)).is_ok() {
            self.spares.push(Spare { disk, number });
        } else if let Err(error) = folder.remove(&name) {
            self.note(&error);
            return false;
        }
        self.segments.remove(index);
        true
    }
}
