//! Shared parts of the SQLite tests: a clock that tests set, batches, and answers as lists.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::{Chunk, Delivery};
use logspool_server::query::{Query, parse};
use logspool_server::record::Record;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteReader, SqliteStore, StoreClock};
use logspool_server::stores::{AnswerRow, QueryReader, RowFlow, Store, StoreError, WriteResult};

pub const SECOND: i64 = 1_000_000_000;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 24 * HOUR;

/// 2026-11-22T00:00:00Z.
pub const TODAY: i64 = 1_795_305_600 * SECOND;

/// A clock that shows a fixed time until it is set.
#[derive(Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(time_ns: i64) -> Self {
        Self(Arc::new(AtomicI64::new(time_ns)))
    }

    pub fn set(&self, time_ns: i64) {
        self.0.store(time_ns, Ordering::SeqCst);
    }

    pub fn clock(&self) -> StoreClock {
        let hand = Arc::clone(&self.0);
        StoreClock::new(move || hand.load(Ordering::SeqCst))
    }
}

/// Opens a store without indexes, at the clock's time.
pub fn open(folder: &Path, hand: &ManualClock) -> SqliteStore {
    open_with(folder, hand, Indexing::Off)
}

pub fn open_with(folder: &Path, hand: &ManualClock, indexing: Indexing) -> SqliteStore {
    SqliteStore::open(folder, SqliteOptions { indexing, clock: hand.clock(), ..SqliteOptions::default() })
        .expect("a store")
}

pub fn batch(records: &[Record<'_>]) -> Batch {
    let mut batch = Batch::default();
    for record in records {
        batch.push(record, Arrival { time_ns: record.arrived_ns.unwrap_or(TODAY), host: "" });
    }
    batch
}

pub fn delivery(records: &[Record<'_>], chunk: Option<Chunk>) -> Arc<Delivery> {
    Delivery::new(batch(records), chunk, 1, None).0
}

/// A part of a stream.
pub fn chunk(stream: &str, epoch: u64, first: u64, last: u64) -> Chunk {
    Chunk { stream: stream.to_owned(), epoch, first, last, end: false }
}

/// A delivery of the records of a chunk. The message of each record has its number.
pub fn numbered(chunk: Chunk) -> Arc<Delivery> {
    let records: Vec<_> =
        (chunk.first..=chunk.last).map(|number| said(TODAY, &format!("{} {number}", chunk.stream))).collect();
    delivery(&records, Some(chunk))
}

pub fn said(time_ns: i64, message: &str) -> Record<'static> {
    Record {
        time_ns: Some(time_ns),
        arrived_ns: Some(TODAY),
        level: 20,
        logger: "shop".into(),
        message: message.to_owned().into(),
        ..Record::default()
    }
}

pub fn write(store: &mut SqliteStore, records: &[Record<'_>]) -> WriteResult {
    store.write(&[delivery(records, None)]).expect("a transaction")
}

pub fn close(store: SqliteStore) {
    Store::close(Box::new(store)).expect("a clean end");
}

/// A query for all times.
pub fn query(text: &str) -> Query {
    let expression = parse(text, TODAY).expect("a query");
    Query { filter: expression.filter, stage: expression.stage, since_ns: None, until_ns: None, limit: None }
}

/// An owned row of an answer.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are few")]
pub enum Row {
    Record(Record<'static>),
    Count(Option<String>, u64),
    Interval(i64, u64),
}

pub fn ask(answers: &SqliteReader, query: &Query) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    answers.run(query, &mut |found| {
        rows.push(match found {
            AnswerRow::Record(record) => Row::Record(record.into_owned()),
            AnswerRow::Count(value, count) => Row::Count(value.map(str::to_owned), count),
            AnswerRow::Interval(begins, count) => Row::Interval(begins, count),
            AnswerRow::Row(values) => panic!("no store has such rows: {values:?}"),
        });
        RowFlow::Continue
    })?;
    Ok(rows)
}

pub fn records(answers: &SqliteReader, query: &Query) -> Vec<Record<'static>> {
    let rows = ask(answers, query).expect("an answer");
    rows.into_iter()
        .map(|row| match row {
            Row::Record(record) => record,
            other => panic!("no record: {other:?}"),
        })
        .collect()
}

/// The messages of all records, newest first.
pub fn messages(answers: &SqliteReader, text: &str) -> Vec<String> {
    records(answers, &query(text)).into_iter().map(|record| record.message.into_owned()).collect()
}

/// The messages of all stored records, in alphabetical order.
pub fn stored(store: &SqliteStore) -> Vec<String> {
    let mut messages = messages(&store.reader(), "");
    messages.sort_unstable();
    messages
}

/// Waits until a condition holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 seconds: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the index has all records.
pub fn indexed(answers: &SqliteReader) {
    until("all records are indexed", || answers.stats().is_ok_and(|stats| stats.unindexed_rows == 0));
}
