//! The writer. It writes to one file at a time, and creates a new file when the day changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalog::{Catalog, CatalogEntry};
use super::damage::DamageNotes;
use super::day_file::{DayFile, StoredStream, newest_streams, records_of};
use super::failure::{failed, is_damage};
use super::folder::{self, Day, FolderLock, needs_log};
use super::indexer::Indexer;
use super::reader::SqliteReader;
use super::recent::RecentTraces;
use super::reconcile::FolderState;
use super::{Indexing, SqliteOptions};
use crate::delivery::Delivery;
use crate::stores::clock_jump::ClockJump;
use crate::stores::{GapCounts, Store, StoreError, WriteResult};

/// The store's writer.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    options: SqliteOptions,
    catalog: Catalog,
    file: DayFile,
    /// True if the catalog lists the file. Until then queries cannot find the file, and no records are written to it.
    listed: bool,
    /// True if the file is damaged or was moved. A new file then replaces it.
    damaged: bool,
    /// A file whose creation failed. It is removed before any records are written.
    incomplete_file: Option<PathBuf>,
    /// The files that are no longer written but not sealed yet, or whose log is not copied into them yet.
    unsealed: Vec<DayFile>,
    leap: ClockJump,
    recent: RecentTraces,
    damages: DamageNotes,
    /// Missing records of streams that were not taken into the current file, since the last call of `gap_counts`.
    expired: u64,
    indexer: Option<Indexer>,
    /// The last field, so that the lock is released after everything else is closed.
    _lock: FolderLock,
}

impl SqliteStore {
    /// Opens a folder for writing, and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Fatal`] if another process writes to the folder, the folder belongs to another user, or its newest
    /// file has a newer version. Other unusable files are skipped, and [`Store::problems`] reports them.
    pub fn open(folder: impl Into<PathBuf>, options: SqliteOptions) -> Result<Self, StoreError> {
        let folder = folder.into();
        let lock = folder::lock(&folder, options.readers)?;
        let catalog = Catalog::open(&folder)?;
        let damages = DamageNotes::default();
        let now_ns = options.clock.now_ns();
        let entries = FolderState { folder: &folder, catalog: &catalog, damages: &damages, now_ns }.reconcile()?;
        folder::remove_lone_indexes(&folder)?;
        let today = Day::of(now_ns);
        let newest = entries.last().filter(|newest| !newest.sealed && !damages.has(&newest.name));
        let (file, listed) = match newest {
            Some(newest) => (DayFile::open_newest(&folder, newest, day_of(newest, today))?, true),
            // There is no file to continue: the newest file is sealed, damaged or missing. Take the streams from the
            // newest readable file.
            None => {
                let streams = newest_streams(&folder, &entries, &damages)?;
                let after = entries.last().map_or(0, |newest| newest.sequence);
                (create(&folder, today, after, &streams, &mut None)?, false)
            }
        };
        let mut unsealed = Vec::new();
        for entry in entries.iter().filter(|entry| entry.sequence < file.sequence()) {
            if damages.has(&entry.name) || (entry.sealed && !needs_log(&folder.join(&entry.name))) {
                continue;
            }
            match DayFile::open(&folder, entry, day_of(entry, today)) {
                Ok(file) => unsealed.push(file),
                Err(StoreError::Fatal(why)) => damages.note(&folder, &entry.name, &why),
                Err(error) => return Err(error),
            }
        }
        let recent = RecentTraces::default();
        let indexer = match options.indexing {
            Indexing::Background => Some(Indexer::start(&folder, recent.clone(), damages.clone())?),
            Indexing::Off => None,
        };
        let mut store = Self {
            folder,
            options,
            catalog,
            file,
            listed,
            damaged: false,
            incomplete_file: None,
            unsealed,
            leap: ClockJump::default(),
            recent,
            damages,
            expired: 0,
            indexer,
            _lock: lock,
        };
        store.ensure_current_file()?;
        Ok(store)
    }

    /// Returns a reader for queries. The reader may be used after the store is closed.
    pub fn reader(&self) -> SqliteReader {
        SqliteReader::of(&self.folder, self.recent.clone(), self.damages.clone())
    }

    /// Ensures that the current file is today's file, and that queries can find it.
    fn ensure_current_file(&mut self) -> Result<(), StoreError> {
        if let Some(path) = &self.incomplete_file {
            folder::remove_database(path)?;
            self.incomplete_file = None;
        }
        let now_ns = self.options.clock.now_ns();
        let passed = Day::of(now_ns).after(self.file.day);
        if self.file.is_moved() {
            let path = self.file.path().display();
            tracing::warn!("{path} was moved or removed while it was in use; new records go to a new file");
            self.damaged = true;
        }
        // A query may have found the file damaged.
        self.damaged |= self.damages.has(self.file.name());
        // If the clock is set back to the day before, for example by a second after midnight, the file stays the same.
        if !(-1..=0).contains(&passed) || self.damaged {
            self.roll_over(now_ns)?;
        }
        if !self.listed {
            self.catalog.put(&self.file.entry())?;
            self.listed = true;
        }
        Ok(())
    }

