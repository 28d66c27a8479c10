//! Answers queries from the files of a folder, with or without a service that writes to them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::catalog::{Catalog, Entry};
use super::counts::{Counting, Counts, Memory};
use super::damage::Damages;
use super::folder::bytes_of_day;
use super::merge::Merge;
use super::plan::CountKey;
use super::read_file::ReadFile;
use super::recent::Recent;
use crate::cancel::{Cancel, Until};
use crate::query::{Query, Stage, plan};
use crate::stores::{Answer, Answers, Found, Next, Progress, StoreError};

/// Time limit of a query. Chosen: longer than any query that an index answers, shorter than a person waits. While a
/// query runs, SQLite cannot truncate its write-ahead log.
const DEADLINE: Duration = Duration::from_secs(30);

/// Answers queries, from any thread.
#[derive(Debug, Clone)]
pub struct SqliteAnswers {
    folder: PathBuf,
    /// Traces of the newest records, if the writer is in this process.
    recent: Recent,
    /// Damage that queries find, shared with the writer.
    damages: Damages,
    deadline: Duration,
    counted: Memory,
}

/// Size and contents of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqliteStats {
    /// Number of day files.
    pub files: u64,
    /// Bytes on disk, including indexes.
    pub bytes: u64,
    /// Number of records.
    pub rows: u64,
    /// The newest time of a record, in nanoseconds since 1970.
    pub newest_time_ns: Option<i64>,
    /// Records of the current file that are not indexed yet.
    pub unindexed_rows: u64,
}

impl SqliteAnswers {
    /// Opens a folder for queries.
    ///
    /// # Errors
    ///
    /// The folder is not a folder of this store.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        Catalog::open_read(&folder)?;
        Ok(Self::of(&folder, Recent::default(), Damages::default()))
    }

    pub(super) fn of(folder: &Path, recent: Recent, damages: Damages) -> Self {
        let counted = Memory::default();
        Self { folder: folder.to_owned(), recent, damages, deadline: DEADLINE, counted }
    }

    /// Sets the time after which a query ends with an error; the default is 30 seconds.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Size and contents of the store now.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn stats(&self) -> Result<SqliteStats, StoreError> {
        let mut stats = SqliteStats::default();
        let until = Until::new(self.deadline, &Cancel::default());
        for mut entry in Catalog::open_read(&self.folder)?.entries()? {
            if !entry.sealed {
                let Some(file) = ReadFile::open(&self.folder, &entry, &until)? else {
                    continue;
                };
                // Ids start at 1 and no record is removed, so ids count records.
                let indexed = file.indexed_to.unwrap_or_default();
                stats.unindexed_rows += file.entry.rows.saturating_sub(indexed).unsigned_abs();
                entry = file.entry;
            }
            stats.files += 1;
            stats.bytes += bytes_of_day(&self.folder.join(&entry.name));
            stats.rows += entry.rows.unsigned_abs();
            stats.newest_time_ns = stats.newest_time_ns.max(entry.range.map(|(_, newest)| newest));
        }
        Ok(stats)
    }

    /// Files that may have records of the query.
    fn files(&self, query: &Query) -> Result<Vec<Entry>, StoreError> {
        let since = query.since_ns.unwrap_or(i64::MIN);
        let mut entries = Catalog::open_read(&self.folder)?.entries()?;
        entries.retain(|entry| entry.overlaps(since, query.until_ns));
        Ok(entries)
    }
}

impl Answers for SqliteAnswers {
    fn ask(&self, query: &Query, cancel: &Cancel) -> Result<Box<dyn Answer>, StoreError> {
        let until = Until::new(self.deadline, cancel);
        let (since, until_ns) = plan::bounds(&query.filter);
        let until_ns = query.until_ns.into_iter().chain(until_ns).min();
        let query = Query { since_ns: query.since_ns.max(since), until_ns, ..query.clone() };
        let files = self.files(&query)?;
        let names = files.iter().map(|entry| entry.name.clone()).collect();
        let noting = Noting { folder: self.folder.clone(), damages: self.damages.clone(), names };
        let answer = self.answer_from(files, query, until).map_err(|error| noting.note(error))?;
        Ok(Box::new(Noted { answer, noting }))
    }
}

/// Notes damage that an answer finds.
struct Noting {
    folder: PathBuf,
    damages: Damages,
    /// The files that the answer may read.
    names: Vec<String>,
}

impl Noting {
    fn note(&self, error: StoreError) -> StoreError {
        let why = error.to_string();
        // The message names the file.
        if let StoreError::Fatal(_) = error
            && let Some(name) = self.names.iter().find(|name| why.contains(name.as_str()))
        {
            self.damages.note(&self.folder, name, &why);
        }
        error
    }
}

/// An answer whose errors are checked for damage.
struct Noted {
    answer: Box<dyn Answer>,
    noting: Noting,
}

impl Answer for Noted {
    fn go_on(&mut self, each: &mut dyn FnMut(Found<'_>) -> Next) -> Result<Progress, StoreError> {
        self.answer.go_on(each).map_err(|error| self.noting.note(error))
    }
}

impl SqliteAnswers {
    fn answer_from(&self, files: Vec<Entry>, query: Query, until: Until) -> Result<Box<dyn Answer>, StoreError> {
        let limit = query.limit.unwrap_or(u64::MAX);
        let mut memory = self.counted.part();
        let counting = Counting { folder: &self.folder, query: &query, until: &until };
        Ok(match &query.stage {
            None => Box::new(Merge::new(&self.folder, &self.recent, files, query, until)),
            Some(Stage::CountBy(field)) => {
                let counts = counting.run::<Option<String>>(&files, CountKey::Value(field), &mut memory)?;
                Box::new(Counts::of_values(counts, limit, memory))
            }
            Some(Stage::Histogram { interval_ns }) => {
                let interval_ns = (*interval_ns).max(1);
                let counts = counting.run::<i64>(&files, CountKey::Interval(interval_ns), &mut memory)?;
                Box::new(Counts::of_intervals(counts, interval_ns, limit, memory))
            }
        })
    }
}
