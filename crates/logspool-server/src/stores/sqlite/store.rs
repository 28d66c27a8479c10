//! The writer: one file at a time, a new one when the day changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::answers::SqliteAnswers;
use super::catalog::{Catalog, Entry};
use super::day_file::{DayFile, Stream, state_of};
use super::failure::{failed, is_damage};
use super::folder::{self, Day, Lock, needs_log};
use super::indexer::Indexer;
use super::recent::Recent;
use super::{Indexing, Options};
use crate::delivery::Delivery;
use crate::stores::leap::Leap;
use crate::stores::{Store, StoreError, Written};

/// The store's writer.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    options: Options,
    catalog: Catalog,
    file: DayFile,
    /// Whether the catalog has the file: else queries do not find it, and nothing is written to it yet.
    listed: bool,
    /// Whether the file was found damaged: another one takes its place.
    damaged: bool,
    /// A file that was not made whole, to be removed before anything is written.
    half_made: Option<PathBuf>,
    /// Files that are written no more, and not put away yet.
    unsealed: Vec<DayFile>,
    leap: Leap,
    recent: Recent,
    indexer: Option<Indexer>,
    /// The last field: the folder is let go of when all else is closed.
    _lock: Lock,
}

impl SqliteStore {
    /// Opens a folder to write, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// Fatal if another process writes to it, or a file in it is damaged, not ours, or of a newer version.
    pub fn open(folder: impl Into<PathBuf>, options: Options) -> Result<Self, StoreError> {
        let folder = folder.into();
        let lock = folder::lock(&folder, options.readers)?;
        let catalog = Catalog::open(&folder)?;
        let entries = reconcile(&folder, &catalog)?;
        folder::remove_lone_indexes(&folder)?;
        let today = Day::of(options.clock.now_ns());
        let (file, listed) = match entries.last() {
            Some(newest) if !newest.sealed => (DayFile::open(&folder, newest, day_of(newest, today))?, true),
            // Somebody took the newest file away: what is left of them is sealed, and knows the streams.
            Some(newest) => {
                let streams = DayFile::open(&folder, newest, today)?.streams(None)?;
                (create(&folder, today, newest.sequence, &streams, &mut None)?, false)
            }
            None => (create(&folder, today, 0, &[], &mut None)?, false),
        };
        let mut unsealed = Vec::new();
        for entry in entries.iter().filter(|entry| entry.sequence < file.sequence()) {
            if entry.sealed && !needs_log(&folder.join(&entry.name)) {
                continue;
            }
            match DayFile::open(&folder, entry, day_of(entry, today)) {
                Ok(file) => unsealed.push(file),
                Err(StoreError::Fatal(why)) => tracing::error!("{why}"),
                Err(error) => return Err(error),
            }
        }
        let recent = Recent::default();
        let indexer = match options.indexing {
            Indexing::Background => Some(Indexer::start(&folder, recent.clone())?),
            Indexing::Off => None,
        };
        let mut store = Self {
            folder,
            options,
            catalog,
            file,
            listed,
            damaged: false,
            half_made: None,
            unsealed,
            leap: Leap::default(),
            recent,
            indexer,
            _lock: lock,
        };
        store.settle()?;
        Ok(store)
    }

    /// What answers queries; it lives on its own.
    pub fn answers(&self) -> SqliteAnswers {
        SqliteAnswers::of(&self.folder, self.recent.clone())
    }

    /// Sees to it that the file is that of today, and that queries find it.
    fn settle(&mut self) -> Result<(), StoreError> {
        if let Some(path) = &self.half_made {
            folder::remove_database(path)?;
            self.half_made = None;
        }
        let now_ns = self.options.clock.now_ns();
        let passed = Day::of(now_ns).after(self.file.day);
        // A clock that is set back over midnight by a little changes nothing.
        if !(-1..=0).contains(&passed) || self.damaged {
            self.roll_over(now_ns)?;
        }
        if !self.listed {
            self.catalog.put(&self.file.entry())?;
            self.listed = true;
        }
        Ok(())
    }