    /// Switches to a new file. After the new file is committed, no records are written to the old file, because they
    /// would make the marks in the new file outdated.
    fn roll_over(&mut self, now_ns: i64) -> Result<(), StoreError> {
        let today = Day::of(now_ns);
        // If the new day is not the next day, the clock may have been set. Then either its earlier or its current time
        // is wrong.
        let is_next_day = today.after(self.file.day) == 1;
        let streams = match self.file.streams(is_next_day.then_some(now_ns)) {
            Err(StoreError::Fatal(why)) => {
                self.damages.note(&self.folder, self.file.name(), &why);
                newest_streams(&self.folder, &self.catalog.entries()?, &self.damages)?
            }
            streams => streams?,
        };
        let file = create(&self.folder, today, self.file.sequence(), &streams, &mut self.incomplete_file)?;
        let kept = records_of(streams.iter().filter_map(StoredStream::gaps));
        self.expired += self.file.open_gaps().map_or(0, |open| open.saturating_sub(kept));
        let old = std::mem::replace(&mut self.file, file);
        (self.listed, self.damaged) = (false, false);
        self.unsealed.push(old);
        Ok(())
    }

    /// Seals files that are no longer written, if possible.
    fn seal(&mut self) -> Result<(), StoreError> {
        let mut result = Ok(());
        let Self { folder, catalog, damages, options, unsealed, .. } = self;
        let known = FolderState { folder, catalog, damages, now_ns: options.clock.now_ns() };
        let names: Vec<_> = unsealed.iter().map(|file| file.name().to_owned()).collect();
        unsealed.retain_mut(|file| {
            let sealed = match file.seal(known.catalog) {
                // A damaged file is not changed, only marked in the catalog.
                Err(StoreError::Fatal(why)) => known.mark_unusable(&file.entry(), &why).map(|()| true),
                sealed => sealed.map(|()| file.checkpoint_log()),
            };
            match sealed {
                Ok(is_done) => !is_done,
                Err(error) => {
                    result = Err(error);
                    true
                }
            }
        });
        names.iter().for_each(|name| damages.refresh(folder, name));
        result
    }

    /// Checks again the files that could not be used.
    fn recheck(&self) -> Result<(), StoreError> {
        let is_open = |name: &str| self.file.name() == name || self.unsealed.iter().any(|file| file.name() == name);
        let Self { folder, catalog, damages, options, .. } = self;
        FolderState { folder, catalog, damages, now_ns: options.clock.now_ns() }.recheck(is_open)
    }
}

impl Store for SqliteStore {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
        self.ensure_current_file()?;
        // Without an indexer no code would remove records from `recent`.
        let recent = self.indexer.is_some().then_some(&self.recent);
        self.file.write(deliveries, self.options.clock.now_ns(), recent).map_err(|error| {
            let failure = failed("write to", self.file.path(), &error);
            if is_damage(&error) {
                self.damaged = true;
                self.damages.note(&self.folder, self.file.name(), &failure.to_string());
                return StoreError::Retry(format!("{failure}; new records go to a new file"));
            }
            failure
        })
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        let (settled, sealed) = (self.ensure_current_file(), self.seal());
        // Remove old records even if those two steps failed: on a full disk, removal frees the space that they need.
        let today = Day::of(self.options.clock.now_ns());
        let removed = self.options.retention.apply(&self.folder, &self.catalog, today, &mut self.leap);
        self.unsealed.retain(|file| !folder::is_gone(file.path()));
        settled.and(sealed).and(removed).and(self.recheck())
    }

    fn gap_counts(&mut self) -> Option<GapCounts> {
        let open = self.file.open_gaps().ok()?;
        Some(GapCounts { open, expired: std::mem::take(&mut self.expired) })
    }

    fn problems(&self) -> Vec<String> {
        self.damages.messages()
    }

    fn close(mut self: Box<Self>) -> Result<(), StoreError> {
        self.indexer = None;
        self.seal()?;
        self.file.close()
    }
}

fn day_of(entry: &CatalogEntry, today: Day) -> Day {
    Day::in_name(&entry.name).unwrap_or(today)
}

/// Creates the next file under the first free name of the day. If that fails, the partial file is removed. If the
/// removal fails too, `half_made` gets the path, for a later removal.
fn create(
    folder: &Path,
    day: Day,
    after: i64,
    streams: &[StoredStream],
    half_made: &mut Option<PathBuf>,
) -> Result<DayFile, StoreError> {
    let is_free = |name: &String| folder::is_free(&folder.join(name));
    let name = (1..).map(|nth| day.file_name(nth)).find(is_free).unwrap_or_default();
    let path = folder.join(&name);
    // If an index with that name exists, it belongs to a file that was removed.
    folder::remove_database(&folder::index_of(&path))?;
    DayFile::create(folder, &name, day, after + 1, streams).inspect_err(|_| {
        *half_made = folder::remove_database(&path).err().map(|_| path);
    })
}
