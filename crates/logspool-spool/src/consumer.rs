//! The reading side of a spool: each consumer has a position (first number not acked) and a cursor (first not read).

use super::checkpoint::MAX_CONSUMERS;
use super::defect::Defect;
use super::disk::{Disk, DiskError, Operation};
use super::error::SpoolError;
use super::frame::{FrameHead, FrameKey};
use super::item::{Consumer, Frame, GapReason, Item};
use super::spool::Spool;
use super::spool_segment::{FrameRun, Segment};

/// Number of times that the disk may fail to read a frame before the frame's records count as lost.
///
/// Chosen: a disk controller that has not recovered by the third read has a bad sector.
const READ_TRIES: u32 = 3;

/// Where a record is stored.
enum FrameSource {
    /// In memory, at this index in the list of unsynced frames.
    Memory(usize),
    /// On disk, in this run of the segment with this index.
    Disk(usize, FrameRun),
}

impl<D: Disk> Spool<D> {
    /// Adds a consumer, or finds the one with this id. Returns the first number that the consumer has not acked. A new
    /// consumer begins with the oldest record in the spool. Segments are kept until every consumer has acked them.
    ///
    /// # Errors
    ///
    /// The checkpoint has no room for another consumer.
    pub fn add_consumer(&mut self, id: u64) -> Result<u64, SpoolError> {
        if let Some(consumer) = self.consumers.get(&id) {
            return Ok(consumer.position);
        }
        if self.consumers.len() >= MAX_CONSUMERS {
            return Err(SpoolError::Consumers);
        }
        let position = self.oldest();
        self.consumers.insert(id, Consumer::at(position));
        // The new consumer needs records that the last checkpoint had passed.
        self.saved_floor = self.saved_floor.min(position);
        Ok(position)
    }

