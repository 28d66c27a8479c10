//! Options of a spool.

use super::error::SpoolError;
use super::frame::{HEAD_BYTES, frame_bytes};
use super::spool_segment::{HEADER_BYTES, MAX_SEGMENT_BYTES};

/// What to do with a batch when the spool has reached `max_bytes` or the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Refuse the batch. The caller keeps it and tries again later, or drops and counts it.
    #[default]
    RefuseNew,
    /// Drop the oldest segment and count its records. Consumers get the missing numbers as a gap.
    DropOldest,
}

/// Sizes and policy of a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Size of a new segment file in bytes.
    pub segment_bytes: u64,
    /// Maximum number of bytes of all segment files together, including spare files.
    pub max_bytes: u64,
    /// What happens when `max_bytes` is reached or the disk is full.
    pub when_full: WhenFull,
    /// Maximum number of bytes of frames kept in memory until they are durable. An append that would exceed it syncs
    /// first.
    pub max_unsynced_bytes: u64,
}

impl Default for Options {
    /// Chosen: filling a segment of 16 MiB with zeros takes about 20 ms, and the segment holds ten seconds of a busy
    /// program. 1 GiB for all segments is enough for a sink that is unreachable for some minutes at full speed. 4 MiB
    /// in memory hold the records of one second at full speed.
    fn default() -> Self {
        Self {
            segment_bytes: 16 * 1024 * 1024,
            max_bytes: 1024 * 1024 * 1024,
            when_full: WhenFull::RefuseNew,
            max_unsynced_bytes: 4 * 1024 * 1024,
        }
    }
}

/// Minimum number of segments that `max_bytes` must allow: one being written, one in reserve, one to be dropped, one
/// being made.
const MIN_SEGMENTS: u64 = 4;

impl Options {
    pub(super) fn check(&self) -> Result<(), SpoolError> {
        let smallest = HEADER_BYTES + frame_bytes(HEAD_BYTES);
        if self.segment_bytes < smallest || self.segment_bytes > MAX_SEGMENT_BYTES {
            return Err(SpoolError::Options("segment_bytes must be between 2 KiB and 64 MiB"));
        }
        if self.max_bytes / self.segment_bytes < MIN_SEGMENTS {
            return Err(SpoolError::Options("max_bytes must do for four segments of segment_bytes"));
        }
        Ok(())
    }

    /// Maximum size in bytes of a frame that fits into a segment.
    pub(super) fn max_frame_bytes(&self) -> u64 {
        self.segment_bytes - HEADER_BYTES
    }
}
