//! Batches of numbered records, and stores for them.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::{Chunk, Delivery};
use logspool_server::query::{Filter, Query};
use logspool_server::record::Record;
use logspool_server::stores::postgres::{PostgresConfig, PostgresReader, PostgresWriter};
use logspool_server::stores::{AnswerRow, QueryReader, RowFlow, Store, WriteResult};

/// The configuration of a store, with only its address set.
pub fn config(url: &str) -> PostgresConfig {
    PostgresConfig { address: url.parse().unwrap(), retention_days: None, query_timeout: Duration::from_secs(30) }
}

/// A writer.
pub fn writer(url: &str) -> PostgresWriter {
    PostgresWriter::new(&config(url))
}

/// The current time in nanoseconds since 1970.
pub fn now_ns() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// A batch that does not belong to a stream.
pub fn unnumbered(records: &[Record<'_>]) -> Arc<Delivery> {
    let mut batch = Batch::default();
    for record in records {
        batch.push(record, Arrival { time_ns: record.arrived_ns.unwrap_or_else(now_ns), host: "" });
    }
    Delivery::new(batch, None, 1, None).0
}

/// A chunk whose records are `stream/epoch/number`.
pub fn chunk(stream: &str, epoch: u64, first: u64, last: u64) -> Arc<Delivery> {
    let mut batch = Batch::default();
    for number in first..=last {
        let record = Record { message: format!("{stream}/{epoch}/{number}").into(), level: 20, ..Record::default() };
        batch.push(&record, Arrival { time_ns: now_ns(), host: "" });
    }
    let chunk = Chunk { stream: stream.to_owned(), epoch, first, last, end: false };
    Delivery::new(batch, Some(chunk), 1, None).0
}

/// Retries a write until it succeeds.
pub fn write(store: &mut PostgresWriter, deliveries: &[Arc<Delivery>]) -> WriteResult {
    let until = Instant::now() + super::DEADLINE;
    loop {
        match store.write(deliveries) {
            Ok(written) => return written,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    }
}

/// A query for all records.
pub fn all_records_query() -> Query {
    Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None }
}

/// The records of an answer.
pub fn records(reader: &PostgresReader, query: &Query) -> Vec<Record<'static>> {
    let mut found = Vec::new();
    let mut each = |row: AnswerRow<'_>| {
        let AnswerRow::Record(record) = row else { panic!("expected a record, found {row:?}") };
        found.push(record.into_owned());
        RowFlow::Continue
    };
    reader.run(query, &mut each).unwrap();
    found
}
