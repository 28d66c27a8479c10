//! The position of a consumer, and the items that it reads.

use super::frame::FrameKey;

/// How far one consumer has read and acked.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    /// The first number that it has not acked.
    pub(super) position: u64,
    /// The first number that it has not read.
    pub(super) cursor: u64,
    /// Segment and offset of the frame at the cursor, if known.
    pub(super) hint: Option<(FrameKey, u64)>,
    pub(super) failed_reads: u32,
}

impl Consumer {
    pub(super) fn at(position: u64) -> Self {
        Self { position, cursor: position, hint: None, failed_reads: 0 }
    }
}

/// A batch as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Number of the first record. It is below the consumer's position if the consumer acked a part of the batch.
    pub first: u64,
    /// Number of records.
    pub count: u32,
    /// Encoding of the payload.
    pub codec: u8,
    /// The encoded records.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The number after the last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// Why numbers have no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// They were never appended.
    Skipped,
    /// They were dropped to make room.
    Dropped,
    /// They were appended and then lost: to a crash before their sync, to damage, or with a missing file.
    Lost,
}

/// The next item for a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Records.
    Frame(Frame),
    /// Numbers without records; the consumer acks them like records.
    Gap {
        /// The first missing number.
        from: u64,
        /// The number after the last missing one.
        to: u64,
        /// Why they are missing.
        reason: GapReason,
    },
}
