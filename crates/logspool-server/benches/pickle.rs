//! How many pickled log records does one core read in a second?
//!
//! `cargo bench -p logspool-server --bench pickle`. Prints the median and the spread of seven rounds. Each record is
//! the one that `SocketHandler` sends for a call with one argument; its message is checked every time. `-- --json`
//! prints one object.

mod figures;

use std::time::Instant;

use logspool_server::decoders::log_record;
use logspool_server::decoders::pickle::PickleLimits;

use figures::Figures;

const RECORDS: usize = 500_000;
const ROUNDS: usize = 7;

fn main() {
    let corpus = include_str!("../tests/corpus/pickles-3.11.txt");
    let hex = corpus.lines().next().and_then(|line| line.split('\t').nth(1)).expect("the corpus has a record");
    let frame: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect();
    let mut rates: Vec<f64> = (0..ROUNDS).map(|_| round(&frame)).collect();
    rates.sort_by(f64::total_cmp);
    let [least, median, most] = [rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]];
    let bytes = frame.len();
    Figures::from_arguments().tell(
        "records",
        &[("rate", median * 1e6), ("least", least * 1e6), ("most", most * 1e6), ("bytes", bytes as f64)],
        &format!("{bytes} bytes a record: {median:.2} million records a second ({least:.2} to {most:.2})"),
    );
}

/// Millions of records per second.
fn round(frame: &[u8]) -> f64 {
    let began = Instant::now();
    for _ in 0..RECORDS {
        let record = log_record::read(std::hint::black_box(frame), PickleLimits::default()).expect("a record");
        assert_eq!("hello world", record.message);
    }
    RECORDS as f64 / began.elapsed().as_secs_f64() / 1e6
}
