//! The reading side of a lane: walk over whole records, without copying.
//!
//! The collector reads its own segment, a recoverer the copied rings of a dead process. Every length is
//! checked for both: one that does not fit ends the walk of that lane instead of running out of the ring.

use std::marker::PhantomData;

use logspool_record::{HEAD_BYTES, Head};

use super::cursor::NOT_GROWN;
use super::ring::{ReadPlace, Ring};
use crate::segment::Segment;

/// The rings of one lane as the reader sees them, up to a published head.
#[derive(Debug, Clone, Copy)]
pub struct LaneReader<'a> {
    first: *const u8,
    second: *const u8,
    place: ReadPlace,
    rings: PhantomData<&'a [u8]>,
}

/// Copies of the rings of one lane; one that is not needed may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Rings<'a> {
    /// The first ring.
    pub first: &'a [u8],
    /// The ring that the lane grew by.
    pub second: &'a [u8],
    /// Position at which the second ring begins.
    pub switch: u64,
}

/// Positions beyond this are no positions: at 1 GiB a second it takes a hundred years to come here.
const MAX_POSITION: u64 = 1 << 62;

/// A record still lying in its lane.
#[derive(Debug, Clone, Copy)]
pub struct Lying<'a> {
    /// Its head.
    pub head: Head,
    /// Its tagged values.
    pub values: &'a [u8],
}

impl<'a> LaneReader<'a> {
    /// A reader of lane `index` from what is batched to what is published. `None`: there is nothing.
    pub fn new(segment: &'a Segment, index: usize) -> Option<Self> {
        let (place, offsets) = ReadPlace::look_up(segment.lane(index))?;
        let at = |offset: u64| if offset == 0 { std::ptr::null() } else { segment.at(offset).cast_const() };
        Some(Self { first: at(offsets[0]), second: at(offsets[1]), place, rings: PhantomData })
    }

    /// A reader of copied rings from position `from` to position `to`. `None`: these do not fit each other.
    pub fn over(rings: Rings<'a>, from: u64, to: u64) -> Option<Self> {
        let Rings { first, second, switch } = rings;
        let in_first = to.min(switch).saturating_sub(from);
        let in_second = to.saturating_sub(from.max(switch));
        let fits = |ring: &[u8], bytes: u64| bytes == 0 || ring.len().is_power_of_two() && bytes <= ring.len() as u64;
        let aligned = [from, to, if switch == NOT_GROWN { 0 } else { switch }].iter().all(|position| position % 8 == 0);
        if from > to || to > MAX_POSITION || !aligned || !fits(first, in_first) || !fits(second, in_second) {
            return None;
        }
        let (first_bytes, second_bytes) = (first.len() as u64, second.len() as u64);
        let place = ReadPlace { first_bytes, second_bytes, switch, position: from, head: to, unread: 0 };
        Some(Self { first: first.as_ptr(), second: second.as_ptr(), place, rings: PhantomData })
    }

    /// Bytes given up because they make no record.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.place.unread
    }

    /// Position of the next record, or of filler in front of it.
    #[inline]
    pub fn position(&self) -> u64 {
        self.place.position
    }

    /// The next record, without passing it. Filler is passed.
    #[inline]
    pub fn peek(&mut self) -> Option<Lying<'a>> {
        let (first, second) = (self.first, self.second);
        let at = |ring: Ring, offset: u64| match ring {
            Ring::First => first.wrapping_add(offset as usize),
            Ring::Second => second.wrapping_add(offset as usize),
        };
        // SAFETY: `ReadPlace` gives offsets with room for a head before the end of a ring that is there. The producer
        // published these bytes (`head` was loaded with Acquire) and does not overwrite them before `tail` passes them.
        // A copied ring may have any address, so the read must not ask for alignment; it costs the same.
        let read = |ring, offset| unsafe { at(ring, offset).cast::<Head>().read_unaligned() };
        let (ring, offset, head) = self.place.peek(read)?;
        let len = head.len as usize - HEAD_BYTES;
        // SAFETY: `peek` compared `len` with the bytes that the ring has from `offset` on, and they are published.
        let values = unsafe { std::slice::from_raw_parts(at(ring, offset).wrapping_add(HEAD_BYTES), len) };
        Some(Lying { head, values })
    }

    /// Passes the record that `peek` showed.
    #[inline]
    pub fn pass(&mut self, head: Head) {
        self.place.pass(head);
    }
}
