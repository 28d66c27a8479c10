//! What a header of another language needs to write a record into its thread's lane without a call.
//!
//! The list in `cursor.rs` says what such a writer keeps. The fields are C, and `logspool.h` declares the same struct:
//! a field is never moved or removed under the same [`VIEW_VERSION`]; new fields follow the last one.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::lane::ring::WritePosition;

/// Version of [`LaneView`]. A header that knows another version writes by `reserve` and `commit` only.
pub const VIEW_VERSION: u32 = 1;

/// Generation of a view without a lane. No process has this number.
pub const NO_GENERATION: u64 = u64::MAX;

/// Bit meanings of [`LaneView::flags`].
pub mod view_flags {
    /// Each call must take its slow path, because the lane is shared, or because calls may wait until their record is
    /// durable.
    pub const SLOW: u32 = 1;
}

/// The producer's part of one thread's lane, in place as long as the thread lives.
#[derive(Debug)]
#[repr(C)]
pub struct LaneView {
    /// [`VIEW_VERSION`].
    pub version: u32,
    /// Bits of [`view_flags`].
    pub flags: u32,
    /// Number of the pipeline that the lane belongs to: ids are valid under this number only.
    pub pipeline: u64,
    /// Generation of the process in which the lane was last checked.
    pub generation: u64,
    /// The word with the current generation.
    pub generation_word: &'static AtomicU64,
    /// The lane's published position.
    pub head_word: *const AtomicU64,
    /// The lane's mark of an open window.
    pub busy_word: *const AtomicU32,
    /// Address of the ring for the next record.
    pub ring: *mut u8,
    /// The position in that ring.
    pub place: WritePosition,
    /// After a record that ends at this position or later, the writer calls `wake`.
    pub wake_at: u64,
    /// The clock that stamps records: the number of a `clock::ClockKind`.
    pub clock: u32,
    /// Kernel's id of the thread, for formats that show it.
    pub thread: u32,
}
