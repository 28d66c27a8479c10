//! Counts the records of several files, by the values of a field or by intervals of time.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use crate::stores::{AnswerProgress, AnswerRow, QueryAnswer, RowFlow, StoreError};

/// Maximum number of distinct values of one query, and maximum bytes of these values. The values are in memory.
const MAX_VALUES: usize = 1_000_000;
const MAX_BYTES: usize = 64 << 20;

/// Maximum bytes of the values of all queries together, including queries whose answers are not read to the end.
/// Chosen: it has room for one query with the maximum number and bytes of values, or for several smaller queries.
const MAX_TOTAL_BYTES: usize = 192 << 20;

/// Bytes that a value takes in addition to its text: its slot in a half-empty hash table, and its count.
const ENTRY_BYTES: usize = 64;

/// The bytes of the counted values of all queries. The number is an atomic because each query counts on its own thread.
#[derive(Debug, Clone, Default)]
pub(super) struct CountMemory(Arc<AtomicUsize>);

impl CountMemory {
    /// Creates the part of one query, which is empty at first.
    pub fn part(&self) -> QueryMemory {
        QueryMemory { all: self.clone(), bytes: 0 }
    }
}

/// One query's part of the memory. Dropping it releases the memory.
#[derive(Debug)]
pub(super) struct QueryMemory {
    all: CountMemory,
    bytes: usize,
}

impl QueryMemory {
    /// Adds `bytes` to this query's part and to the total of all queries. Returns false if the total now exceeds
    /// [`MAX_TOTAL_BYTES`]. Even then the bytes stay added until this value is dropped.
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        // Relaxed is enough here and in `drop`: no other memory access depends on this counter.
        self.all.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_TOTAL_BYTES
    }
}

impl Drop for QueryMemory {
    fn drop(&mut self) {
        self.all.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A query that counts.
pub(super) struct CountQuery<'a> {
    pub folder: &'a Path,
    pub query: &'a Query,
    pub until: &'a QueryDeadline,
}

/// A part of a file, with the start and the end of the time range to read.
type Part = (FilePart, Option<i64>, Option<i64>);

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
    ) -> Result<HashMap<K, u64>, StoreError> {
        let mut counts = HashMap::new();
        let mut bytes = 0;
        for entry in files {
            let Some(file) = ReadFile::open(self.folder, entry, self.until)? else { continue };
            for (piece, since, until) in self.parts(&file, key)? {
                let BoundStatement { sql, values } = piece.counts(self.query, &key, since, until);
                let mut add = |row: &Row<'_>| -> rusqlite::Result<Option<&'static str>> {
                    let value = K::read(row.get_ref(0)?)?;
                    let count = row.get::<_, i64>(1)?.unsigned_abs();
                    let mut has_room = true;
                    if !counts.contains_key(&value) {
                        bytes += value.bytes();
                        has_room = memory.take(value.bytes() + ENTRY_BYTES);
                    }
                    *counts.entry(value).or_default() += count;
                    Ok(match counts.len() <= MAX_VALUES && bytes <= MAX_BYTES {
                        true if has_room => None,
                        true => Some("other queries count too many values now; retry later"),
                        false => {
                            Some("there are more than a million values, or they are too long; use a shorter time range")
                        }
                    })
                };
                let mut count = || -> rusqlite::Result<Option<&'static str>> {
                    let mut statement = file.connection.prepare(&sql)?;
                    let mut rows = statement.query(params_from_iter(&values))?;
                    while let Some(row) = rows.next()? {
                        if let Some(why) = add(row)? {
                            return Ok(Some(why));
                        }
                    }
                    Ok(None)
                };
                if let Some(why) = count().map_err(|error| file.failed(&error))? {
                    return Err(StoreError::Retry(format!("cannot count: {why}")));
                }
            }
        }
        Ok(counts)
    }

    fn parts(&self, file: &ReadFile, key: CountKey<'_>) -> Result<Vec<Part>, StoreError> {
        let (since, until) = (self.query.since_ns, self.query.until_ns);
        if !needs_records(&self.query.filter) && can_count_minutes(key) {
            return Ok(by_minutes(since, until));
        }
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

/// An answer that returns counts one after the other.
#[derive(Debug)]
pub(super) struct Counts {
    left: RemainingCounts,
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
    pub fn of_values(counts: HashMap<Option<String>, u64>, limit: u64, memory: QueryMemory) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by(|(value, count), (other_value, other)| other.cmp(count).then_with(|| value.cmp(other_value)));
        counts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Self { left: RemainingCounts::Values(counts.into_iter()), _memory: memory }
    }

    /// Returns the oldest intervals first.
    pub fn of_intervals(counts: HashMap<i64, u64>, interval_ns: i64, limit: u64, memory: QueryMemory) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable();
        counts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Self { left: RemainingCounts::Intervals(counts.into_iter(), interval_ns), _memory: memory }
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
                Some(RowFlow::Stop) | None => return Ok(AnswerProgress::Ended),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_the_memory_of_their_values_and_give_it_back() {
        let memory = CountMemory::default();
        let (mut one, mut two) = (memory.part(), memory.part());
        assert!(one.take(MAX_TOTAL_BYTES - 1) && two.take(1));
        assert!(!two.take(1));
        drop(two);

        assert!(one.take(1) && !one.take(1));
        drop(one);
        assert_eq!(0, memory.0.load(Ordering::Relaxed));
    }
}
