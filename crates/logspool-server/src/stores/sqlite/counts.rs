//! Counts the records of several files, by the values of a field or by intervals of time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::path::Path;
use std::vec::IntoIter;

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Row, params_from_iter};

use super::catalog::CatalogEntry;
use super::folder::index_of;
use super::insert::MINUTE_NS;
use super::plan::{BoundStatement, CountKey, FilePart, IndexChoice, needs_records};
use super::read_file::{ReadFile, warn_damaged_index};
use crate::cancel::QueryDeadline;
use crate::query::{Field, Query};
use crate::query_memory::QueryMemory;
use crate::stores::{AnswerProgress, AnswerRow, QueryAnswer, RowFlow, StoreError};

/// Maximum number of distinct values of one query, and maximum bytes of these values. The values are in memory.
const MAX_VALUES: usize = 1_000_000;
const MAX_BYTES: usize = 64 << 20;

/// Bytes that a value takes in addition to its text: its slot in a half-empty hash table, and its count.
const ENTRY_BYTES: usize = 64;

/// A query that counts.
pub(super) struct CountQuery<'a> {
    pub folder: &'a Path,
    pub query: &'a Query,
    pub until: &'a QueryDeadline,
}

/// The values of a query, and the error of the first file that was left out because it is damaged. No value of such a
/// file is included.
pub(super) type Found<T> = (T, Option<StoreError>);

/// A part of a file, with the start and the end of the time range to read.
pub(super) type Part = (FilePart, Option<i64>, Option<i64>);

/// A key that records are counted by.
pub(super) trait CountedKey: Eq + Hash {
    /// Reads the key from a column.
    fn read(value: ValueRef<'_>) -> rusqlite::Result<Self>
    where
        Self: Sized;

    /// Size of the key in bytes.
    fn bytes(&self) -> usize;
}

impl CountedKey for i64 {
    fn read(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(FromSql::column_result(value)?)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl CountedKey for Option<String> {
    fn read(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(match value {
            ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        })
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.as_ref().map_or(0, String::len)
    }
}

impl CountQuery<'_> {
    /// Counts the records of `files` per key.
    pub fn run<K: CountedKey>(
        &self,
        files: &[CatalogEntry],
        key: CountKey<'_>,
        memory: &mut QueryMemory,
    ) -> Result<Found<HashMap<K, u64>>, StoreError> {
        let mut counts: HashMap<K, u64> = HashMap::new();
        let left_out = self.each_file(files, |file| {
            let parts = self.parts(file, key)?;
            let statements = parts.into_iter().map(|(part, since, until)| part.counts(self.query, &key, since, until));
            let read = |row: &Row<'_>| Ok(row.get::<_, i64>(1)?.unsigned_abs());
            let found = self.values(file, statements, memory, counts.len(), read)?;
            for (value, count) in found {
                add(&mut counts, value, count, memory, |sum, count| *sum += count);
            }
            Ok(())
        })?;
        Ok((counts, left_out))
    }

    /// Calls `each` with each file. A file that is damaged is left out; the error of the first one is returned.
    pub fn each_file(
        &self,
        files: &[CatalogEntry],
        mut each: impl FnMut(&ReadFile) -> Result<(), StoreError>,
    ) -> Result<Option<StoreError>, StoreError> {
        let mut left_out = None;
        for entry in files {
            let opened = ReadFile::open(self.folder, entry, self.until);
            match opened.and_then(|file| file.as_ref().map_or(Ok(()), &mut each)) {
                Err(error @ StoreError::Fatal(_)) => drop(left_out.get_or_insert(error)),
                done => done?,
            }
        }
        Ok(left_out)
    }

    /// Reads the keys in the first column of these statements, each with the value that `read` returns. `known` is the
    /// number of keys that the query has already.
    pub fn values<K: CountedKey, V>(
        &self,
        file: &ReadFile,
        statements: impl Iterator<Item = BoundStatement>,
        memory: &mut QueryMemory,
        known: usize,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<V>,
    ) -> Result<Vec<(K, V)>, StoreError> {
        let mut found = Vec::new();
        for BoundStatement { sql, values } in statements {
            let mut read_all = || -> rusqlite::Result<Option<&'static str>> {
                let mut statement = file.connection.prepare(&sql)?;
                let mut rows = statement.query(params_from_iter(&values))?;
                while let Some(row) = rows.next()? {
                    let key = K::read(row.get_ref(0)?)?;
                    let has_room = memory.take(key.bytes() + ENTRY_BYTES);
                    found.push((key, read(row)?));
                    if known.max(found.len()) > MAX_VALUES
                        || memory.bytes().saturating_sub((known + found.len()) * ENTRY_BYTES) > MAX_BYTES
                    {
                        return Ok(Some(
                            "there are more than a million values, or they are too long; use a shorter time range",
                        ));
                    }
                    if !has_room {
                        return Ok(Some("other queries count too many values now; retry later"));
                    }
                }
                Ok(None)
            };
            if let Some(why) = read_all().map_err(|error| file.failed(&error))? {
                return Err(StoreError::Retry(format!("cannot count: {why}")));
            }
        }
        Ok(found)
    }

    fn parts(&self, file: &ReadFile, key: CountKey<'_>) -> Result<Vec<Part>, StoreError> {
        if !needs_records(&self.query.filter) && can_count_minutes(key) {
            return Ok(by_minutes(self.query.since_ns, self.query.until_ns));
        }
        self.record_parts(file)
    }

