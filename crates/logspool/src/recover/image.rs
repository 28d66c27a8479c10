//! A copy of a dead process's segment. All data that is read from it is bounds-checked.
//!
//! Only the allocated pages of the fixed part are copied (usually some 50 KB of 2.6 MB). Rings are copied only if they
//! hold undelivered records.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

use logspool_lanes::segment::MAX_RING_TOTAL;
use logspool_lanes::segment::layout::{
    BatchNumber, DEFINITION_BYTES, DEFINITIONS, Header, INDEXES_OFFSET, LANES_OFFSET, LaneHead, MAGIC, MAJOR,
    MAX_LANES, MAX_POINTS, POINTS_OFFSET, RINGS, SINKS_OFFSET, SinkHead, Table, lane_offset, sink_offset,
};
use logspool_record::definition::SinkDefinition;
use logspool_record::{Value, Values};
use logspool_sys::clock::{CalibrationPoint, point_index};

use super::damage::Damage;
use super::lane::{Lane, RingCopier};
use crate::sink::Stream;

/// Why no part of a segment can be read.
#[derive(Debug)]
pub enum UnreadableSegment {
    /// The process died before the segment was finished, so it never held a record.
    Unfinished,
    /// The segment has another major version of the layout.
    OtherVersion(u32),
    /// There is another reason, described by this text.
    Broken(String),
}

/// Checkpoint of a sink, stored by the last process that wrote or recovered its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// Number of the last batch that is completely written.
    pub batch: u64,
    /// Number of bytes of the chunk of batch `writing` that are written.
    pub offset: u64,
    /// Number of the batch to which `offset` refers.
    pub writing: u64,
    /// Number of the last batch whose chunk is in an overflow file.
    pub overflowed: u64,
    /// Whether the sink is closed, so that it has no undelivered records.
    pub closed: bool,
    /// Numbering of the sink's records at a service, if the process stored it.
    pub numbering: Option<Numbering>,
}

/// Numbering of the records that a sink sends to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbering {
    /// Stream of the records.
    pub stream: Stream,
    /// Record number of the last record of the last batch that has arrived.
    pub number: u64,
    /// Batch that ends with a message on dropped records, see [`SinkHead::message_batch`].
    pub message_batch: u64,
}

/// Larger record numbers are treated as damage, since counting further from them could overflow.
const MAX_NUMBER: u64 = u64::MAX / 2;

/// A copy of one dead process's segment.
#[derive(Debug)]
pub struct Image {
    fixed: Vec<u8>,
    points: Vec<CalibrationPoint>,
    /// Lanes with undelivered records, sorted by index.
    pub lanes: Vec<Lane>,
    /// Bytes and records that were found to be unreadable until now.
    pub damage: Damage,
}

impl Image {
    /// Copies the segment in `file`.
    ///
    /// # Errors
    ///
    /// Returns the reason if no part of the segment can be read.
    pub fn copy(file: &File) -> Result<Self, UnreadableSegment> {
        let broken = |error: io::Error| UnreadableSegment::Broken(error.to_string());
        let mut image = Self::copy_fixed_part(file)?;
        image.read_points()?;
        let status = file.metadata().map_err(broken)?;
        // Rings are allocated when they are created. But a copied segment file may have holes in their place.
        let limit = (status.blocks() * 512).saturating_add(MAX_RING_TOTAL).min(status.len());
        image.copy_lanes(&mut RingCopier::new(file, status.len(), limit)).map_err(broken)?;
        image.damage.records += image.header(offset_of!(Header, unreadable));
        Ok(image)
    }