    /// Each consumer's id with the first number that it has not acked.
    pub fn consumers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.consumers.iter().map(|(id, consumer)| (*id, consumer.position))
    }

    /// Number of the oldest record in the spool.
    fn oldest(&self) -> u64 {
        let runs = self.segments.iter().flat_map(|segment| &segment.runs).map(|run| run.first);
        let held = self.unsynced.front().map(|frame| frame.head.first);
        runs.chain(held).min().unwrap_or(self.next).max(self.state.dropped_end)
    }

    /// Every record below this number is acked by all consumers or dropped.
    pub(super) fn floor(&self) -> u64 {
        let acked = self.consumers.values().map(|consumer| consumer.position).min();
        acked.unwrap_or(0).max(self.state.dropped_end)
    }

    fn consumer(&mut self, id: u64) -> Result<&mut Consumer, SpoolError> {
        self.consumers.get_mut(&id).ok_or(SpoolError::NoConsumer(id))
    }

    /// Acks every number below `end` for a consumer. `end` may be above the spool's next number: a service may remember
    /// numbers whose records the spool lost in a crash. Those numbers are not used again. [`Spool::checkpoint`] makes
    /// the ack durable.
    ///
    /// # Errors
    ///
    /// No consumer has this id.
    pub fn ack(&mut self, id: u64, end: u64) -> Result<(), SpoolError> {
        let consumer = self.consumer(id)?;
        consumer.position = consumer.position.max(end);
        if consumer.cursor < consumer.position {
            consumer.cursor = consumer.position;
            consumer.hint = None;
        }
        self.next = self.next.max(end);
        Ok(())
    }

    /// Moves the cursor back to the first record that the consumer has not acked.
    ///
    /// # Errors
    ///
    /// No consumer has this id.
    pub fn rewind(&mut self, id: u64) -> Result<(), SpoolError> {
        let consumer = self.consumer(id)?;
        consumer.cursor = consumer.position;
        consumer.hint = None;
        Ok(())
    }

    /// Returns the next item for a consumer; `None` if it has read everything.
    ///
    /// # Errors
    ///
    /// The disk cannot read. The next call tries again. After three failures the frame's records count as lost.
    pub fn read(&mut self, id: u64) -> Result<Option<Item>, SpoolError> {
        loop {
            let dropped_end = self.state.dropped_end;
            let next = self.next;
            let consumer = self.consumer(id)?;
            let (cursor, hint) = (consumer.cursor, consumer.hint);
            if cursor >= next {
                return Ok(None);
            }
            if cursor < dropped_end {
                consumer.cursor = dropped_end;
                return Ok(Some(Item::Gap { from: cursor, to: dropped_end, reason: GapReason::Dropped }));
            }
            match self.find(cursor) {
                Some((follows, first, _)) if first > cursor => return Ok(Some(self.skip(id, cursor, follows, first))),
                None => return Ok(Some(self.skip(id, cursor, next, next))),
                Some((.., FrameSource::Memory(index))) => {
                    let held = &self.unsynced[index];
                    let payload = held.payload().to_vec();
                    let FrameHead { first, count, codec, .. } = held.head;
                    return self.return_frame(id, Frame { first, count, codec, payload }, None);
                }
                Some((.., FrameSource::Disk(index, run))) => {
                    let segment = &self.segments[index];
                    match read_frame(&self.disks[segment.disk], segment, run, cursor, hint) {
                        Ok(Some((head, payload, offset))) => {
                            let hint = Some((segment.key, offset));
                            let FrameHead { first, count, codec, .. } = head;
                            return self.return_frame(id, Frame { first, count, codec, payload }, hint);
                        }
                        // The frame was valid when the segment was scanned, so it has changed since.
                        Ok(None) => self.rescan(index)?,
                        Err(error) => {
                            self.note_error(&error);
                            let consumer = self.consumer(id)?;
                            consumer.failed_reads += 1;
                            if consumer.failed_reads < READ_TRIES {
                                return Err(error.into());
                            }
                            consumer.failed_reads = 0;
                            self.rescan(index)?;
                        }
                    }
                }
            }
        }
    }

    fn return_frame(
        &mut self,
        id: u64,
        frame: Frame,
        hint: Option<(FrameKey, u64)>,
    ) -> Result<Option<Item>, SpoolError> {
        let consumer = self.consumer(id)?;
        consumer.cursor = frame.end();
        consumer.hint = hint;
        consumer.failed_reads = 0;
        Ok(Some(Item::Frame(frame)))
    }

    /// Returns the gap from `from` to the next frame, whose first number is `first`, or to `follows`. Numbers below
    /// `follows` were lost. Numbers from `follows` on were skipped on purpose.
    fn skip(&mut self, id: u64, from: u64, follows: u64, first: u64) -> Item {
        let (to, reason) = if follows > from { (follows, GapReason::Lost) } else { (first, GapReason::Skipped) };
        if let Ok(consumer) = self.consumer(id) {
            consumer.cursor = to;
            consumer.hint = None;
        }
        Item::Gap { from, to, reason }
    }

    /// Finds the record `cursor`, or the next record that is present. Returns `follows` and `first` of its frame or
    /// run.
    fn find(&self, cursor: u64) -> Option<(u64, u64, FrameSource)> {
        let held = self.unsynced.partition_point(|frame| frame.head.end() <= cursor);
        let mut best =
            self.unsynced.get(held).map(|frame| (frame.head.follows, frame.head.first, FrameSource::Memory(held)));
        for (index, segment) in self.segments.iter().enumerate() {
            let at = segment.runs.partition_point(|run| run.end <= cursor);
            let Some(run) = segment.runs.get(at) else { continue };
            let is_better = best.as_ref().is_none_or(|(_, first, _)| {
                let (run, best) = (run.first.max(cursor), (*first).max(cursor));
                // Of two copies of a frame the later one counts. The earlier one may be left over from a failed append.
                if Defect::OldCopyWins.is_planted() { run < best } else { run <= best }
            });
            if is_better {
                best = Some((run.follows, run.first, FrameSource::Disk(index, *run)));
            }
        }
        best
    }

    /// Scans a segment again after a frame in it has changed. The records of that frame are lost.
    fn rescan(&mut self, index: usize) -> Result<(), SpoolError> {
        let segment = &mut self.segments[index];
        let disk = &self.disks[segment.disk];
        let end = segment.end();
        let first = segment.runs.first().map_or(0, |run| run.first);
        let found = super::scan::scan(disk, &segment.file, segment.key, first, |head| head.end() <= end);
        if found.runs == segment.runs {
            // A frame that reads differently each time is not dropped. The caller gets this error and reads again.
            let source = std::io::Error::other("a frame changes from one reading to the next");
            let path = super::spool_segment::segment_name(segment.number).into();
            return Err(DiskError { operation: Operation::Read, path, source }.into());
        }
        segment.runs = found.runs;
        let number = segment.number;
        for damage in found.damages {
            self.undeliverable.quarantine(disk, &segment.file, number, damage);
        }
        Ok(())
    }

    /// Number of missing records below `next`, for the consumer with the lowest position.
    pub(super) fn lost_records(&self) -> u64 {
        let (mut cursor, mut lost) = (self.floor(), 0);
        while cursor < self.next {
            let (follows, first, end) = match self.find(cursor) {
                None => (self.next, self.next, self.next),
                Some((follows, first, FrameSource::Memory(index))) => (follows, first, self.unsynced[index].head.end()),
                Some((follows, first, FrameSource::Disk(_, run))) => (follows, first, run.end),
            };
            lost += follows.min(first).saturating_sub(cursor);
            cursor = end;
        }
        lost
    }
}

/// Reads the frame of a run that holds the record `cursor`, and finds where the next frame begins. `None`: the frame is
/// damaged.
fn read_frame<D: Disk>(
    disk: &D,
    segment: &Segment<D>,
    run: FrameRun,
    cursor: u64,
    hint: Option<(FrameKey, u64)>,
) -> Result<Option<(FrameHead, Vec<u8>, u64)>, DiskError> {
    let is_hinted = |(key, offset): &(FrameKey, u64)| {
        *key == segment.key && (run.offset..run.stop).contains(offset) && cursor > run.first
    };
    let mut offset = hint.filter(is_hinted).map_or(run.offset, |(_, offset)| offset);
    while offset < run.stop {
        let Some(head) = segment.head(disk, offset)? else { return Ok(None) };
        if head.end() <= cursor {
            offset += head.frame_bytes();
            continue;
        }
        let payload = segment.payload(disk, offset, &head)?.filter(|_| head.first <= cursor.max(run.first));
        return Ok(payload.map(|payload| (head, payload, offset + head.frame_bytes())));
    }
    Ok(None)
}
