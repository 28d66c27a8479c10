//! Counters and sizes of a spool, for operators.

use super::disk::Disk;
use super::error::SpoolError;
use super::item::Frame;
use super::spool::Spool;

/// Counters and sizes at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolStats {
    /// Number of bytes of all segment files.
    pub bytes: u64,
    /// Number of segments with frames, including the segment being written.
    pub segments: usize,
    /// The number after the last record.
    pub next: u64,
    /// Every record below this number is durable, delivered, or counted as lost or dropped.
    pub durable: u64,
    /// Number of bytes of frames that are not durable yet.
    pub unsynced_bytes: u64,
    /// Number of records that are missing for the consumer with the lowest position. Each consumer gets them as a gap.
    /// After all consumers have acked the gap, its records are no longer counted.
    pub lost_records: u64,
    /// Number of records dropped to make room, since the stream began.
    pub dropped_records: u64,
    /// Number of damaged places found in this life of the spool. Copies are in `quarantine/`.
    pub quarantined_frames: u64,
    /// Number of batches that a sink refused permanently in this life. Copies are in `dead/`.
    pub dead_frames: u64,
    /// Number of failed syncs of segments in this life. Each one made a file unusable; no record was lost.
    pub failed_syncs: u64,
    /// Number of disk calls that failed in this life.
    pub disk_errors: u64,
    /// Whether records wait in memory because no folder takes a new segment.
    pub is_degraded: bool,
    /// The newest error, with its path.
    pub last_error: Option<String>,
}

impl<D: Disk> Spool<D> {
    /// Counters and sizes.
    pub fn stats(&self) -> SpoolStats {
        SpoolStats {
            bytes: self.bytes(),
            segments: self.segments.len(),
            next: self.next,
            durable: self.durable(),
            unsynced_bytes: self.unsynced_bytes,
            lost_records: self.lost_records(),
            dropped_records: self.state.dropped_records,
            quarantined_frames: self.undeliverable.quarantined_frames,
            dead_frames: self.undeliverable.dead_frames,
            failed_syncs: self.failed_syncs,
            disk_errors: self.disk_errors,
            is_degraded: !self.is_writing && !self.unsynced.is_empty(),
            last_error: self.last_error.clone(),
        }
    }

    /// Drops a batch that the consumer's sink refuses permanently: stores a copy in `dead/` and acks the batch. Other
    /// consumers are not affected.
    ///
    /// # Errors
    ///
    /// No consumer has this id. If the copy cannot be made, the failure is only counted in the statistics.
    pub fn reject(&mut self, consumer: u64, frame: &Frame) -> Result<(), SpoolError> {
        self.ack(consumer, frame.end())?;
        if let Err(error) = self.undeliverable.copy_refused(&self.disks[0], consumer, frame) {
            self.note_error(&error);
        }
        Ok(())
    }
}
