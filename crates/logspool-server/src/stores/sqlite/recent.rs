//! Keeps the traces of the newest records in memory, to find the records of a trace that are not indexed yet.
//!
//! The table only narrows the search: queries check the records that it finds again. It has the traces of all records
//! of one file after a certain record, including records of failed transactions. Records are removed from the table
//! when they are indexed. If there are too many records, the oldest ones are removed.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of records in the table. Chosen: they take 32 MiB, and a scan of all of them takes about 5 ms.
const MAX_RECORDS: usize = 4 << 20;

/// Number of bits of a trace's hash that are stored together with the record's number. About one record in 16 million
/// has the same bits for another trace, and is checked without need.
const HASH_BITS: u32 = 24;

/// The records of one transaction that have a trace.
#[derive(Debug, Default)]
pub(super) struct StoredTraces {
    first: i64,
    last: i64,
    /// Each record's number and the hash of its trace, packed, in the order of the numbers.
    traces: Vec<u64>,
}

/// Records that may belong to a trace, after the end of an index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecentMatches {
    /// The table does not know records up to this number.
    pub after: i64,
    /// The numbers of the records that may belong to the trace.
    pub records: Vec<i64>,
}

/// The table; see the module documentation. The writer, the indexer and queries share it.
#[derive(Debug, Clone, Default)]
pub(super) struct RecentTraces(Arc<Mutex<TraceTable>>);

#[derive(Debug, Default)]
struct TraceTable {
    /// The sequence number of the file. The first file has 1.
    sequence: i64,
    after: i64,
    stored: VecDeque<StoredTraces>,
    /// Number of records in all of `stored`.
    records: usize,
}

impl StoredTraces {
    /// Adds the next record.
    pub fn push(&mut self, record: i64, trace: Option<&str>) {
        if self.last == 0 {
            self.first = record;
        }
        self.last = record;
        if let Some(trace) = trace {
            self.traces.push(packed(record, trace));
        }
    }
}

impl RecentTraces {
    /// Adds the records of a transaction that is about to be committed.
    pub fn add(&self, sequence: i64, stored: StoredTraces) {
        if stored.last == 0 {
            return;
        }
        let mut traces = self.lock();
        if traces.sequence != sequence {
            *traces = TraceTable { sequence, after: stored.first - 1, ..TraceTable::default() };
        }
        // SQLite uses the record numbers of a failed transaction again, so remove that transaction.
        while traces.stored.back().is_some_and(|last| last.first >= stored.first) {
            traces.drop_newest();
        }
        if stored.traces.is_empty() {
            return;
        }
        traces.records += stored.traces.len();
        traces.stored.push_back(stored);
        while traces.records > MAX_RECORDS {
            traces.drop_oldest();
        }
    }

    /// Removes the records up to `indexed_to`, in whole transactions.
    pub fn forget(&self, sequence: i64, indexed_to: i64) {
        let mut traces = self.lock();
        while traces.sequence == sequence && traces.stored.front().is_some_and(|oldest| oldest.last <= indexed_to) {
            traces.drop_oldest();
        }
    }

    /// Finds the records of a trace after record `after`. The caller must have opened the file before this call.
    /// `None`: the table belongs to another file.
    pub fn find(&self, sequence: i64, trace: &str, after: i64) -> Option<RecentMatches> {
        let traces = self.lock();
        if traces.sequence != sequence {
            return None;
        }
        let hash = packed(0, trace);
        let mut records = Vec::new();
        for stored in traces.stored.iter().filter(|stored| stored.last > after) {
            let found = stored.traces.iter().filter(|packed| **packed & ((1 << HASH_BITS) - 1) == hash);
            records.extend(found.map(|packed| (packed >> HASH_BITS).cast_signed()).filter(|record| *record > after));
        }
        Some(RecentMatches { after: traces.after.max(after), records })
    }

