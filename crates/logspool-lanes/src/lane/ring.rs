//! The algorithm of a lane's rings, without their bytes: where the next record is written, and where the next one is
//! read.
//!
//! [`WritePosition`] is the producer's, [`ReadPosition`] the reader's. Both work on the positions of a [`LaneHead`] and
//! give offsets in a ring to a closure that stores or loads the bytes there. `producer.rs` and `reader.rs` pass
//! closures over the mapping; the models pass closures over cells that the model checker watches. The closures are
//! inlined.
//!
//! A record never crosses the end of its ring. If it does not fit before the end, the remaining bytes become filler,
//! which has a head if there is room for one.

use logspool_record::{HEAD_BYTES, Head, advance, flags};
use logspool_sys::sync::Ordering;

use super::cursor::NOT_GROWN;
use super::head::LaneHead;

/// The last 1/8 of a ring is reserved for records of level ERROR and above. This constant is the divisor.
pub const RESERVED_DIVISOR: u64 = 8;
/// Lowest level that may use the reserved share of a ring.
pub const ERROR: u16 = 40;

/// The position of the producer in its current ring. All fields are in bytes.
#[derive(Debug, Default)]
#[repr(C)]
pub struct WritePosition {
    /// Position at which the ring begins.
    pub start: u64,
    /// Length of the ring, a power of two.
    pub bytes: u64,
    /// Position after the last record.
    pub head: u64,
    /// Position up to which the ring is free, as of the last [`refresh`](Self::refresh).
    pub limit: u64,
}

/// Offsets in the ring for one record.
#[derive(Debug, Clone, Copy)]
pub struct RecordOffsets {
    /// Where the record begins.
    pub record: u64,
    /// Offset and length of filler that needs a head; `None` if no such filler is needed.
    pub filler: Option<(u64, u64)>,
}

/// Why nothing was pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingError {
    /// The ring has no room.
    Full,
    /// The caller's `may` returned false inside the window.
    Shut,
}

impl WritePosition {
    /// Finds the ring for the position `head` of a lane. Also returns the offset of that ring in the segment.
    pub fn look_up(lane: &LaneHead, head: u64) -> (Self, u64) {
        let switch = lane.producer.switch();
        let (start, offset, bytes) = if switch == NOT_GROWN {
            (0, lane.first_offset.load(Ordering::Relaxed), lane.first_bytes.load(Ordering::Relaxed))
        } else {
            (switch, lane.second_offset.load(Ordering::Relaxed), lane.second_bytes.load(Ordering::Relaxed))
        };
        let mut place = Self { start, bytes, head, limit: 0 };
        place.refresh(lane);
        (place, offset)
    }

    /// Adds a second ring, which becomes visible with the next record. Call [`Self::look_up`] again after this call.
    pub fn grow(&self, lane: &LaneHead, offset: u64, bytes: u64) {
        lane.second_offset.store(offset, Ordering::Relaxed);
        lane.second_bytes.store(bytes, Ordering::Relaxed);
        lane.producer.grow_at(self.head);
    }

    /// Loads the reader's position from the lane. Returns the number of free bytes.
    #[inline]
    pub fn refresh(&mut self, lane: &LaneHead) -> u64 {
        self.limit = lane.consumer.released().max(self.start) + self.bytes;
        self.limit - self.head
    }

    /// Bytes of the ring that must stay free after a record of this level is pushed.
    #[inline]
    pub fn reserved(&self, level: u16) -> u64 {
        if level >= ERROR { 0 } else { self.bytes / RESERVED_DIVISOR }
    }

    /// Offset of the next byte in the ring.
    #[inline]
    fn offset(&self) -> u64 {
        (self.head - self.start) & (self.bytes - 1)
    }

    /// Bytes of filler before a record of `needed` bytes.
    #[inline]
    fn skipped(&self, needed: u64) -> u64 {
        let to_end = self.bytes - self.offset();
        if needed > to_end { to_end } else { 0 }
    }

    /// Whether a record of `needed` bytes fits, and leaves `reserved` bytes free.
    #[inline]
    pub fn has_room(&self, needed: u64, reserved: u64) -> bool {
        self.head + self.skipped(needed) + needed + reserved <= self.limit
    }

    /// Opens the window and finds the place of a record of `needed` bytes, a multiple of 8, that leaves `reserved` bytes
    /// free. `may` is called inside the window. The caller then stores the record's bytes and the head of the filler.
    /// [`Self::commit`] with the same `needed` ends the window, or
    /// [`Window::close`](super::cursor::Window::close) without a record.
    ///
    /// # Errors
    ///
    /// The [`RingError`]. The window is closed in that case.
    #[inline(always)]
    pub fn reserve(
        &mut self,
        lane: &LaneHead,
        needed: u64,
        reserved: u64,
        may: impl FnOnce() -> bool,
    ) -> Result<RecordOffsets, RingError> {
        // The window must be marked as open before the position is read. A signal handler that logs on this thread
        // checks the mark, and the thread that ends this generation waits until the window is closed.
        if !lane.window.open(may) {
            return Err(RingError::Shut);
        }
        if !self.has_room(needed, reserved) {
            self.refresh(lane);
            if !self.has_room(needed, reserved) {
                lane.window.close();
                return Err(RingError::Full);
            }
        }
        let (offset, skipped) = (self.offset(), self.skipped(needed));
        Ok(RecordOffsets {
            record: if skipped == 0 { offset } else { 0 },
            filler: (skipped >= HEAD_BYTES as u64).then_some((offset, skipped)),
        })
    }

