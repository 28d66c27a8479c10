//! The reading side of a spool: each consumer has a position (what it has acked) and a cursor (what it was given).

use super::checkpoint::MAX_CONSUMERS;
use super::defect::Defect;
use super::disk::{Disk, DiskError, Operation};
use super::error::SpoolError;
use super::frame::{Head, Key};
use super::item::{Consumer, Frame, GapReason, Item};
use super::segment::{Run, Segment};
use super::spool::Spool;

/// How often a frame is tried that the disk cannot read, before its records count as lost.
///
/// Chosen: a controller that has not come back by the third time has a bad sector.
const READ_TRIES: u32 = 3;

/// Where the records from a number on are.
enum Source {
    /// In memory, at this index.
    Memory(usize),
    /// In this segment's run.
    Disk(usize, Run),
}

impl<D: Disk> Spool<D> {
    /// Adds a reader, or finds the one of this id again, and returns the first number that it has not acked. A new one
    /// begins with the oldest record that is still there. Segments stay until every consumer has acked them.
    ///
    /// # Errors
    ///
    /// When the checkpoint has no room for another one.
    pub fn add_consumer(&mut self, id: u64) -> Result<u64, SpoolError> {
        if let Some(consumer) = self.consumers.get(&id) {
            return Ok(consumer.position);
        }
        if self.consumers.len() >= MAX_CONSUMERS {
            return Err(SpoolError::Consumers);
        }
        let position = self.oldest();
        self.consumers.insert(id, Consumer::at(position));
        // What the new one wants is no longer passed.
        self.saved_floor = self.saved_floor.min(position);
        Ok(position)
    }

    /// Lets go of a reader that will not come again; segments no longer wait for it after the next checkpoint.
    pub fn remove_consumer(&mut self, id: u64) {
        self.consumers.remove(&id);
    }

    /// Those who read, with the first number that each has not acked.
    pub fn consumers(&self) -> impl Iterator<Item = (u64, u64)> {
        self.consumers.iter().map(|(id, consumer)| (*id, consumer.position))
    }

    /// Number of the oldest record that is still there.
    fn oldest(&self) -> u64 {
        let runs = self.segments.iter().flat_map(|segment| &segment.runs).map(|run| run.first);
        let held = self.unsynced.front().map(|frame| frame.head.first);
        runs.chain(held).min().unwrap_or(self.next).max(self.state.dropped_end)
    }

    /// Everything below is acked by all consumers or given up.
    pub(super) fn floor(&self) -> u64 {
        let acked = self.consumers.values().map(|consumer| consumer.position).min();
        acked.unwrap_or(0).max(self.state.dropped_end)
    }

    fn consumer(&mut self, id: u64) -> Result<&mut Consumer, SpoolError> {
        self.consumers.get_mut(&id).ok_or(SpoolError::NoConsumer(id))
    }

    /// Notes that a consumer has everything below `end`, also where that is more than the spool knows of: a service
    /// remembers numbers that a crash took from the spool, and they are not used again. [`Spool::checkpoint`] makes it
    /// durable.
    ///
    /// # Errors
    ///
    /// When nobody of this id was added.
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

    /// Begins again with the first record that the consumer has not acked.
    ///
    /// # Errors
    ///
    /// When nobody of this id was added.
    pub fn rewind(&mut self, id: u64) -> Result<(), SpoolError> {
        let consumer = self.consumer(id)?;
        consumer.cursor = consumer.position;
        consumer.hint = None;
        Ok(())
    }

