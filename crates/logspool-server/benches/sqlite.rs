//! How much slower than raw inserts of the same rows is the SQLite store, and how fast does it answer?
//!
//! `cargo bench -p logspool-server --bench sqlite`. Both write 10,000 rows per transaction with the same index,
//! alternately, each time into a new file. The number of rows on disk is checked. The output is the median ratio of
//! five rounds, with the smallest and the largest. Then a day of rows is stored, indexed and queried; median of five.
//! `LOGSPOOL_BENCH_ROWS` sets the number of these rows (500,000). `-- writing` and `-- asking` run only one part,
//! `--json` prints one object.

mod figures;
mod raw;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logspool_server::batch::{Arrival, Batch};
use logspool_server::delivery::{Chunk, Delivery};
use logspool_server::query::{Query, parse};
use logspool_server::record::Record;
use logspool_server::stores::sqlite::{Indexing, SqliteOptions, SqliteReader, SqliteStore, StoreClock};
use logspool_server::stores::{QueryReader, RowFlow, Store};
use logspool_server::value::Value;
use raw::TRANSACTION_ROWS;

use figures::Figures;
const ROUNDS: usize = 5;
const WRITTEN_ROWS: usize = 200_000;

/// 2026-11-22T00:00:00Z.
const DAY: i64 = 1_795_305_600_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;

fn main() {
    // `cargo test --benches` only checks that the bench runs.
    let is_asked_for = |word: &str| std::env::args().any(|argument| argument == word);
    let default = if is_asked_for("--bench") { 500_000 } else { 1_000 };
    let rows = std::env::var("LOGSPOOL_BENCH_ROWS").map_or(default, |rows| rows.parse().expect("a number"));
    let mut figures = Figures::from_arguments();
    if !is_asked_for("asking") {
        writing(WRITTEN_ROWS.min(rows), &mut figures);
    }
    if !is_asked_for("writing") {
        asking(rows, &mut figures);
    }
}

fn writing(rows: usize, figures: &mut Figures) {
    let deliveries: Vec<_> = deliveries(rows).collect();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let folder = tempfile::tempdir().expect("a folder");
        let raw = rows as f64 / raw::sqlite::insert(&folder.path().join("raw.sqlite"), &deliveries);
        let store = stored(&folder.path().join("store"), &deliveries, rows);
        ratios.push(store / raw);
    }
    ratios.sort_by(f64::total_cmp);
    let [least, median, most] = [ratios[0], ratios[ROUNDS / 2], ratios[ROUNDS - 1]];
    figures.tell(
        "writing",
        &[("of_raw", median), ("least", least), ("most", most)],
        &format!("writing: {median:.2} of raw inserts ({least:.2} to {most:.2}), {rows} rows a round"),
    );
}

/// Rows per second of the store.
fn stored(folder: &Path, deliveries: &[Arc<Delivery>], rows: usize) -> f64 {
    let mut store = open(folder, Indexing::Off);
    let began = Instant::now();
    for delivery in deliveries {
        store.write(std::slice::from_ref(delivery)).expect("a transaction");
    }
    let rate = rows as f64 / began.elapsed().as_secs_f64();
    assert_eq!(rows as u64, store.reader().stats().expect("stats").rows);
    rate
}

