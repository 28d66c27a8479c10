//! Decodes pickled log records from stdin for the tests in `tests/service/`.
//!
//! Each input line is a frame in hex, without its length. Each output line is the record as JSON, or `error: ` and the
//! reason.

use std::io::{BufRead, Write};

use logspool_server::decoders::log_record;
use logspool_server::decoders::pickle::{self, PickleLimits};

fn main() {
    let whole = std::env::args().any(|argument| argument == "--value");
    // Stdout is flushed after each line, because the caller waits for each answer.
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let frame = bytes(line.expect("stdin holds text").trim());
        let answer = if whole { value(&frame) } else { record(&frame) };
        writeln!(out, "{}", answer.unwrap_or_else(|error| format!("error: {error}"))).expect("stdout takes every line");
    }
}

/// The pickle as one value of any type.
fn value(frame: &[u8]) -> Result<String, String> {
    let pickle = pickle::read(frame, PickleLimits::default()).map_err(|error| error.to_string())?;
    serde_json::to_string(&pickle.value()).map_err(|error| error.to_string())
}

/// The pickle as a log record.
fn record(frame: &[u8]) -> Result<String, String> {
    let record = log_record::read(frame, PickleLimits::default()).map_err(|error| error.to_string())?;
    serde_json::to_string(&record).map_err(|error| error.to_string())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).expect("hex") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
