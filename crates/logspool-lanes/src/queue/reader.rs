//! The reading side of a lane: walks over whole records without copying them.
//!
//! The collector reads its own segment, a recoverer the copied rings of a dead process. Every length is checked in both
//! cases: an impossible length ends the walk of that lane before it leaves the ring.

use std::marker::PhantomData;

use logspool_record::{HEAD_BYTES, Head};

use crate::lane::cursor::NOT_GROWN;
use crate::lane::ring::{ReadPosition, Ring};
use crate::segment::Segment;

/// The rings of one lane up to a published head, as the reader sees them.
#[derive(Debug, Clone, Copy)]
pub struct LaneReader<'a> {
    first: *const u8,
    second: *const u8,
    place: ReadPosition,
    rings: PhantomData<&'a [u8]>,
}

/// Copies of the rings of one lane. The copy of a ring that is not needed may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Rings<'a> {
    /// The first ring.
    pub first: &'a [u8],
    /// The second ring, added when the lane grew.
    pub second: &'a [u8],
    /// Position at which the second ring begins.
    pub switch: u64,
}

/// Larger numbers are not valid positions. At 1 GiB a second a lane reaches this number after a hundred years.
const MAX_POSITION: u64 = 1 << 62;

/// A record that is still in its lane.
#[derive(Debug, Clone, Copy)]
pub struct PeekedRecord<'a> {
    /// The record's head.
    pub head: Head,
    /// The record's tagged values.
    pub values: &'a [u8],
}

impl<'a> LaneReader<'a> {
    /// A reader of lane `index`, from the batched position to the published position. `None`: there is no record
    /// between these positions.
    pub fn new(segment: &'a Segment, index: usize) -> Option<Self> {
        let (place, offsets) = ReadPosition::look_up(segment.lane(index))?;
        let at = |offset: u64| if offset == 0 { std::ptr::null() } else { segment.at(offset).cast_const() };
        Some(Self { first: at(offsets[0]), second: at(offsets[1]), place, rings: PhantomData })
    }

    /// A reader of copied rings from position `from` to position `to`. `None`: the positions do not fit the rings.
    pub fn from_copies(rings: Rings<'a>, from: u64, to: u64) -> Option<Self> {
        let Rings { first, second, switch } = rings;
        let in_first = to.min(switch).saturating_sub(from);
        let in_second = to.saturating_sub(from.max(switch));
        let fits = |ring: &[u8], bytes: u64| bytes == 0 || ring.len().is_power_of_two() && bytes <= ring.len() as u64;
        let aligned = [from, to, if switch == NOT_GROWN { 0 } else { switch }].iter().all(|position| position % 8 == 0);
        if from > to || to > MAX_POSITION || !aligned || !fits(first, in_first) || !fits(second, in_second) {
            return None;
        }
        let (first_bytes, second_bytes) = (first.len() as u64, second.len() as u64);
        let place = ReadPosition::new(first_bytes, second_bytes, switch, from, to);
        Some(Self { first: first.as_ptr(), second: second.as_ptr(), place, rings: PhantomData })
    }

    /// Number of bytes that were skipped because they are not a valid record.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.place.unread
    }

    /// Position of the next record, or of the filler before it.
    #[inline]
    pub fn position(&self) -> u64 {
        self.place.position
    }

    /// Bytes of the ring of that position.
    pub fn ring_bytes(&self) -> u64 {
        if self.place.position < self.place.switch { self.place.first_bytes } else { self.place.second_bytes }
    }

    /// Returns the next record without moving past it. Filler is skipped.
    #[inline]
    pub fn peek(&mut self) -> Option<PeekedRecord<'a>> {
        let (first, second) = (self.first, self.second);
        let at = |ring: Ring, offset: u64| match ring {
            Ring::First => first.wrapping_add(offset as usize),
            Ring::Second => second.wrapping_add(offset as usize),
        };
        // SAFETY: `ReadPosition` gives offsets with room for a head before the end of a ring that is there. The
        // producer published these bytes (`head` was loaded with Acquire) and does not overwrite them before `tail`
        // passes them. A copied ring may have any address, so the read must not ask for alignment; it costs the same.
        let read = |ring, offset| unsafe { at(ring, offset).cast::<Head>().read_unaligned() };
        let (ring, offset, head) = self.place.peek(read)?;
        let len = head.len as usize - HEAD_BYTES;
        // SAFETY: `peek` compared `len` with the bytes that the ring has from `offset` on, and they are published.
        let values = unsafe { std::slice::from_raw_parts(at(ring, offset).wrapping_add(HEAD_BYTES), len) };
        Some(PeekedRecord { head, values })
    }

    /// Moves past the record that `peek` returned.
    #[inline]
    pub fn move_past(&mut self, head: Head) {
        self.place.move_past(head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::producer::{LaneUse, Producer, PushError};
    use crate::segment::FIRST_RING_BYTES;

    const RING_BYTES: u64 = 4096;

    /// Pushes a record with `bytes` bytes of `value`.
    fn push(producer: &mut Producer, value: u8, bytes: usize) -> Result<(), PushError> {
        let head = Head { len: 0, site: 0, route: 1, level: 20, flags: 0, ticks: 0 };
        // SAFETY: `push` gives room for `bytes` bytes.
        producer.push(head, bytes, |place| unsafe { place.write_bytes(value, bytes) })
    }

    /// Reads all records, frees their bytes, and returns value and length of each.
    fn drain(segment: &Segment) -> Vec<(u8, usize)> {
        let mut found = Vec::new();
        let Some(mut reader) = LaneReader::new(segment, 0) else { return found };
        while let Some(peeked) = reader.peek() {
            assert!(peeked.values.iter().all(|byte| *byte == peeked.values[0]));
            found.push((peeked.values[0], peeked.values.len()));
            reader.move_past(peeked.head);
        }
        assert_eq!(0, reader.unread());
        let consumer = &segment.lane(0).consumer;
        consumer.batched.store(reader.position(), logspool_sys::sync::Ordering::Relaxed);
        consumer.release(reader.position());
        found
    }

    #[test]
    fn records_are_read_whole_across_wraps_and_a_growth() {
        let segment = Segment::in_memory(Some(2 * FIRST_RING_BYTES)).unwrap();
        let first = segment.take_ring(RING_BYTES).unwrap();
        segment.lane(0).set_first_ring(first, RING_BYTES);
        let mut producer = Producer::new(&segment, 0, LaneUse::Own, 1);
        let (mut pushed, mut read) = (Vec::new(), Vec::new());
        for value in 0..40 {
            let bytes = 1 + 23 * usize::from(value) % 700;
            if push(&mut producer, value, bytes) == Err(PushError::Full) {
                read.extend(drain(&segment));
                assert_eq!(Ok(()), push(&mut producer, value, bytes));
            }
            pushed.push((value, bytes));
        }
        assert!(producer.position() > 3 * RING_BYTES, "the ring wrapped");

        let second = segment.take_ring(2 * RING_BYTES).unwrap();
        producer.grow(second, 2 * RING_BYTES);
        for value in 40..50 {
            assert_eq!(Ok(()), push(&mut producer, value, 400));
            pushed.push((value, 400));
        }
        read.extend(drain(&segment));

        assert_eq!(pushed, read);
    }
}