    /// Copies the segment in `file` without its rings and without its clock.
    ///
    /// # Errors
    ///
    /// Returns the reason if no part of the segment can be read.
    pub fn copy_fixed_part(file: &File) -> Result<Self, UnreadableSegment> {
        let broken = |error: io::Error| UnreadableSegment::Broken(error.to_string());
        let status = file.metadata().map_err(broken)?;
        let mut fixed = vec![0; RINGS.min(status.len()) as usize];
        copy_sparse(file, &mut fixed).map_err(broken)?;
        let magic = fixed.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        if magic == 0
            && fixed
                .get(LANES_OFFSET as usize..SINKS_OFFSET as usize)
                .is_none_or(|lanes| lanes.iter().all(|byte| *byte == 0))
        {
            return Err(UnreadableSegment::Unfinished);
        }
        if magic != MAGIC {
            return Err(UnreadableSegment::Broken("it does not begin as a segment does".to_owned()));
        }
        if fixed.len() < size_of::<Header>() {
            return Err(UnreadableSegment::Broken("it is cut short".to_owned()));
        }
        let image = Self { fixed, points: Vec::new(), lanes: Vec::new(), damage: Damage::default() };
        let major = image.word32(offset_of!(Header, major) as u64);
        if major != MAJOR {
            return Err(UnreadableSegment::OtherVersion(major));
        }
        if (image.fixed.len() as u64) < RINGS {
            return Err(UnreadableSegment::Broken("it is cut short".to_owned()));
        }
        Ok(image)
    }

