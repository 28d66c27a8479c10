//! Lanes and rings of a segment: which one is handed out next, and when it gets memory.
//!
//! The first rings belong to the shared lanes. Only the first shared lane has memory from the start, so that a thread
//! always finds a lane. The other shared lanes get memory when they are needed. All shared lanes have a reserved place
//! from the start, because the rings of other lanes may use up the limit.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::layout::{self, LaneHead};
use super::pages::MADV_POPULATE_WRITE;
use super::{FIRST_RING_BYTES, Segment, free_range};
use logspool_sys::published::{Entered, Published};
use logspool_sys::sleep::sleep_interruptibly;

use crate::lane::cursor::{NOT_GROWN, state};
use crate::lane::ring::WritePosition;

/// Number of lanes that threads share after all other lanes are taken.
///
/// Chosen: with the first lane of one thread, their heads fill the first page of the table. A thread that finds its
/// shared lane locked or full continues in another one, so half as many are locked for it twice as often.
pub const SHARED_LANES: usize = 7;

/// The part of the rings' limit that only shared lanes may use, as a divisor. A limit below [`LEAST_SHARED_LIMIT`] has
/// no such part.
///
/// Chosen: of the usual 64 MiB it is enough for each shared lane to grow to 1 MiB.
const SHARED_PART_DIVISOR: u64 = 8;
const LEAST_SHARED_LIMIT: u64 = 2 * 1024 * 1024;

/// Pause between two tries to lock a lane that is to grow.
///
/// Chosen: the lock is held for some 100 ns, unless its holder waits for a processor. A pause leaves it that processor.
const LOCK_PAUSE: Duration = Duration::from_micros(50);

impl Segment {
    /// Maximum number of bytes of all rings together.
    pub fn ring_limit(&self) -> u64 {
        self.ring_limit
    }

    /// Bytes of rings that have memory.
    pub fn ring_bytes(&self) -> u64 {
        self.ring_bytes.load(Ordering::Relaxed)
    }

    /// Takes `bytes` (a power of two) for a ring. Returns its offset. `None`: the limit is reached or tmpfs is full.
    pub fn take_ring(&self, bytes: u64) -> Option<u64> {
        let shared = if self.ring_limit < LEAST_SHARED_LIMIT { 0 } else { self.ring_limit / SHARED_PART_DIVISOR };
        self.take_ring_below(bytes, self.ring_limit - shared)
    }

    fn take_ring_below(&self, bytes: u64, limit: u64) -> Option<u64> {
        let offset = self.reserve_ring(bytes, limit)?;
        if !self.allocate_ring(offset, bytes) {
            free_range(&self.header().ring_end, offset, bytes);
            return None;
        }
        Some(offset)
    }

    fn reserve_ring(&self, bytes: u64, limit: u64) -> Option<u64> {
        let end = layout::RINGS + limit;
        let taken = self.header().ring_end.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |offset| {
            (offset + bytes <= end).then_some(offset + bytes)
        });
        taken.ok()
    }

    fn allocate_ring(&self, offset: u64, bytes: u64) -> bool {
        match self.with_mapping(|pages, mapping| pages.take_ring(mapping, offset, bytes)) {
            Some(Err(_)) => return false,
            Some(Ok(())) => {}
            // Memory without a file needs no call. This one saves page faults later, and older kernels refuse it.
            // SAFETY: the range is inside the mapping.
            None if !cfg!(miri) => unsafe {
                libc::madvise(self.at(offset).cast(), bytes as usize, MADV_POPULATE_WRITE);
            },
            None => {}
        }
        self.ring_bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// Frees a ring that no lane uses.
    fn free_ring(&self, offset: u64, bytes: u64) {
        self.with_mapping(|_, mapping| mapping.free(offset, bytes));
        self.ring_bytes.fetch_sub(bytes, Ordering::Relaxed);
        free_range(&self.header().ring_end, offset, bytes);
    }

    /// Reserves the rings of a new segment's shared lanes, and opens the first lane.
    pub fn prepare_shared_lanes(&self) {
        for index in 0..SHARED_LANES {
            if let Some(offset) = self.reserve_ring(FIRST_RING_BYTES, self.ring_limit) {
                self.lane(index).set_first_ring(offset, FIRST_RING_BYTES);
            }
        }
        self.header().lanes.publish(SHARED_LANES as u32);
        self.open_shared_lane(0);
    }

    /// Makes sure that shared lane `index` can be used. `false`: it has no ring, or there is no memory for it.
    pub fn open_shared_lane(&self, index: usize) -> bool {
        let lane = self.lane(index);
        let is_open = || lane.state.word.observe() == state::SHARED;
        if is_open() {
            return true;
        }
        // One thread at a time: a call that fails would free pages that another thread has allocated and not yet
        // written.
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = lane.first_offset.load(Ordering::Relaxed);
        if !is_open() {
            if offset == 0 || !self.allocate_ring(offset, FIRST_RING_BYTES) {
                return false;
            }
            lane.state.word.publish(state::SHARED);
        }
        true
    }

    /// Gives shared lane `index` a second ring of `bytes`, a power of two, or less: at most its part of the limit, rounded
    /// up, and the room there is. Does nothing if it has a second ring, or if another thread makes one now.
    ///
    /// The caller must not hold the lock of a shared lane.
    pub fn grow_shared_lane(&self, index: usize, bytes: u64) {
        // A signal handler may have interrupted this function, so it must not wait here.
        let Ok(_opening) = self.opening.try_lock() else { return };
        let producer = &self.lane(index).producer;
        if producer.switch() != NOT_GROWN {
            return;
        }
        let part = self.ring_limit / SHARED_PART_DIVISOR / SHARED_LANES as u64;
        let sizes = std::iter::successors(Some(bytes.min(part.next_power_of_two())), |bytes| Some(bytes / 2));
        let made = sizes
            .take_while(|bytes| *bytes > FIRST_RING_BYTES)
            .find_map(|bytes| self.take_ring_below(bytes, self.ring_limit).map(|offset| (offset, bytes)));
        let Some((offset, bytes)) = made else { return };
        while !producer.shared_lock.try_enter() {
            sleep_interruptibly(LOCK_PAUSE);
        }
        let place = WritePosition { head: producer.head.load(Ordering::Relaxed), ..WritePosition::default() };
        place.grow(self.lane(index), offset, bytes);
        producer.shared_lock.leave();
    }

    /// Takes a new lane with its first ring. `None`: no lane is left, or there is no room or memory for its ring.
    pub fn take_lane(&self) -> Option<usize> {
        // The head needs memory before the count changes: the collector reads every head below the count.
        let has_head = |index: usize| {
            index < layout::MAX_LANES && self.ensure(layout::lane_offset(index), size_of::<LaneHead>() as u64)
        };
        let lanes = &self.header().lanes;
        let mut index = lanes.load(Ordering::Relaxed) as usize;
        if !has_head(index) {
            return None;
        }
        let offset = self.take_ring(FIRST_RING_BYTES)?;
        while let Err(now) = lanes.publish_over(index as u32, index as u32 + 1) {
            index = now as usize;
            if !has_head(index) {
                self.free_ring(offset, FIRST_RING_BYTES);
                return None;
            }
        }
        let lane = self.lane(index);
        lane.set_first_ring(offset, FIRST_RING_BYTES);
        lane.state.make_owned();
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_end_at_the_cap() {
        let segment = Segment::in_memory(Some(4 * FIRST_RING_BYTES)).unwrap();
        let taken = std::iter::from_fn(|| segment.take_ring(FIRST_RING_BYTES)).count();

        assert_eq!(4, taken);
    }
}
