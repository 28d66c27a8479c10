//! Writes the rows of a store again, as plainly as possible and by the store's own writer: the baseline for the
//! service.
//!
//! `raw_rows sqlite:FOLDER` or `raw_rows postgres://...` reads all records of that store into memory. Then it writes
//! them in transactions of 10,000 rows: raw, and by calling the store directly with chunks of a stream. SQLite gets new
//! files beside the folder. In PostgreSQL the store's table is emptied first, and a plain table is created beside it.
//! Prints the rows and the rows per second of each way; the rows are counted in each place.

#[path = "../../benches/raw/mod.rs"]
mod raw;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logspool_server::batch::{Arrival, Batch, Row};
use logspool_server::delivery::{Chunk, Delivery};
use logspool_server::opening;
use logspool_server::query::{Filter, Query};
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteStore};
use logspool_server::stores::{AnswerRow, RowFlow, Store, StoreAddress, postgres};
use raw::TRANSACTION_ROWS;
use serde_json::{Map, Value, json};

fn main() {
    let address = std::env::args().nth(1).expect("raw_rows sqlite:FOLDER | postgres://...");
    let store: StoreAddress = address.parse().expect("an address of a store");
    let figures = match address.strip_prefix("sqlite:") {
        Some(folder) => sqlite(Path::new(folder), &deliveries(&store)),
        None => postgres(&address, &deliveries(&store)),
    };
    println!("{}", Value::Object(figures));
}

fn sqlite(folder: &Path, deliveries: &[Arc<Delivery>]) -> Map<String, Value> {
    let beside = |name: &str| folder.with_file_name(name);
    let rows = rows(deliveries);
    let mut figures = Map::from_iter([("rows".to_owned(), json!(rows))]);
    let mut note = |name: &str, seconds: f64| figures.insert(name.to_owned(), json!(rows as f64 / seconds));
    note("raw", raw::sqlite::insert(&beside("raw.sqlite"), deliveries));
    for (name, indexing) in [("store", Indexing::Off), ("store_indexing", Indexing::Background)] {
        let options = SqliteOptions { indexing, ..SqliteOptions::default() };
        let mut store = SqliteStore::open(beside(name), options).expect("a store");
        let began = Instant::now();
        write(&mut store, deliveries);
        note(name, began.elapsed().as_secs_f64());
        let answers = store.reader();
        assert_eq!(rows, answers.stats().expect("stats").rows);
        if indexing == Indexing::Background {
            while answers.stats().expect("stats").unindexed_rows > 0 {
                std::thread::sleep(Duration::from_millis(10));
            }
            note("indexed", began.elapsed().as_secs_f64());
        }
    }
    figures
}

fn postgres(url: &str, deliveries: &[Arc<Delivery>]) -> Map<String, Value> {
    const STORE: &str = "logspool.records";
    let rows = rows(deliveries);
    let copies = raw::postgres::encoded(url, STORE, TRANSACTION_ROWS);
    raw::postgres::execute(
        url,
        "CREATE TABLE plain (LIKE logspool.records); CREATE INDEX ON plain USING brin (time_ns)",
    );
    let mut figures = Map::from_iter([("rows".to_owned(), json!(rows))]);
    let mut note = |name: &str, table: &str, work: &mut dyn FnMut() -> f64| {
        raw::postgres::execute(url, &format!("TRUNCATE {table}; CHECKPOINT"));
        figures.insert(name.to_owned(), json!(rows as f64 / work()));
        assert_eq!(rows, raw::postgres::count(url, table));
    };
    note("raw", "plain", &mut || raw::postgres::copy(url, "plain", &copies));
    note("raw_store_table", STORE, &mut || raw::postgres::copy(url, STORE, &copies));
    let address = url.parse().expect("an address of PostgreSQL");
    let mut store = postgres::PostgresWriter::new(&postgres::PostgresConfig {
        address,
        retention_days: None,
        query_timeout: Duration::from_secs(30),
    });
    // Connects, and finds the tables.
    store.maintain().expect("a store");
    note("store", STORE, &mut || {
        let began = Instant::now();
        write(&mut store, deliveries);
        began.elapsed().as_secs_f64()
    });
    figures
}

fn rows(deliveries: &[Arc<Delivery>]) -> u64 {
    deliveries.iter().map(|delivery| delivery.batch.len() as u64).sum()
}

fn write(store: &mut dyn Store, deliveries: &[Arc<Delivery>]) {
    for delivery in deliveries {
        store.write(std::slice::from_ref(delivery)).expect("a transaction");
    }
}

/// All records of a store, in chunks of one stream, one chunk per transaction.
fn deliveries(store: &StoreAddress) -> Vec<Arc<Delivery>> {
    let query = Query { filter: Filter::All, stage: None, since_ns: None, until_ns: None, limit: None };
    let (mut batches, mut open) = (Vec::new(), Batch::default());
    let mut take = |found: AnswerRow<'_>| {
        if let AnswerRow::Record(record) = found {
            open.push(&record, Arrival { time_ns: 0, host: "" });
        }
        if open.len() == TRANSACTION_ROWS {
            batches.push(std::mem::take(&mut open));
        }
        RowFlow::Continue
    };
    opening::open_for_queries(store)
        .and_then(|answers| answers.run(&query, &mut take))
        .expect("the records of a store");
    batches.push(open);
    let batches = oldest_first(&batches);
    let mut last = 0;
    let chunk = |batch: Batch| {
        let first = last + 1;
        last += batch.len() as u64;
        let chunk = Chunk { stream: "raw".to_owned(), epoch: 1, first, last, end: false };
        Delivery::new(batch, Some(chunk), 1, None).0
    };
    batches.into_iter().map(chunk).collect()
}

/// The same records, oldest first; stores answer newest first.
fn oldest_first(batches: &[Batch]) -> Vec<Batch> {
    let rows: Vec<_> = batches.iter().flat_map(Batch::rows).collect();
    let in_order = |rows: &[Row<'_>]| {
        let mut batch = Batch::default();
        rows.iter().rev().for_each(|row| batch.push(&row.record(), Arrival { time_ns: 0, host: "" }));
        batch
    };
    rows.rchunks(TRANSACTION_ROWS).map(in_order).collect()
}