    /// Changes to a new file. Once that is whole, the old one is never written to again, or what the new one knows of
    /// the streams would be out of date.
    fn roll_over(&mut self, now_ns: i64) -> Result<(), StoreError> {
        let today = Day::of(now_ns);
        // Where the clock was set, what it said before or says now is wrong.
        let is_next_day = today.after(self.file.day) == 1;
        let streams = self.file.streams(is_next_day.then_some(now_ns))?;
        let file = create(&self.folder, today, self.file.sequence(), &streams, &mut self.half_made)?;
        let old = std::mem::replace(&mut self.file, file);
        (self.listed, self.damaged) = (false, false);
        self.unsealed.push(old);
        Ok(())
    }

    /// Seals what is written no more, as far as that goes.
    fn seal(&mut self) -> Result<(), StoreError> {
        let mut result = Ok(());
        let catalog = &self.catalog;
        self.unsealed.retain_mut(|file| {
            match file.seal(catalog) {
                Ok(()) => !file.stand_alone(),
                // A damaged file stays as it is, and is told of when it is read.
                Err(StoreError::Fatal(why)) => {
                    tracing::error!("{why}");
                    false
                }
                Err(error) => {
                    result = Err(error);
                    true
                }
            }
        });
        result
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<Written, StoreError> {
        self.settle()?;
        // Nobody would forget them where there is no index.
        let recent = self.indexer.is_some().then_some(&self.recent);
        self.file.write(deliveries, self.options.clock.now_ns(), recent).map_err(|error| {
            let path = self.file.path();
            if is_damage(&error) {
                self.damaged = true;
                return StoreError::Retry(format!(
                    "cannot write to {}: {error}; what comes goes to a new file; `sqlite3 FILE .recover` gets out of \
                     the old one what can be read",
                    path.display()
                ));
            }
            failed("write to", path, &error)
        })
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        let (settled, sealed) = (self.settle(), self.seal());
        // Whatever they say: where the disk is full, this makes the room that they need.
        let today = Day::of(self.options.clock.now_ns());
        let removed = self.options.retention.apply(&self.folder, &self.catalog, today, &mut self.leap);
        self.unsealed.retain(|file| !folder::is_gone(file.path()));
        settled.and(sealed).and(removed)
    }

    fn close(mut self: Box<Self>) -> Result<(), StoreError> {
        self.indexer = None;
        self.seal()?;
        self.file.close()
    }
}

fn day_of(entry: &Entry, today: Day) -> Day {
    Day::in_name(&entry.name).unwrap_or(today)
}

/// Makes the next file under the first name of the day that is free. What is left of one that fails is removed, now or
/// later.
fn create(
    folder: &Path,
    day: Day,
    after: i64,
    streams: &[Stream],
    half_made: &mut Option<PathBuf>,
) -> Result<DayFile, StoreError> {
    let is_free = |name: &String| !folder.join(name).exists();
    let name = (1..).map(|nth| day.file_name(nth)).find(is_free).unwrap_or_default();
    let path = folder.join(&name);
    // An index of that name is of a file that is gone.
    folder::remove_database(&folder::index_of(&path))?;
    DayFile::create(folder, &name, day, after + 1, streams).inspect_err(|_| {
        *half_made = folder::remove_database(&path).err().map(|_| path);
    })
}

/// Brings catalog and folder together: what the files say of themselves counts. Returns the files, oldest first.
fn reconcile(folder: &Path, catalog: &Catalog) -> Result<Vec<Entry>, StoreError> {
    let known = catalog.entries()?;
    let names = folder::day_files(folder)?;
    for entry in known.iter().filter(|entry| !names.contains(&entry.name)) {
        tracing::warn!("{} is gone from {}, with {} records", entry.name, folder.display(), entry.rows);
        catalog.remove(entry.sequence)?;
    }
    let newest = known.last().map(|entry| entry.name.clone());
    for name in names {
        if known.iter().any(|entry| entry.name == name && entry.sealed) {
            continue;
        }
        match state_of(folder, &name) {
            Ok(Some(state)) if state.ready => {
                let range = state.entry.range.filter(|_| state.entry.sealed);
                catalog.put(&Entry { range, ..state.entry })?;
            }
            // The process ended while it was made: nothing was written to it.
            Ok(_) => folder::remove_day(&folder.join(&name))?,
            // Another one has taken its place.
            Err(StoreError::Fatal(why)) if newest.as_ref().is_some_and(|newest| *newest != name) => {
                tracing::error!("{why}");
            }
            Err(error) => return Err(error),
        }
    }
    catalog.entries()
}
