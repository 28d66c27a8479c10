//! All data of an orphan's segment and overflow files that the recovery needs. It is read once.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use logspool_sys::folder::Folder;

use super::image::{Image, UnreadableSegment};
use super::leftover::Leftover;
use super::pending::{PendingPlace, PendingRecords};
use super::progress::SinkCheckpoints;
use super::spilled::Spilled;
use super::survey::{self, Survey};
use super::walk::WalkPlan;

/// Name of the sink that discards its records.
const NULL_SINK: &str = "null";

/// The decoded files of one orphan.
#[derive(Debug)]
pub struct Decoded {
    /// Copy of the segment.
    pub image: Image,
    /// Batches of the segment, and the records that were never batched.
    pub plan: WalkPlan,
    /// Index of the overflow files and spools.
    pub spilled: Spilled,
    /// Checkpoint of each sink.
    pub progress: SinkCheckpoints,
    /// Counts of undelivered and of unreadable records.
    pub survey: Survey,
}

impl Decoded {
    /// Reads the files of an orphan.
    ///
    /// # Errors
    ///
    /// Returns the reason if no part of the segment can be read.
    pub fn read(folder: &Folder, leftover: &Leftover, segment: &File) -> Result<Self, UnreadableSegment> {
        let image = Image::copy(segment)?;
        let spilled = Spilled::index(folder, leftover).map_err(|error| UnreadableSegment::Broken(error.to_string()))?;
        let plan = WalkPlan::of(&image);
        let (progress, damage) = SinkCheckpoints::of(&image, &plan, &spilled);
        let mut survey = survey::count(&image, &plan, &spilled, &progress);
        survey.damage.add(damage);
        Ok(Self { image, plan, spilled, progress, survey })
    }

    /// Reads the checkpoints of all sinks again.
    ///
    /// # Errors
    ///
    /// Returns an error if a system call fails.
    pub fn refresh(&mut self, segment: &File) -> io::Result<()> {
        self.image.refresh_sinks(segment)?;
        // Ignore the damage of the checkpoints: the first read has counted it.
        (self.progress, _) = SinkCheckpoints::of(&self.image, &self.plan, &self.spilled);
        Ok(())
    }

    /// Returns the undelivered records by destination. A null sink has none.
    pub fn pending(&self) -> Vec<PendingRecords> {
        let entries = self.survey.pending.iter().filter_map(|(&sink, &records)| {
            let place = match self.image.sink(sink) {
                Some((Some(path), _)) => PendingPlace::File(PathBuf::from(path)),
                Some((None, name)) if name == NULL_SINK => return None,
                Some((None, name)) => PendingPlace::Gone(name),
                None => PendingPlace::Unknown,
            };
            Some(PendingRecords { place, records, sink })
        });
        entries.collect()
    }
}
