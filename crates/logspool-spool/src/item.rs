//! The position of a consumer, and the items that it reads.

use super::frame::FrameKey;

/// How far one consumer has read and acked.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    /// The first number that the consumer has not acked.
    pub(super) position: u64,
    /// The first number that the consumer has not read.
    pub(super) cursor: u64,
    /// The key of the segment with the frame at the cursor, and the frame's offset; `None` if they are not known.
    pub(super) hint: Option<(FrameKey, u64)>,
    pub(super) failed_reads: u32,
}

impl Consumer {
    pub(super) fn at(position: u64) -> Self {
        Self { position, cursor: position, hint: None, failed_reads: 0 }
    }
}

/// A batch, as the caller appended it.
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
    /// The numbers were never appended.
    Skipped,
    /// The records were dropped to make room.
    Dropped,
    /// The records were appended and then lost: to a crash before their sync, to damage, or with a missing file.
    Lost,
}

/// The next item for a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A batch of records.
    Frame(Frame),
    /// Numbers without records; the consumer acks them like records.
    Gap {
        /// The first missing number.
        from: u64,
        /// The number after the last missing one.
        to: u64,
        /// Why the records are missing.
        reason: GapReason,
    },
}
