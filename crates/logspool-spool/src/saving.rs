//! Makes acks durable, and frees the segments whose records are all acked.

use super::disk::Disk;
use super::error::SpoolError;
use super::spool::Spool;

impl<D: Disk> Spool<D> {
    /// Makes the positions of all consumers durable and frees the segments that no consumer needs.
    ///
    /// # Errors
    ///
    /// No folder takes the checkpoint. The acks since the last checkpoint are lost if the process ends.
    pub fn checkpoint(&mut self) -> Result<(), SpoolError> {
        let is_saved = self.saved.as_ref().is_some_and(|saved| {
            let positions = self.consumers.iter().map(|(id, consumer)| (*id, consumer.position));
            (saved.dropped_end, saved.durable) == (self.state.dropped_end, self.durable())
                && saved.positions.iter().map(|(a, b)| (*a, *b)).eq(positions)
        });
        if super::defect::Defect::RecycleBeforeCheckpoint.is_planted() {
            self.free_acked_segments();
        }
        if !is_saved {
            self.save()?;
        }
        // Acked frames need not be written to another file.
        while !self.is_writing && self.unsynced.front().is_some_and(|frame| frame.head.end() <= self.saved_floor) {
            if let Some(frame) = self.unsynced.pop_front() {
                self.unsynced_bytes -= frame.len();
            }
        }
        if !self.is_writing && self.unsynced.is_empty() {
            self.free_copied_segments();
        }
        self.free_acked_segments();
        Ok(())
    }

    /// Stores the present state in a checkpoint.
    pub(super) fn save(&mut self) -> Result<(), SpoolError> {
        // Increases the generation even after a failed save: no two states may have the same generation.
        self.state.generation += 1;
        self.state.durable = self.durable();
        self.state.positions = self.consumers.iter().map(|(id, consumer)| (*id, consumer.position)).collect();
        let mut stored = self.keeper.store(&self.disks, &self.state);
        if stored.as_ref().is_err_and(|error| error.is_full())
            && let Some(before) = &self.inherited
        {
            // Selects the other slot, so that the valid slot stays unchanged until the new one is durable.
            self.state.generation += u64::from(self.state.generation % 2 == before.generation % 2);
            stored = self.keeper.store_in_place(&self.disks, before, &self.state);
        }
        if stored.as_ref().is_err_and(|error| error.is_full()) && self.remove_spare() {
            stored = self.keeper.store(&self.disks, &self.state);
        }
        if let Err(error) = stored {
            self.note_error(&error);
            return Err(error.into());
        }
        self.inherited = None;
        self.saved_floor = self.floor();
        self.saved = Some(self.state.clone());
        Ok(())
    }
}