    /// Reads the checkpoints of all sinks from the segment again.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn refresh_sinks(&mut self, file: &File) -> io::Result<()> {
        let sinks = SINKS_OFFSET as usize..INDEXES_OFFSET as usize;
        file.read_exact_at(&mut self.fixed[sinks], SINKS_OFFSET)
    }

    /// Returns the 64-bit word at an offset of the fixed part.
    pub fn word(&self, offset: u64) -> u64 {
        let at = offset as usize;
        u64::from_ne_bytes(self.fixed[at..at + 8].try_into().expect("eight bytes"))
    }

    /// Returns the 32-bit word at an offset of the fixed part.
    pub fn word32(&self, offset: u64) -> u32 {
        let at = offset as usize;
        u32::from_ne_bytes(self.fixed[at..at + 4].try_into().expect("four bytes"))
    }

    /// Returns the 64-bit word at an offset of the header.
    pub fn header(&self, offset: usize) -> u64 {
        self.word(offset as u64)
    }

    /// Creation time of the segment, in nanoseconds since the epoch.
    pub fn created_ns(&self) -> i64 {
        self.header(offset_of!(Header, created_ns)) as i64
    }

    fn read_points(&mut self) -> Result<(), UnreadableSegment> {
        let count = self.word32(offset_of!(Header, points) as u64);
        // When the list is full, its oldest slot may be half overwritten.
        let kept = if count as usize >= MAX_POINTS { MAX_POINTS as u32 - 1 } else { count };
        for index in count - kept..count {
            let at = POINTS_OFFSET + (index as usize % MAX_POINTS * size_of::<CalibrationPoint>()) as u64;
            let point = CalibrationPoint {
                ticks: self.word(at),
                wall_ns: self.word(at + 8) as i64,
                ns_per_tick: f64::from_bits(self.word(at + 16)),
            };
            if self.points.last().is_none_or(|last| last.ticks <= point.ticks) {
                self.points.push(point);
            }
        }
        if self.points.is_empty() {
            return Err(UnreadableSegment::Broken("its clock was never calibrated".to_owned()));
        }
        Ok(())
    }

    /// Wall time of the stamp `ticks`, in nanoseconds since the epoch. The collector computes the same value.
    pub fn wall_ns(&self, ticks: u64) -> i64 {
        self.points[point_index(&self.points, ticks)].wall_ns_at(ticks)
    }

    fn copy_lanes(&mut self, copier: &mut RingCopier<'_>) -> io::Result<()> {
        // Read all lanes and ignore the count in the header: a lane that was never made is zero.
        for index in 0..MAX_LANES as u32 {
            let at = lane_offset(index as usize);
            let (lane, unreadable) = Lane::copy(index, |offset| self.word(at + offset as u64), copier)?;
            self.damage.bytes = self.damage.bytes.saturating_add(unreadable);
            self.lanes.extend(lane);
        }
        Ok(())
    }

    /// Position after the last record that was published in lane `index`, which is below [`MAX_LANES`].
    pub fn published(&self, index: u32) -> u64 {
        self.word(lane_offset(index as usize) + offset_of!(LaneHead, producer.head) as u64)
    }

    /// Position in lane `index`, which is below [`MAX_LANES`]. All records before it are written or spilled for every
    /// sink.
    pub fn released(&self, index: u32) -> u64 {
        self.word(lane_offset(index as usize) + offset_of!(LaneHead, consumer.tail) as u64)
    }

    /// Checkpoint of the sink in slot `id`, which is below `MAX_SINKS`.
    pub fn checkpoint(&self, id: usize) -> Checkpoint {
        let field = |offset: usize| self.word(sink_offset(id) + offset as u64);
        Checkpoint {
            batch: field(offset_of!(SinkHead, batch)),
            offset: field(offset_of!(SinkHead, offset)),
            writing: field(offset_of!(SinkHead, writing)),
            overflowed: field(offset_of!(SinkHead, overflowed_batch)),
            closed: field(offset_of!(SinkHead, closed)) == 1,
            numbering: self.numbering(id),
        }
    }

    fn numbering(&self, id: usize) -> Option<Numbering> {
        let field = |offset: usize| self.word(sink_offset(id) + offset as u64);
        let half = |index: usize| u128::from(field(offset_of!(SinkHead, stream) + index * size_of::<u64>()));
        let stream = Stream { id: half(1) << 64 | half(0), epoch: field(offset_of!(SinkHead, epoch)) };
        let number = self.number(id).filter(|_| stream.epoch != 0)?;
        Some(Numbering { stream, number, message_batch: field(offset_of!(SinkHead, message_batch)) })
    }

    /// Numbering for an adopter, for a sink whose process stored no stream. The stream is made of the identities of the
    /// segment and the sink. The numbers start after the last record noted as arrived.
    pub fn numbering_by_adoption(&self, id: usize) -> Numbering {
        let at = offset_of!(Header, uuid);
        let uuid = u128::from_ne_bytes(self.fixed[at..at + 16].try_into().expect("sixteen bytes"));
        let stream = Stream { id: uuid ^ u128::from(self.sink_id(id)), epoch: 1 };
        Numbering { stream, number: self.number(id).unwrap_or(0), message_batch: 0 }
    }

    /// Record number of the last record that is noted as arrived.
    fn number(&self, id: usize) -> Option<u64> {
        let field = |offset: usize| self.word(sink_offset(id) + offset as u64);
        let batch = field(offset_of!(SinkHead, batch));
        let pair = (0..2).map(|index| offset_of!(SinkHead, numbered) + index * size_of::<BatchNumber>());
        pair.filter(|pair| field(pair + offset_of!(BatchNumber, batch)) == batch)
            .map(|pair| field(pair + offset_of!(BatchNumber, number)))
            .next()
            .filter(|number| *number <= MAX_NUMBER)
    }

    /// Returns the items of a definition's tuple. `None` if the id is unknown, or if its offset is outside the
    /// definitions.
    pub fn definition(&self, table: Table, id: u32) -> Option<Values<'_>> {
        let word = self.index_word(table, id);
        if word >> 32 != table.generation(id) {
            return None;
        }
        self.definition_at(word & u64::from(u32::MAX))
    }

    fn index_word(&self, table: Table, id: u32) -> u64 {
        self.word(table.index_offset() + 8 * table.slot(id) as u64)
    }

    fn definition_at(&self, offset: u64) -> Option<Values<'_>> {
        let end = DEFINITIONS + DEFINITION_BYTES;
        if offset < DEFINITIONS || offset > end - 8 {
            return None;
        }
        let bytes = u64::from(self.word32(offset));
        if bytes > end - 8 - offset {
            return None;
        }
        let start = offset as usize + 8;
        match Values::new(&self.fixed[start..start + bytes as usize]).next_value()? {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the slot of the sink that writes the records of `sink`, if it still has one.
    pub fn place_of(&self, sink: u32) -> SinkSlot {
        match self.definition(Table::Sinks, sink).and_then(SinkDefinition::decode_shared) {
            Some(shared) => self.own_place(shared),
            None => self.own_place(sink),
        }
    }

    fn own_place(&self, sink: u32) -> SinkSlot {
        let now = self.index_word(Table::Sinks, sink) >> 32;
        match Table::Sinks.generation(sink) {
            generation if generation == now => SinkSlot::Own(Table::Sinks.slot(sink)),
            generation if generation < now => SinkSlot::Another,
            _ => SinkSlot::Unknown,
        }
    }

    /// Id of the sink that now has slot `place`, which is below `MAX_SINKS`.
    pub fn sink_id(&self, place: usize) -> u32 {
        let generation = self.word(Table::Sinks.index_offset() + 8 * place as u64) >> 32;
        (generation as u32).wrapping_mul(Table::Sinks.capacity() as u32).wrapping_add(place as u32)
    }

    /// Returns the path (if any) and the name of the sink in slot `place`, which is below `MAX_SINKS`. `None` if the
    /// slot was never used, if another sink writes the records, or if the definition cannot be read.
    pub fn sink(&self, place: usize) -> Option<(Option<String>, String)> {
        let mut items = self.definition_at(u64::from(self.word32(Table::Sinks.index_offset() + 8 * place as u64)))?;
        let path = SinkDefinition::decode_path(items)?;
        items.next()?;
        match items.next()? {
            Value::Str(name) => Some((path, name.to_owned())),
            _ => None,
        }
    }
}

