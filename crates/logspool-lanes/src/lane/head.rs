//! The head of a lane in the segment, and the level classes of its counters.

use logspool_sys::sync::{AtomicU64, Ordering};

use super::cursor::{ConsumerCursor, LaneState, NOT_GROWN, ProducerCursor, Window};

/// Levels are counted in six classes: below DEBUG, DEBUG, INFO, WARNING, ERROR, CRITICAL.
pub const LEVEL_CLASSES: usize = 6;
/// Number of reasons for a refusal; each lane counts them, see `pipeline::Refusal`.
pub const REFUSALS: usize = 4;
/// Index of the level class for a level number of the Python standard library.
#[inline]
pub const fn level_class(level: u16) -> usize {
    let class = (level / 10) as usize;
    if class >= LEVEL_CLASSES { LEVEL_CLASSES - 1 } else { class }
}

/// Head of one lane.
#[repr(C, align(512))]
pub struct LaneHead {
    /// Whether the lane is owned, shared or free.
    pub state: LaneState,
    /// Kernel's id of the owning thread, for diagnostics.
    pub thread: AtomicU64,
    /// Offset of the first ring, 0 before the first claim.
    pub first_offset: AtomicU64,
    /// Bytes of the first ring, a power of two.
    pub first_bytes: AtomicU64,
    /// Offset of the second ring, 0 before growth.
    pub second_offset: AtomicU64,
    /// Bytes of the second ring, a power of two.
    pub second_bytes: AtomicU64,
    /// The producer's cache line.
    pub producer: ProducerCursor,
    /// The consumer's cache line.
    pub consumer: ConsumerCursor,
    /// Records refused by the owner, per reason and level class. Written by the owner only.
    pub refused: [[AtomicU64; LEVEL_CLASSES]; REFUSALS],
    /// The mark of the window, in a cache line that the collector never loads.
    pub window: Window,
}

impl LaneHead {
    /// Gives a new lane its first ring.
    pub fn set_first_ring(&self, offset: u64, bytes: u64) {
        self.first_bytes.store(bytes, Ordering::Relaxed);
        self.first_offset.store(offset, Ordering::Relaxed);
        self.producer.switch.store(NOT_GROWN, Ordering::Relaxed);
    }
}