    /// The parts of a file that have all matching records.
    pub fn record_parts(&self, file: &ReadFile) -> Result<Vec<Part>, StoreError> {
        let (since, until) = (self.query.since_ns, self.query.until_ns);
        let whole = vec![(FilePart::ByTime, since, until)];
        let Some(end) = file.indexed_to else { return Ok(whole) };
        let piece = match IndexChoice::of(&self.query.filter) {
            IndexChoice::Trace(trace) => FilePart::Trace(trace),
            IndexChoice::Words(words) => FilePart::Words(words),
            // A logger may have most of the records of the file, so its index would not help.
            IndexChoice::Time | IndexChoice::Logger(_) => return Ok(whole),
        };
        // Test the index first. Otherwise a damaged index would be noticed only during the counting.
        let readable = piece.exceeds(0).map(|BoundStatement { sql, values }| {
            file.connection.query_one(&sql, params_from_iter(values), |row| row.get::<_, bool>(0))
        });
        if let Some(Err(error)) = readable {
            warn_damaged_index(&index_of(&file.path), &error);
            return Ok(whole);
        }
        Ok(vec![(piece, since, until), (FilePart::Tail(end), since, until)])
    }
}

/// Adds a value to those of a key. If the key is new, the memory that it takes stays taken.
pub(super) fn add<K: CountedKey, V>(
    to: &mut HashMap<K, V>,
    key: K,
    value: V,
    memory: &mut QueryMemory,
    combine: impl FnOnce(&mut V, V),
) {
    let bytes = key.bytes() + ENTRY_BYTES;
    match to.entry(key) {
        Entry::Occupied(mut found) => {
            combine(found.get_mut(), value);
            memory.release(bytes);
        }
        Entry::Vacant(place) => drop(place.insert(value)),
    }
}

fn can_count_minutes(key: CountKey<'_>) -> bool {
    match key {
        CountKey::Value(field) => matches!(field, Field::Level | Field::Logger),
        CountKey::Interval(interval_ns) => interval_ns % MINUTE_NS == 0,
    }
}

/// Splits a time range into parts. Whole minutes are read from the rollup. The incomplete minutes at the start and the
/// end are read from the records.
fn by_minutes(since: Option<i64>, until: Option<i64>) -> Vec<Part> {
    // The start is rounded up to a whole minute.
    let first = since.map(|since| since.div_euclid(MINUTE_NS) + i64::from(since.rem_euclid(MINUTE_NS) > 0));
    let last = until.map(|until| until.div_euclid(MINUTE_NS));
    if first.zip(last).is_some_and(|(first, last)| first >= last) {
        return vec![(FilePart::ByTime, since, until)];
    }
    let mut parts = vec![(FilePart::Rollup(first.unwrap_or(i64::MIN), last.unwrap_or(i64::MAX)), None, None)];
    if let (Some(since), Some(first)) = (since, first) {
        let whole = first.saturating_mul(MINUTE_NS);
        if since < whole {
            parts.push((FilePart::ByTime, Some(since), Some(whole)));
        }
    }
    if let (Some(until), Some(last)) = (until, last) {
        let whole = last.saturating_mul(MINUTE_NS);
        if whole < until {
            parts.push((FilePart::ByTime, Some(whole), Some(until)));
        }
    }
    parts
}

/// Number of `rows` beyond the limit.
pub(super) fn beyond(rows: usize, limit: u64) -> usize {
    rows.saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// An answer that returns counts one after the other.
#[derive(Debug)]
pub(super) struct Counts {
    left: RemainingCounts,
    /// Number of counts that the limit cut off.
    cut: u64,
    /// Why a file was left out. The answer ends with this error, after all counts of the other files.
    left_out: Option<StoreError>,
    _memory: QueryMemory,
}

/// The counts that are not returned yet.
#[derive(Debug)]
enum RemainingCounts {
    Values(IntoIter<(Option<String>, u64)>),
    /// The intervals' numbers with their counts, and the length of an interval in nanoseconds.
    Intervals(IntoIter<(i64, u64)>, i64),
}

impl Counts {
    /// Returns the greatest counts first. Equal counts are in the order of their values, and a missing value comes
    /// first.
    pub fn of_values((counts, left_out): Found<HashMap<Option<String>, u64>>, limit: u64, memory: QueryMemory) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|(value, count), (other_value, other)| other.cmp(count).then_with(|| value.cmp(other_value)));
        let cut = beyond(counts.len(), limit);
        counts.truncate(counts.len() - cut);
        Self { left: RemainingCounts::Values(counts.into_iter()), cut: cut as u64, left_out, _memory: memory }
    }

    /// Returns the oldest intervals first. The limit keeps the newest.
    pub fn of_intervals(
        (counts, left_out): Found<HashMap<i64, u64>>,
        interval_ns: i64,
        limit: u64,
        memory: QueryMemory,
    ) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        let cut = beyond(counts.len(), limit);
        counts.drain(..cut);
        let left = RemainingCounts::Intervals(counts.into_iter(), interval_ns);
        Self { left, cut: cut as u64, left_out, _memory: memory }
    }

    /// Passes the next count to `each`. `None`: there are no more counts.
    fn emit_next(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Option<RowFlow> {
        match &mut self.left {
            RemainingCounts::Values(counts) => {
                counts.next().map(|(value, count)| each(AnswerRow::Count(value.as_deref(), count)))
            }
            RemainingCounts::Intervals(counts, interval_ns) => counts
                .next()
                .map(|(number, count)| each(AnswerRow::Interval(number.saturating_mul(*interval_ns), count))),
        }
    }
}

impl QueryAnswer for Counts {
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        loop {
            match self.emit_next(each) {
                Some(RowFlow::Continue) => {}
                Some(RowFlow::Pause) => return Ok(AnswerProgress::Paused),
                Some(RowFlow::Stop) | None => return self.left_out.take().map_or(Ok(AnswerProgress::Ended), Err),
            }
        }
    }

    fn left_out(&self) -> u64 {
        self.cut
    }
}
