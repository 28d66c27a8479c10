//! Everything that is known of an orphan's segment and overflow files, read once.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use logspool_sys::folder::Folder;

use super::image::{Illegible, Image};
use super::leftover::Leftover;
use super::orphan::{Pending, Place};
use super::progress::Progress;
use super::spilled::Spilled;
use super::survey::{self, Survey};
use super::walk::Plan;

/// Name of the sink that keeps nothing.
const NULL_SINK: &str = "null";

/// See the file head.
#[derive(Debug)]
pub struct Decoded {
    /// The segment.
    pub image: Image,
    /// Its batches, and what was never batched.
    pub plan: Plan,
    /// The overflow files.
    pub spilled: Spilled,
    /// How far each sink came.
    pub progress: Progress,
    /// What is undelivered, and what cannot be read.
    pub survey: Survey,
}

impl Decoded {
    /// Reads an orphan.
    ///
    /// # Errors
    ///
    /// See [`Illegible`].
    pub fn read(folder: &Folder, leftover: &Leftover, segment: &File) -> Result<Self, Illegible> {
        let image = Image::copy(segment)?;
        let spilled = Spilled::index(folder, leftover).map_err(|error| Illegible::Broken(error.to_string()))?;
        let plan = Plan::of(&image);
        let (progress, damage) = Progress::of(&image, &plan, &spilled);
        let mut survey = survey::count(&image, &plan, &spilled, &progress);
        survey.damage.add(damage);
        Ok(Self { image, plan, spilled, progress, survey })
    }

    /// Reads again how far each sink came.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn refresh(&mut self, segment: &File) -> io::Result<()> {
        self.image.refresh_sinks(segment)?;
        // What is wrong with them was counted at the first look.
        (self.progress, _) = Progress::of(&self.image, &self.plan, &self.spilled);
        Ok(())
    }

    /// The undelivered records by where they go. A null sink wants none.
    pub fn pending(&self) -> Vec<Pending> {
        let entries = self.survey.pending.iter().filter_map(|(&sink, &records)| {
            let place = match self.image.sink(sink) {
                Some((Some(path), _)) => Place::File(PathBuf::from(path)),
                Some((None, name)) if name == NULL_SINK => return None,
                Some((None, name)) => Place::Gone(name),
                None => Place::Unknown,
            };
            Some(Pending { place, records, sink })
        });
        entries.collect()
    }
}
