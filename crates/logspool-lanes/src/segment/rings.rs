//! Lanes and rings of a segment: which one is handed out next, and when it gets memory.
//!
//! The first rings belong to the shared lanes. Only the first shared lane has memory from the start, so that a thread
//! always finds a lane. The other shared lanes get memory when they are needed. All shared lanes have a reserved place
//! from the start, because the rings of other lanes may use up the limit.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::layout::{self, LaneHead};
use super::pages::MADV_POPULATE_WRITE;
use super::{FIRST_RING_BYTES, Segment, free_range};
use logspool_sys::published::Published;

use crate::queue::cursor::state;

/// Number of lanes that threads share after all other lanes are taken.
pub const SHARED_LANES: usize = 4;

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
        let offset = self.reserve_ring(bytes)?;
        if !self.allocate_ring(offset, bytes) {
            free_range(&self.header().ring_end, offset, bytes);
            return None;
        }
        Some(offset)
    }

    fn reserve_ring(&self, bytes: u64) -> Option<u64> {
        let end = layout::RINGS + self.ring_limit;
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
            if let Some(offset) = self.reserve_ring(FIRST_RING_BYTES) {
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