    /// Gives a consumer what comes next; `None`: it has been given everything.
    ///
    /// # Errors
    ///
    /// When the disk cannot read; the next call tries again, and after three tries the records count as lost.
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
                Some((.., Source::Memory(index))) => {
                    let held = &self.unsynced[index];
                    let payload = held.payload().to_vec();
                    let Head { first, count, codec, .. } = held.head;
                    return self.give(id, Frame { first, count, codec, payload }, None);
                }
                Some((.., Source::Disk(index, run))) => {
                    let segment = &self.segments[index];
                    match read_frame(&self.disks[segment.disk], segment, run, cursor, hint) {
                        Ok(Some((head, payload, offset))) => {
                            let hint = Some((segment.key, offset));
                            let Head { first, count, codec, .. } = head;
                            return self.give(id, Frame { first, count, codec, payload }, hint);
                        }
                        // It was whole when it was found.
                        Ok(None) => self.look_again(index)?,
                        Err(error) => {
                            self.note(&error);
                            let consumer = self.consumer(id)?;
                            consumer.failed_reads += 1;
                            if consumer.failed_reads < READ_TRIES {
                                return Err(error.into());
                            }
                            consumer.failed_reads = 0;
                            self.look_again(index)?;
                        }
                    }
                }
            }
        }
    }

    fn give(&mut self, id: u64, frame: Frame, hint: Option<(Key, u64)>) -> Result<Option<Item>, SpoolError> {
        let consumer = self.consumer(id)?;
        consumer.cursor = frame.end();
        consumer.hint = hint;
        consumer.failed_reads = 0;
        Ok(Some(Item::Frame(frame)))
    }

    /// The gap from `from` up to the next frame, which begins at `first` and was made when `follows` came next.
    fn skip(&mut self, id: u64, from: u64, follows: u64, first: u64) -> Item {
        let (to, reason) = if follows > from { (follows, GapReason::Lost) } else { (first, GapReason::Skipped) };
        if let Ok(consumer) = self.consumer(id) {
            consumer.cursor = to;
            consumer.hint = None;
        }
        Item::Gap { from, to, reason }
    }

    /// Where the record `cursor` is, or else the next one there is; with what the frames there follow and begin with.
    fn find(&self, cursor: u64) -> Option<(u64, u64, Source)> {
        let held = self.unsynced.partition_point(|frame| frame.head.end() <= cursor);
        let mut best =
            self.unsynced.get(held).map(|frame| (frame.head.follows, frame.head.first, Source::Memory(held)));
        for (index, segment) in self.segments.iter().enumerate() {
            let at = segment.runs.partition_point(|run| run.end <= cursor);
            let Some(run) = segment.runs.get(at) else { continue };
            let is_better = best.as_ref().is_none_or(|(_, first, _)| {
                let (run, best) = (run.first.max(cursor), (*first).max(cursor));
                // Of two copies the later one: the earlier may be what a failed append left.
                if Defect::OldCopyWins.is_planted() { run < best } else { run <= best }
            });
            if is_better {
                best = Some((run.follows, run.first, Source::Disk(index, *run)));
            }
        }
        best
    }

    /// Reads a segment anew in which a frame was not what it had been; the frame's records are lost then.
    fn look_again(&mut self, index: usize) -> Result<(), SpoolError> {
        let segment = &mut self.segments[index];
        let disk = &self.disks[segment.disk];
        let end = segment.end();
        let first = segment.runs.first().map_or(0, |run| run.first);
        let found = super::scan::scan(disk, &segment.file, segment.key, first, |head| head.end() <= end);
        if found.runs == segment.runs {
            // What reads well now and badly then is tried again by the caller, not given up.
            let source = std::io::Error::other("a frame changes from one reading to the next");
            let path = super::segment::segment_name(segment.number).into();
            return Err(DiskError { operation: Operation::Read, path, source }.into());
        }
        segment.runs = found.runs;
        let number = segment.number;
        for damage in found.damages {
            self.remains.quarantine(disk, &segment.file, number, damage);
        }
        Ok(())
    }

    /// Records below `next` that are missing for the consumer that is furthest behind.
    pub(super) fn lost_records(&self) -> u64 {
        let (mut cursor, mut lost) = (self.floor(), 0);
        while cursor < self.next {
            let (follows, first, end) = match self.find(cursor) {
                None => (self.next, self.next, self.next),
                Some((follows, first, Source::Memory(index))) => (follows, first, self.unsynced[index].head.end()),
                Some((follows, first, Source::Disk(_, run))) => (follows, first, run.end),
            };
            lost += follows.min(first).saturating_sub(cursor);
            cursor = end;
        }
        lost
    }
}

/// Reads the frame of a run that holds the record `cursor`, and where the next one begins. `None`: it is damaged.
fn read_frame<D: Disk>(
    disk: &D,
    segment: &Segment<D>,
    run: Run,
    cursor: u64,
    hint: Option<(Key, u64)>,
) -> Result<Option<(Head, Vec<u8>, u64)>, DiskError> {
    let is_hinted = |(key, offset): &(Key, u64)| {
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
