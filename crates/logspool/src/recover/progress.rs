//! Progress of each sink of a dead process. It starts with the sink's checkpoint and grows during the delivery.

use logspool_lanes::segment::layout::MAX_SINKS;

use super::damage::Damage;
use super::image::{Checkpoint, Image, Numbering};
use super::spilled::Spilled;
use super::walk::{REST, WalkPlan};

/// The checkpoints of all sinks, by slot.
#[derive(Debug, Clone)]
pub struct SinkCheckpoints {
    checkpoints: Vec<Checkpoint>,
}

impl SinkCheckpoints {
    /// Reads the checkpoints that the dead process left, and counts their damage.
    pub fn of(image: &Image, plan: &WalkPlan, spilled: &Spilled) -> (Self, Damage) {
        let mut damage = Damage::default();
        let checkpoints = (0..MAX_SINKS).map(|id| {
            let mut checkpoint = image.checkpoint(id);
            if checkpoint.batch > plan.last_batch() {
                // No writer stored this value, so no record counts as written. Delivering records twice is better than
                // losing them.
                damage.bytes += size_of::<u64>() as u64;
                checkpoint.batch = 0;
                checkpoint.writing = 0;
                checkpoint.numbering = None;
            }
            if !checkpoint.closed {
                damage.add(spilled.missing(id, checkpoint.batch, checkpoint.overflowed));
            }
            checkpoint
        });
        (Self { checkpoints: checkpoints.collect() }, damage)
    }

    /// Whether a sink has no undelivered records.
    pub fn is_closed(&self, sink: usize) -> bool {
        self.checkpoints[sink].closed
    }

    /// Whether a sink lacks the records of a batch and must get them from the lanes.
    pub fn lacks(&self, sink: usize, batch: u64, spilled: &Spilled) -> bool {
        let checkpoint = &self.checkpoints[sink];
        !checkpoint.closed && batch > checkpoint.batch && (batch == REST || !spilled.holds(sink, batch))
    }

    /// Whether a sink lacks a batch whose chunk is in its overflow file or spool.
    pub fn lacks_spilled(&self, sink: usize, batch: u64) -> bool {
        !self.checkpoints[sink].closed && batch > self.checkpoints[sink].batch
    }

    /// Number of bytes of a batch's chunk that are already written.
    pub fn written(&self, sink: usize, batch: u64) -> u64 {
        let checkpoint = &self.checkpoints[sink];
        if checkpoint.writing == batch { checkpoint.offset } else { 0 }
    }

    /// Whether delivery of a batch to a sink has begun.
    pub fn is_begun(&self, sink: usize, batch: u64) -> bool {
        self.checkpoints[sink].writing == batch
    }

    /// Numbering of a sink's records, with the number of the last record that has arrived.
    pub fn numbering(&self, sink: usize) -> Option<Numbering> {
        self.checkpoints[sink].numbering
    }

    /// Notes that `offset` bytes of a batch's chunk are written.
    pub fn note_offset(&mut self, sink: usize, batch: u64, offset: u64) {
        let checkpoint = &mut self.checkpoints[sink];
        checkpoint.writing = batch;
        checkpoint.offset = offset;
    }

    /// Notes that a batch is completely written.
    pub fn note_batch(&mut self, sink: usize, batch: u64) {
        let checkpoint = &mut self.checkpoints[sink];
        checkpoint.batch = batch;
        checkpoint.writing = 0;
        checkpoint.offset = 0;
    }
}
