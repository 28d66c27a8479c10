//! Answers queries from the files of a folder, with or without a service that writes to them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::catalog::{Catalog, CatalogEntry};
use super::counts::{CountQuery, Counts};
use super::damage::DamageNotes;
use super::folder::{Day, bytes_of_day};
use super::last;
use super::merge::FileMerge;
use super::plan::CountKey;
use super::read_file::ReadFile;
use super::recent::RecentTraces;
use crate::cancel::{CancelToken, QueryDeadline};
use crate::query::{Query, Stage, plan};
use crate::query_memory::CountMemory;
use crate::stores::{AnswerProgress, AnswerRow, QueryAnswer, QueryReader, RowFlow, StoreError};

/// Time limit of a query. Chosen: it is longer than any query that an index answers, and shorter than a person is
/// willing to wait. With a larger value the write-ahead log could grow more, because SQLite cannot truncate it while a
/// query runs.
const DEADLINE: Duration = Duration::from_secs(30);

/// Answers queries, from any thread.
#[derive(Debug, Clone)]
pub struct SqliteReader {
    folder: PathBuf,
    /// The traces of the newest records. Empty if the writer is not in this process.
    recent: RecentTraces,
    /// The noted damage, shared with the writer. Queries add damage that they find.
    damages: DamageNotes,
    deadline: Duration,
    counted: CountMemory,
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
    /// The latest time of all records, in nanoseconds since 1970.
    pub newest_time_ns: Option<i64>,
    /// Records of the current file that are not indexed yet.
    pub unindexed_rows: u64,
}

impl SqliteReader {
    /// Opens a folder for queries.
    ///
    /// # Errors
    ///
    /// The catalog in the folder does not exist or cannot be read.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        Catalog::open_read(&folder)?;
        Ok(Self::of(&folder, RecentTraces::default(), DamageNotes::default()))
    }

    pub(super) fn of(folder: &Path, recent: RecentTraces, damages: DamageNotes) -> Self {
        let counted = CountMemory::default();
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
        let until = QueryDeadline::new(self.deadline, &CancelToken::default());
        for mut entry in Catalog::open_read(&self.folder)?.entries()? {
            if !entry.sealed {
                let Some(file) = ReadFile::open(&self.folder, &entry, &until)? else {
                    continue;
                };
                // Record ids start at 1 and no record is removed from a file, so the last indexed id is the number of
                // indexed records.
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

    /// The files that may have records that match the query.
    fn files(&self, query: &Query) -> Result<Vec<CatalogEntry>, StoreError> {
        let since = query.since_ns.unwrap_or(i64::MIN);
        let mut entries = Catalog::open_read(&self.folder)?.entries()?;
        let arrived = plan::arrived_since(&query.filter);
        entries.retain(|entry| {
            entry.overlaps(since, query.until_ns) && arrived.is_none_or(|time| may_have_arrived(entry, time))
        });
        Ok(entries)
    }
}

/// True if the file may have records that arrived at this time or later. A file gets records on its day and, if the
/// clock was set back, on the day before. A day more is added for other changes of the clock.
fn may_have_arrived(entry: &CatalogEntry, time_ns: i64) -> bool {
    Day::in_name(&entry.name).is_none_or(|day| Day::of(time_ns).after(day) <= 1)
}

impl QueryReader for SqliteReader {
    fn begin(&self, query: &Query, cancel: &CancelToken) -> Result<Box<dyn QueryAnswer>, StoreError> {
        let until = QueryDeadline::new(self.deadline, cancel);
        let (since, until_ns) = plan::time_range(&query.filter);
        let until_ns = query.until_ns.into_iter().chain(until_ns).min();
        let query = Query { since_ns: query.since_ns.max(since), until_ns, ..query.clone() };
        let files = self.files(&query)?;
        let names = files.iter().map(|entry| entry.name.clone()).collect();
        let noting = DamageRecorder { folder: self.folder.clone(), damages: self.damages.clone(), names };
        let answer = self.answer_from(files, query, until).map_err(|error| noting.note(error))?;
        Ok(Box::new(DamageCheckedAnswer { answer, noting }))
    }

    fn begin_within(
        &self,
        query: &Query,
        time: Duration,
        cancel: &CancelToken,
    ) -> Result<Box<dyn QueryAnswer>, StoreError> {
        self.clone().with_deadline(time.min(self.deadline)).begin(query, cancel)
    }
}

/// Records in [`DamageNotes`] the damage that an answer finds.
struct DamageRecorder {
    folder: PathBuf,
    damages: DamageNotes,
    /// The files that the answer may read.
    names: Vec<String>,
}

impl DamageRecorder {
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

/// An answer. If one of its errors is damage, the damage is noted.
struct DamageCheckedAnswer {
    answer: Box<dyn QueryAnswer>,
    noting: DamageRecorder,
}

impl QueryAnswer for DamageCheckedAnswer {
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        self.answer.resume(each).map_err(|error| self.noting.note(error))
    }

    fn left_out(&self) -> u64 {
        self.answer.left_out()
    }
}

impl SqliteReader {
    fn answer_from(
        &self,
        files: Vec<CatalogEntry>,
        query: Query,
        until: QueryDeadline,
    ) -> Result<Box<dyn QueryAnswer>, StoreError> {
        let limit = query.limit.unwrap_or(u64::MAX);
        let mut memory = self.counted.part();
        let counting = CountQuery { folder: &self.folder, query: &query, until: &until };
        Ok(match &query.stage {
            None => Box::new(FileMerge::new(&self.folder, &self.recent, files, query, until)),
            Some(Stage::CountBy(field)) => {
                let counts = counting.run::<Option<String>>(&files, CountKey::Value(field), &mut memory)?;
                Box::new(Counts::of_values(counts, limit, memory))
            }
            Some(Stage::LastBy(field)) => Box::new(last::find(&counting, files, field, limit, memory)?),
            Some(Stage::Histogram { interval_ns }) => {
                let interval_ns = (*interval_ns).max(1);
                let counts = counting.run::<i64>(&files, CountKey::Interval(interval_ns), &mut memory)?;
                Box::new(Counts::of_intervals(counts, interval_ns, limit, memory))
            }
        })
    }
}
