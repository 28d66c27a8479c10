//! The reading side of a lane: walk over whole records, without copying.
//!
//! The collector reads its own segment, a recoverer the copied rings of a dead process. Every length is
//! checked for both: one that does not fit ends the walk of that lane instead of running out of the ring.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use logspool_record::{HEAD_BYTES, Head, advance, flags};

use super::cursor::NOT_GROWN;
use crate::segment::Segment;

/// The rings of one lane as the reader sees them, up to a published head.
#[derive(Debug, Clone, Copy)]
pub struct LaneReader<'a> {
    first: (*const u8, u64),
    second: (*const u8, u64),
    switch: u64,
    position: u64,
    head: u64,
    unread: u64,
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
        let lane = segment.lane(index);
        let position = lane.consumer.batched.load(Ordering::Relaxed);
        let head = lane.producer.published();
        if position == head {
            return None;
        }
        let switch = lane.producer.switch();
        let place = |offset: u64, bytes: u64| {
            if offset == 0 { (std::ptr::null(), 0) } else { (segment.at(offset).cast_const(), bytes) }
        };
        let first = place(lane.first_offset.load(Ordering::Relaxed), lane.first_bytes.load(Ordering::Relaxed));
        let second = if switch == NOT_GROWN {
            (std::ptr::null(), 0)
        } else {
            place(lane.second_offset.load(Ordering::Relaxed), lane.second_bytes.load(Ordering::Relaxed))
        };
        Some(Self { first, second, switch, position, head, unread: 0, rings: PhantomData })
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
        let place = |ring: &'a [u8]| (ring.as_ptr(), ring.len() as u64);
        Some(Self {
            first: place(first),
            second: place(second),
            switch,
            position: from,
            head: to,
            unread: 0,
            rings: PhantomData,
        })
    }

    /// Bytes given up because they make no record.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// Position of the next record, or of filler in front of it.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next record, without passing it. Filler is passed.
    #[inline]
    pub fn peek(&mut self) -> Option<Lying<'a>> {
        loop {
            if self.position >= self.head {
                return None;
            }
            let (ring, start, bytes, end) = if self.position < self.switch {
                (self.first.0, 0, self.first.1, self.switch.min(self.head))
            } else {
                (self.second.0, self.switch, self.second.1, self.head)
            };
            if bytes == 0 {
                return self.give_up();
            }
            let offset = (self.position - start) & (bytes - 1);
            let to_end = bytes - offset;
            if to_end < HEAD_BYTES as u64 {
                self.position += to_end;
                continue;
            }
            // SAFETY: `offset + HEAD_BYTES <= bytes`, and the producer published these bytes (`head` was
            // loaded with Acquire); it does not overwrite them before `tail` passes them. A copied ring lies at
            // any address, so the read must not ask for alignment; it costs the same.
            let head = unsafe { ring.add(offset as usize).cast::<Head>().read_unaligned() };
            let step = advance(head.len as usize) as u64;
            if (head.len as usize) < HEAD_BYTES || step > to_end || self.position + step > end {
                // Not a record: the rest of this lane cannot be read. Never happens while the lane's code is
                // the only writer; the loss shows as a difference of positions.
                return self.give_up();
            }
            if head.flags & flags::PAD != 0 {
                self.position += step;
                continue;
            }
            let len = head.len as usize - HEAD_BYTES;
            // SAFETY: as above; `len` was checked against the ring.
            let values = unsafe { std::slice::from_raw_parts(ring.add(offset as usize + HEAD_BYTES), len) };
            return Some(Lying { head, values });
        }
    }

    #[cold]
    fn give_up<T>(&mut self) -> Option<T> {
        self.unread += self.head - self.position;
        self.position = self.head;
        None
    }

    /// Passes the record that `peek` showed.
    #[inline]
    pub fn pass(&mut self, head: Head) {
        self.position += advance(head.len as usize) as u64;
    }
}
