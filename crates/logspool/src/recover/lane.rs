//! The lanes of an image. Copies their rings and checks their positions.
//!
//! The size of a ring must be a power of two. The ring must be inside the file and not overlap another ring. So the
//! copies are never larger than the file.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

use logspool_lanes::queue::reader::{LaneReader, Rings};
use logspool_lanes::segment::layout::{LaneHead, MAX_QUEUE_BYTES, RINGS};

/// Rings and positions of one lane with undelivered records.
#[derive(Debug)]
pub struct Lane {
    /// Index of the lane in the segment.
    pub index: u32,
    /// Incarnation of the last owner: the number of owners before it.
    pub incarnation: u32,
    /// Position up to which the collector released the lane space.
    pub released: u64,
    /// Position up to which the collector noted records as batched.
    pub batched: u64,
    /// Position of the first readable record.
    pub from: u64,
    /// Position after the last readable published record.
    pub to: u64,
    switch: u64,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Lane {
    /// Copies lane `index`. The function `word` reads the words of the lane's head. Returns the lane if a part of it is
    /// readable, and the number of unreadable bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn copy(
        index: u32,
        word: impl Fn(usize) -> u64,
        copier: &mut RingCopier<'_>,
    ) -> io::Result<(Option<Self>, u64)> {
        let released = word(offset_of!(LaneHead, consumer.tail));
        let head = word(offset_of!(LaneHead, producer.head));
        if released == head {
            return Ok((None, 0));
        }
        let switch = word(offset_of!(LaneHead, producer.switch));
        // `state` consists of two 32-bit words: the owner of the lane, and the number of owners before it.
        let state = word(offset_of!(LaneHead, state)).to_ne_bytes();
        let incarnation = u32::from_ne_bytes([state[4], state[5], state[6], state[7]]);
        let mut ring = |offset, bytes| copier.copy(word(offset), word(bytes)).map(Option::unwrap_or_default);
        let mut lane = Self {
            index,
            incarnation,
            released,
            batched: word(offset_of!(LaneHead, consumer.batched)),
            from: released,
            to: head,
            switch,
            first: Vec::new(),
            second: Vec::new(),
        };
        if released < switch {
            lane.first = ring(offset_of!(LaneHead, first_offset), offset_of!(LaneHead, first_bytes))?;
        }
        if head > switch {
            lane.second = ring(offset_of!(LaneHead, second_offset), offset_of!(LaneHead, second_bytes))?;
        }
        // If one ring cannot be read, the lane keeps the records that are in the other ring.
        if lane.first.is_empty() && released < switch {
            lane.from = switch.min(head);
        }
        if lane.second.is_empty() && head > switch {
            lane.to = switch.max(released);
        }
        let fits = released < head && lane.from < lane.to && lane.reader(lane.from, lane.to).is_some();
        let readable = if fits { lane.to - lane.from } else { 0 };
        let held = head.abs_diff(released).min(copier.file_bytes);
        Ok((fits.then_some(lane), held.saturating_sub(readable)))
    }

    /// Makes a reader of the readable part of `[from, to)`. Returns `None` if no part is readable.
    pub fn reader(&self, from: u64, to: u64) -> Option<LaneReader<'_>> {
        let rings = Rings { first: &self.first, second: &self.second, switch: self.switch };
        LaneReader::from_copies(rings, from.max(self.from), to.min(self.to))
    }
}

/// Copies rings, and checks that they do not overlap.
#[derive(Debug)]
pub struct RingCopier<'a> {
    file: &'a File,
    file_bytes: u64,
    left: u64,
    taken: Vec<(u64, u64)>,
}

impl<'a> RingCopier<'a> {
    /// Makes a copier for a file of `file_bytes` bytes. It copies at most `limit` bytes.
    pub fn new(file: &'a File, file_bytes: u64, limit: u64) -> Self {
        Self { file, file_bytes, left: limit, taken: Vec::new() }
    }

    /// Copies one ring. Returns `None` if a ring with this offset and size is not possible.
    fn copy(&mut self, offset: u64, bytes: u64) -> io::Result<Option<Vec<u8>>> {
        let Some(end) = offset.checked_add(bytes) else { return Ok(None) };
        let sensible = bytes.is_power_of_two() && (64..=MAX_QUEUE_BYTES as u64).contains(&bytes);
        let inside = offset >= RINGS && end <= self.file_bytes && bytes <= self.left;
        let apart = self.taken.iter().all(|(from, to)| end <= *from || *to <= offset);
        if !(sensible && inside && apart) {
            return Ok(None);
        }
        let mut ring = vec![0; bytes as usize];
        self.file.read_exact_at(&mut ring, offset)?;
        self.left -= bytes;
        self.taken.push((offset, end));
        Ok(Some(ring))
    }
}
