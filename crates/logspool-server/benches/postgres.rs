//! How close does the PostgreSQL store come to a raw `COPY BINARY` of the same rows, and what do chunk ids cost?
//!
//! `cargo bench -p logspool-server --bench postgres`, with `-- 20 5` for 20 transactions of 10,000 rows in each of 5
//! rounds. Each round runs all four ways one after the other, on a separate server with `fsync`. The rows in the table
//! are counted every time. The raw ways send bytes that were encoded before. One table is plain, with a BRIN index on
//! the time. The other one is the store's table, which also has partitions and an index on traces.

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/postgres/mod.rs"]
mod postgres;
mod raw;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::{Chunk, ChunkPosition, Delivery};
use logspool_server::record::Record;
use logspool_server::stores::Store;
use logspool_server::stores::postgres::PostgresWriter;
use logspool_server::value::Value;
use postgres::batches::{config, now_ns};
use postgres::{Database, Server};

/// Number of rows in a transaction, and in a chunk.
const ROWS: u64 = 10_000;
const CHUNK: u64 = 500;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (transactions, rounds) = (numbers.next().unwrap_or(20), numbers.next().unwrap_or(5));
    let options = "-c shared_buffers=512MB -c max_wal_size=8GB -c checkpoint_timeout=1h";
    let Some(server) = Server::start_with(options) else { return };
    let database = server.database();
    let mut store = PostgresWriter::new(&config(&database.url));
    let group: Vec<_> = (0..ROWS / CHUNK).map(|part| Delivery::new(batch(part), None, 1, None).0).collect();
    store.write(&group).expect("a store");
    let encoded = raw::postgres::encoded(&database.url, "logspool.records", ROWS as usize).remove(0);
    let copies: Vec<Bytes> = vec![encoded.clone(); transactions as usize];
    database.execute(
        "CREATE TABLE plain (LIKE logspool.records);
         CREATE INDEX ON plain USING brin (time_ns)",
    );

    let mut rates = [const { Vec::new() }; 4];
    for round in 0..rounds {
        let groups: Vec<_> = (0..transactions).map(|number| numbered(round, number)).collect();
        let measured = [
            rate(&database, "plain", transactions, || {
                raw::postgres::copy(&database.url, "plain", &copies);
            }),
            rate(&database, "logspool.records", transactions, || {
                raw::postgres::copy(&database.url, "logspool.records", &copies);
            }),
            rate(&database, "logspool.records", transactions, || {
                (0..transactions).for_each(|_| drop(store.write(&group).expect("written")));
            }),
            rate(&database, "logspool.records", transactions, || {
                groups.iter().for_each(|group| drop(store.write(group).expect("written")));
            }),
        ];
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }
    println!(
        "{} bytes a row encoded, {transactions} transactions of {ROWS} rows, median of {rounds}",
        encoded.len() as u64 / ROWS
    );
    let raw = median(&rates[0]);
    for (name, rates) in ["raw, plain table", "raw, store's table", "store", "store, chunk ids"].iter().zip(&rates) {
        let (least, most) = (rates.iter().copied().fold(f64::MAX, f64::min), rates.iter().copied().fold(0.0, f64::max));
        let median = median(rates);
        println!("{name:20} {median:9.0} rows/s ({least:.0} to {most:.0}), {:.2} of raw", median / raw);
    }
}

/// Rows per second.
fn rate(database: &Database, table: &str, transactions: u64, work: impl FnOnce()) -> f64 {
    database.execute(&format!("TRUNCATE {table}; CHECKPOINT"));
    let began = Instant::now();
    work();
    let elapsed = began.elapsed().as_secs_f64();
    let rows = database.number(&format!("SELECT count(*) FROM {table}"));
    assert_eq!(transactions * ROWS, rows.cast_unsigned());
    (transactions * ROWS) as f64 / elapsed
}

fn median(rates: &[f64]) -> f64 {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Typical records of a web service.
fn batch(part: u64) -> Batch {
    let mut batch = Batch::default();
    let now = now_ns();
    for number in part * CHUNK..(part + 1) * CHUNK {
        let record = Record {
            time_ns: Some(now + number as i64),
            level: if number % 10 == 0 { 40 } else { 20 },
            logger: "shop.web.requests".into(),
            message: format!(
                "GET /articles/{number}/reviews answered 200 after {} ms for client {}",
                number % 97,
                number % 511
            )
            .into(),
            file: Some("/srv/shop/web.py".into()),
            line: Some(42),
            process: Some(4242),
            thread: Some(140_000_000_000_000 + number % 8),
            trace_id: (number % 2 == 0).then(|| format!("{number:032x}").into()),
            fields: vec![
                ("status".into(), Value::Int(200)),
                ("user".into(), Value::text(format!("u{}", number % 1000))),
                ("elapsed".into(), Value::Float(number as f64 / 8.0)),
            ],
            ..Record::default()
        };
        batch.push(&record, Arrival { time_ns: now, host: "web-1" });
    }
    batch
}

/// A transaction of chunks, each from a different stream.
fn numbered(round: u64, number: u64) -> Vec<Arc<Delivery>> {
    let chunk = |part: u64| Chunk {
        stream: format!("5a8ba1e2-7f0c-4d55-9a55-{round:06}{part:06}"),
        epoch: 1,
        first: number * CHUNK + 1,
        last: (number + 1) * CHUNK,
        position: ChunkPosition::Later,
        end: false,
    };
    (0..ROWS / CHUNK).map(|part| Delivery::new(batch(part), Some(chunk(part)), 1, None).0).collect()
}