    fn lock(&self) -> MutexGuard<'_, TraceTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceTable {
    fn drop_newest(&mut self) {
        let newest = self.stored.pop_back();
        self.records -= newest.map_or(0, |newest| newest.traces.len());
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.stored.pop_front() {
            self.after = oldest.last;
            self.records -= oldest.traces.len();
        }
    }
}

/// Packs a record's number and the hash of its trace into one number. 40 bits remain for the record's number, which is
/// enough for a million records a second for twelve days.
fn packed(record: i64, trace: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    trace.hash(&mut hasher);
    record.cast_unsigned() << HASH_BITS | hasher.finish() >> (u64::BITS - HASH_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records that each have a trace: the record's number divided by two.
    fn stored(records: impl Iterator<Item = i64>) -> StoredTraces {
        let mut stored = StoredTraces::default();
        records.for_each(|record| stored.push(record, Some(&(record / 2).to_string())));
        stored
    }

    fn found(recent: &RecentTraces, trace: &str, after: i64) -> (i64, Vec<i64>) {
        let found = recent.find(7, trace, after).unwrap();
        (found.after, found.records)
    }

    #[test]
    fn records_of_a_trace_are_found_after_the_end_of_an_index() {
        let recent = RecentTraces::default();
        recent.add(7, stored(101..=110));
        recent.add(7, stored(111..=120));

        assert_eq!((100, vec![108, 109]), found(&recent, "54", 0));
        assert_eq!((108, vec![109]), found(&recent, "54", 108));
        assert_eq!((109, vec![]), found(&recent, "54", 109));
        assert_eq!((100, vec![]), found(&recent, "none", 100));
        assert_eq!(None, recent.find(6, "54", 0));
    }

    #[test]
    fn indexed_records_are_forgotten_in_whole_transactions() {
        let recent = RecentTraces::default();
        recent.add(7, stored(1..=10));
        recent.add(7, stored(11..=20));
        recent.forget(6, 20);
        recent.forget(7, 9);
        assert_eq!((0, vec![8, 9]), found(&recent, "4", 0));
        recent.forget(7, 15);
        assert_eq!((10, vec![]), found(&recent, "4", 0));
        assert_eq!((15, vec![16, 17]), found(&recent, "8", 15));
        recent.forget(7, 20);
        assert_eq!((20, vec![]), found(&recent, "8", 0));
        assert_eq!(0, recent.lock().records);
    }

    #[test]
    fn numbers_of_a_failed_transaction_are_reused() {
        let recent = RecentTraces::default();
        recent.add(7, stored(1..=10));
        recent.add(7, stored(11..=14));
        let mut again = StoredTraces::default();
        again.push(11, None);
        again.push(12, Some("5"));
        recent.add(7, again);

        assert_eq!((0, vec![10, 12]), found(&recent, "5", 0));
        assert_eq!((0, vec![]), found(&recent, "6", 0));
        assert_eq!(11, recent.lock().records);
    }

    #[test]
    fn another_file_starts_with_an_empty_table_and_records_without_traces_are_not_kept() {
        let recent = RecentTraces::default();
        recent.add(6, stored(1..=10));
        let mut plain = StoredTraces::default();
        (5..=9).for_each(|record| plain.push(record, None));
        recent.add(7, plain);
        recent.add(7, StoredTraces::default());

        assert_eq!((4, vec![]), found(&recent, "3", 0));
        assert_eq!(0, recent.lock().records);
    }

    #[test]
    fn the_oldest_entries_are_forgotten_if_there_are_too_many() {
        let recent = RecentTraces::default();
        let half = MAX_RECORDS as i64 / 2;
        recent.add(7, stored(1..=half));
        recent.add(7, stored(half + 1..=2 * half));
        assert_eq!((0, vec![2, 3]), found(&recent, "1", 0));
        recent.add(7, stored(2 * half + 1..=2 * half + 1));

        let (after, records) = found(&recent, "1", 0);
        assert!(after == half && records.iter().all(|record| *record > half));
        assert_eq!(MAX_RECORDS / 2 + 1, recent.lock().records);
    }
}
