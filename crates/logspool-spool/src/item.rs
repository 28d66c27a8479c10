//! The position of one reader, and what a reader is given.

use super::frame::Key;

/// How far one reader has come.
#[derive(Debug, Clone)]
pub(super) struct Consumer {
    /// The first number that it has not acked.
    pub(super) position: u64,
    /// The first number that it was not given.
    pub(super) cursor: u64,
    /// Segment and offset of the frame that begins at the cursor, where they are known.
    pub(super) hint: Option<(Key, u64)>,
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
    /// Number of the first record. Below what the consumer has acked when it acked a part of the batch.
    pub first: u64,
    /// Records.
    pub count: u32,
    /// What the payload is.
    pub codec: u8,
    /// The bytes.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The number behind the last record.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }
}

/// Why numbers have no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapReason {
    /// They were never appended.
    Skipped,
    /// They were given up to make room.
    Dropped,
    /// They were appended, and a crash before their sync, damage or a missing file took them.
    Lost,
}

/// What comes next for a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Records.
    Frame(Frame),
    /// Numbers without records; to be acked like records.
    Gap {
        /// The first of them.
        from: u64,
        /// The number behind the last.
        to: u64,
        /// Why.
        reason: GapReason,
    },
}