    /// Publishes the record of `needed` bytes that was written at the place of [`Self::reserve`].
    #[inline(always)]
    pub fn commit(&mut self, lane: &LaneHead, needed: u64) {
        self.head += self.skipped(needed) + needed;
        lane.producer.publish(self.head);
        lane.window.close();
    }
}

/// The two rings of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// The first ring of the lane.
    First,
    /// The ring that was added when the lane grew.
    Second,
}

/// The position of a reader in a lane, up to a published head.
#[derive(Debug, Clone, Copy)]
pub struct ReadPosition {
    /// Bytes of the first ring, 0 if there is none.
    pub first_bytes: u64,
    /// Bytes of the second ring, 0 if there is none.
    pub second_bytes: u64,
    /// Position at which the second ring begins.
    pub switch: u64,
    /// Position of the next record, or of filler before it.
    pub position: u64,
    /// Position after the last record.
    pub head: u64,
    /// Bytes that were skipped because they are not a valid record.
    pub unread: u64,
    /// The part of a ring that holds the position.
    stretch: Stretch,
}

/// Positions that follow each other in the memory of one ring.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    ring: Ring,
    /// Position of the first byte of the ring.
    origin: u64,
    /// Position after the last byte of the stretch. 0: the stretch is not looked up yet.
    end: u64,
    /// Whether the stretch ends with its ring.
    is_to_ring_end: bool,
}

impl Stretch {
    const UNKNOWN: Self = Self { ring: Ring::First, origin: 0, end: 0, is_to_ring_end: false };
}

impl ReadPosition {
    /// A reader of rings of these lengths, with the second one from position `switch` on, that reads from `position` to
    /// `head`.
    pub const fn new(first_bytes: u64, second_bytes: u64, switch: u64, position: u64, head: u64) -> Self {
        Self { first_bytes, second_bytes, switch, position, head, unread: 0, stretch: Stretch::UNKNOWN }
    }

    /// Finds the position after the batched records of a lane. Also returns the offsets of its two rings in the
    /// segment, 0 for a missing ring. `None`: no record is published after the batched ones.
    pub fn look_up(lane: &LaneHead) -> Option<(Self, [u64; 2])> {
        let position = lane.consumer.batched.load(Ordering::Relaxed);
        let head = lane.producer.published();
        if position == head {
            return None;
        }
        let switch = lane.producer.switch();
        let first = (lane.first_offset.load(Ordering::Relaxed), lane.first_bytes.load(Ordering::Relaxed));
        let second = if switch == NOT_GROWN {
            (0, 0)
        } else {
            (lane.second_offset.load(Ordering::Relaxed), lane.second_bytes.load(Ordering::Relaxed))
        };
        let bytes = |(offset, bytes): (u64, u64)| if offset == 0 { 0 } else { bytes };
        let place = Self::new(bytes(first), bytes(second), switch, position, head);
        Some((place, [first.0, second.0]))
    }

    /// Finds the next record without moving past it: its ring, its offset in the ring and its head. Filler is skipped.
    ///
    /// `read` loads the head at an offset. The ring has at least the bytes of a head from that offset on.
    #[inline]
    pub fn peek(&mut self, read: impl Fn(Ring, u64) -> Head) -> Option<(Ring, u64, Head)> {
        loop {
            if self.position >= self.stretch.end && !self.look_up_stretch() {
                return None;
            }
            let Stretch { ring, origin, end, is_to_ring_end } = self.stretch;
            let left = end - self.position;
            if left < HEAD_BYTES as u64 {
                if is_to_ring_end {
                    self.position = end;
                    continue;
                }
                return self.stop_reading();
            }
            let offset = self.position - origin;
            let head = read(ring, offset);
            let step = advance(head.len as usize) as u64;
            if (head.len as usize) < HEAD_BYTES || step > left {
                // These bytes are not a valid record, so the remaining bytes of this lane cannot be read. This never
                // happens while the lane's code is the only writer. The loss shows as a difference of positions.
                return self.stop_reading();
            }
            if head.flags & flags::PAD != 0 {
                self.position += step;
                continue;
            }
            return Some((ring, offset, head));
        }
    }

    /// Finds the stretch that begins at the position. Returns false if there is no record.
    #[inline(never)]
    fn look_up_stretch(&mut self) -> bool {
        if self.position >= self.head {
            return false;
        }
        let (ring, start, bytes, end) = if self.position < self.switch {
            (Ring::First, 0, self.first_bytes, self.switch.min(self.head))
        } else {
            (Ring::Second, self.switch, self.second_bytes, self.head)
        };
        if bytes == 0 {
            self.stop_reading::<()>();
            return false;
        }
        let offset = (self.position - start) & (bytes - 1);
        let ring_end = self.position + (bytes - offset);
        self.stretch =
            Stretch { ring, origin: self.position - offset, end: ring_end.min(end), is_to_ring_end: ring_end <= end };
        true
    }

    #[cold]
    fn stop_reading<T>(&mut self) -> Option<T> {
        self.unread += self.head - self.position;
        self.position = self.head;
        None
    }

    /// Moves past the record that `peek` returned.
    #[inline]
    pub fn move_past(&mut self, head: Head) {
        self.position += advance(head.len as usize) as u64;
    }
}
