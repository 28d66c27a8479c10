//! What a spool is told when it is opened.

use super::error::SpoolError;
use super::frame::{HEAD_BYTES, frame_bytes};
use super::segment::{HEADER_BYTES, MAX_SEGMENT_BYTES};

/// What to do with a batch when the spool has taken all the room it may take, or the disk has no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Refuse the batch: the caller keeps it and tries again later, or gives it up and counts it.
    #[default]
    RefuseNew,
    /// Give up the oldest segment and count what was in it; consumers are told which numbers are gone.
    DropOldest,
}

/// Sizes and policy of a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a new segment file.
    pub segment_bytes: u64,
    /// Bytes that all segment files may take together, those that wait to be used again among them.
    pub max_bytes: u64,
    /// What happens at that bound.
    pub when_full: WhenFull,
    /// Bytes of frames that are kept in memory until they are durable; an append beyond it syncs first.
    pub max_unsynced_bytes: u64,
}

impl Default for Options {
    /// Chosen: segments of 16 MiB take some 20 ms to fill with zeros and hold ten seconds of a busy program; a GiB in
    /// all outlasts a sink that is away for some minutes at full speed; 4 MiB in memory are a second of it.
    fn default() -> Self {
        Self {
            segment_bytes: 16 * 1024 * 1024,
            max_bytes: 1024 * 1024 * 1024,
            when_full: WhenFull::RefuseNew,
            max_unsynced_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Segments that the room must do for: one being written, one in reserve, one to be given up, one being made.
const LEAST_SEGMENTS: u64 = 4;

impl Options {
    pub(super) fn check(&self) -> Result<(), SpoolError> {
        let smallest = HEADER_BYTES + frame_bytes(HEAD_BYTES);
        if self.segment_bytes < smallest || self.segment_bytes > MAX_SEGMENT_BYTES {
            return Err(SpoolError::Options("segment_bytes must be between 2 KiB and 64 MiB"));
        }
        if self.max_bytes / self.segment_bytes < LEAST_SEGMENTS {
            return Err(SpoolError::Options("max_bytes must do for four segments of segment_bytes"));
        }
        Ok(())
    }

    /// Bytes of the largest frame that a segment has room for.
    pub(super) fn max_frame_bytes(&self) -> u64 {
        self.segment_bytes - HEADER_BYTES
    }
}