/// Copies the beginning of a file into a zeroed buffer, skipping holes.
fn copy_sparse(file: &File, copy: &mut [u8]) -> io::Result<()> {
    let seek = |from: usize, whence| {
        // SAFETY: a plain system call on an open descriptor; no code depends on its file position.
        match unsafe { libc::lseek(file.as_raw_fd(), from as i64, whence) } {
            found @ 0.. => Ok(found as usize),
            _ => Err(io::Error::last_os_error().raw_os_error()),
        }
    };
    let bytes = copy.len();
    let mut end = 0;
    while end < bytes {
        let start = match seek(end, libc::SEEK_DATA) {
            Ok(start) => start.min(bytes),
            // There is only a hole up to the end of the file.
            Err(Some(libc::ENXIO)) => return Ok(()),
            // The file system does not support SEEK_DATA.
            Err(_) => end,
        };
        end = seek(start, libc::SEEK_HOLE).unwrap_or(bytes).min(bytes);
        file.read_exact_at(&mut copy[start..end], start as u64)?;
    }
    Ok(())
}

/// Where the records of a sink id belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkSlot {
    /// The sink still has this slot.
    Own(usize),
    /// The records have no destination: their sink was closed with nothing left to write, and another sink has its
    /// slot.
    Another,
    /// No sink ever had this id.
    Unknown,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::Ordering;

    use logspool_lanes::segment::Segment;
    use logspool_sys::folder::Folder;

    use super::*;

    #[test]
    fn a_kill_between_any_two_stores_of_an_arrival_leaves_a_batch_with_its_own_number() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let segment = Segment::create_in(Folder::open(folder.path()).unwrap(), None).unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = entries.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "seg")).unwrap();
        let now = || {
            let checkpoint = Image::copy(&File::open(&path).unwrap()).unwrap().checkpoint(3);
            (checkpoint.batch, checkpoint.numbering)
        };
        let stream = Stream { id: 5 << 64 | 6, epoch: 7 };
        let known = |number| Some(Numbering { stream, number, message_batch: 0 });
        let head = segment.sink(3);
        assert_eq!((0, None), now(), "an older core tells nothing");
        head.begin_stream(stream.id, stream.epoch);
        assert_eq!((0, known(0)), now());

        let mut before = (0, known(0));
        for (batch, number) in [(4, 10), (5, 12), (9, 13), (9, 13), (10, 20)] {
            let after = (batch, known(number));
            for (step, (word, value)) in head.steps_of_arrival(batch, number).into_iter().enumerate() {
                word.store(value, Ordering::Release);
                assert_eq!(if step < 3 { before } else { after }, now(), "after step {step} to {batch}");
            }
            before = after;
        }
        head.reset_for_next_sink(11);
        assert_eq!((11, None), now());
        head.begin_stream(stream.id, stream.epoch);
        assert_eq!((11, known(0)), now());
        segment.remove_files();
    }

    #[test]
    fn a_copy_without_the_holes_is_the_same() {
        for folder in ["/dev/shm", "."] {
            let mut file = tempfile::tempfile_in(folder).unwrap();
            file.set_len(200_000).unwrap();
            for (offset, length) in [(5_000, 3_000), (70_000, 1), (199_000, 1_000)] {
                file.write_all_at(&vec![7; length], offset).unwrap();
            }
            let mut whole = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut whole).unwrap();
            for bytes in [0, 6_000, 100_000, 200_000] {
                let mut copy = vec![0; bytes];
                copy_sparse(&file, &mut copy).unwrap();
                assert!(copy == whole[..bytes], "{bytes} bytes in {folder}");
            }
        }
    }
}