fn asking(rows: usize, figures: &mut Figures) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open(folder.path(), Indexing::Background);
    let began = Instant::now();
    for delivery in deliveries(rows) {
        store.write(&[delivery]).expect("a transaction");
    }
    let stored = rows as f64 / began.elapsed().as_secs_f64();
    let answers = store.reader();
    while answers.stats().expect("stats").unindexed_rows > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let indexed = rows as f64 / began.elapsed().as_secs_f64();
    let row_bytes = answers.stats().expect("stats").bytes as f64 / rows as f64;
    figures.tell(
        "stored",
        &[("rows", rows as f64), ("rate", stored), ("indexed_rate", indexed), ("row_bytes", row_bytes)],
        &format!(
            "{stored:.0} rows a second with the indexer beside, {indexed:.0} until all is indexed, \
             {row_bytes:.0} bytes a row on disk"
        ),
    );

    let last_hour = Some(DAY + DAY_NS - 3_600_000_000_000);
    for (what, text, since_ns, limit) in [
        ("newest 100 errors of a logger, last hour", "logger=app.module7 level>=error", last_hour, Some(100)),
        ("newest 100 errors of a logger", "logger=app.module7 level>=error", None, Some(100)),
        ("newest 100", "", None, Some(100)),
        ("newest 100 of a frequent word", "request", None, Some(100)),
        ("a trace", "trace_id=trace-77", None, None),
        ("a rare word", "order4242x", None, None),
        ("count of two words", "request payment | count by level", None, None),
        ("histogram of 24 h", "| histogram 1m", None, None),
        ("histogram of 24 h, errors of a logger", "logger=app.module7 level>=error | histogram 1m", None, None),
        ("histogram of 24 h from within a minute", "| histogram 1h", Some(DAY + 1), None),
    ] {
        let expression = parse(text, DAY).expect("a query");
        let query = Query { filter: expression.filter, stage: expression.stage, since_ns, until_ns: None, limit };
        ask(what, &answers, &query, figures);
    }
}

fn ask(what: &str, answers: &SqliteReader, query: &Query, figures: &mut Figures) {
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..ROUNDS {
        rows = 0;
        let began = Instant::now();
        let count = &mut |_: logspool_server::stores::AnswerRow<'_>| {
            rows += 1;
            RowFlow::Continue
        };
        answers.run(query, count).expect("an answer");
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let first = times[0];
    times.sort_by(f64::total_cmp);
    let [least, median, most] = [times[0], times[ROUNDS / 2], times[ROUNDS - 1]];
    figures.tell(
        what,
        &[("first_ms", first), ("ms", median), ("most_ms", most), ("rows", f64::from(rows))],
        &format!("{what}: {median:.2} ms ({least:.2} to {most:.2}), the first time {first:.2} ms, {rows} rows"),
    );
}

fn open(folder: &Path, indexing: Indexing) -> SqliteStore {
    let options = SqliteOptions { indexing, clock: StoreClock::new(|| DAY), ..SqliteOptions::default() };
    SqliteStore::open(folder, options).expect("a store")
}

/// The rows of a day, in chunks of a stream.
fn deliveries(rows: usize) -> impl Iterator<Item = Arc<Delivery>> {
    let step = DAY_NS / rows as i64;
    let chunk = move |first: usize| {
        let mut batch = Batch::default();
        let last = (first + TRANSACTION_ROWS).min(rows);
        for number in first..last {
            batch
                .push(&record(number, DAY + number as i64 * step), Arrival { time_ns: DAY, host: "web-1.example.org" });
        }
        let (first, last) = (first as u64 + 1, last as u64);
        let chunk = Chunk { stream: "bench".to_owned(), epoch: 1, first, last, end: false };
        Delivery::new(batch, Some(chunk), 1, None).0
    };
    (0..rows).step_by(TRANSACTION_ROWS).map(chunk)
}

fn record(number: usize, time_ns: i64) -> Record<'static> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    Record {
        time_ns: Some(time_ns),
        level: if (mixed / 20).is_multiple_of(100) { 40 } else { 20 },
        logger: format!("app.module{}", mixed % 20).into(),
        message: format!(
            "request {number} of order{number}x by user{} took {} ms, payment accepted",
            mixed % 997,
            mixed % 251
        )
        .into(),
        process: Some(4711),
        thread: Some(140_000_000_000 + number as u64 % 8),
        trace_id: (number.is_multiple_of(2)).then(|| format!("trace-{}", number / 10).into()),
        fields: vec![
            ("status".into(), Value::Int(200)),
            ("path".into(), Value::text("/api/v1/orders")),
            ("user".into(), Value::text(format!("u{}", mixed % 997))),
        ],
        ..Record::default()
    }
}
