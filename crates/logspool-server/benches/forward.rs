//! How many records of Forward messages does one core read in a second?
//!
//! `cargo bench -p logspool-server --bench forward`. Prints the median and the spread of seven rounds. The messages
//! have 100 records as logspool's own client sends them, packed and compressed. Each round finds the end of the
//! message, reads it, and puts the records into a batch or only counts them.

use std::io::Write;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use logspool_server::batch::{Arrival, Batch};
use logspool_server::decoders::forward::{self, ForwardLimits, ReadProgress, RecordFlow, ScannedFrame, Scanner};
use rmp::encode;

const RECORDS: usize = 100;
const MESSAGES: usize = 5_000;
const ROUNDS: usize = 7;

fn main() {
    let entries: Vec<u8> = (0..RECORDS).flat_map(entry).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&entries).expect("a Vec takes every byte");
    let compressed = message(&gzip.finish().expect("a Vec takes every byte"), "gzip");
    for (name, frame) in [("packed", message(&entries, "text")), ("compressed", compressed)] {
        for into in [Into::Nothing, Into::Batch] {
            let mut rates: Vec<f64> = (0..ROUNDS).map(|_| round(&frame, into)).collect();
            rates.sort_by(f64::total_cmp);
            println!(
                "{name}, {} bytes a record, into {into:?}: {:.2} million records a second ({:.2} to {:.2})",
                frame.len() / RECORDS,
                rates[ROUNDS / 2],
                rates[0],
                rates[ROUNDS - 1]
            );
        }
    }
}

/// The destination of the records.
#[derive(Debug, Clone, Copy)]
enum Into {
    Nothing,
    Batch,
}

/// Millions of records per second.
fn round(frame: &[u8], into: Into) -> f64 {
    let limits = ForwardLimits::default();
    let mut inflated = Vec::new();
    let began = Instant::now();
    for _ in 0..MESSAGES {
        let frame = std::hint::black_box(frame);
        let complete = Scanner::default().frame(frame, &limits).expect("a message");
        assert_eq!(ScannedFrame::Complete { length: frame.len() }, complete);
        let message = forward::read(frame, &limits).expect("a message");
        let mut batch = Batch::default();
        let mut count = 0;
        let read = message.records(&mut inflated, limits.expanded_entry, 0).read(|record| {
            assert_eq!("shop.cart", record.logger);
            count += 1;
            if let Into::Batch = into {
                batch.push(record, Arrival { time_ns: 0, host: "" });
            }
            RecordFlow::Continue
        });
        assert_eq!(ReadProgress::Done, read.expect("records"));
        assert_eq!(RECORDS, count);
    }
    (MESSAGES * RECORDS) as f64 / began.elapsed().as_secs_f64() / 1e6
}

fn message(entries: &[u8], compressed: &str) -> Vec<u8> {
    let mut to = vec![0x93];
    text(&mut to, "logspool");
    encode::write_bin(&mut to, entries).expect("a Vec takes every byte");
    to.push(0x83);
    text(&mut to, "chunk");
    text(&mut to, "web-1/4711/1/1-100");
    text(&mut to, "size");
    number(&mut to, RECORDS);
    text(&mut to, "compressed");
    text(&mut to, compressed);
    to
}

fn entry(place: usize) -> Vec<u8> {
    let mut to = vec![0x92, 0xD7, 0x00];
    to.extend(1_700_000_000_u32.to_be_bytes());
    to.extend((place as u32 * 1000).to_be_bytes());
    to.push(0x8B);
    let texts = [
        ("logger", "shop.cart".to_owned()),
        ("message", format!("order {} of customer {} took {} ms", place * 7919, place * 31 % 97, place % 13)),
        ("file", "/srv/shop/cart.py".to_owned()),
        ("function", "pay".to_owned()),
        ("host", "web-1".to_owned()),
        ("process_name", "MainProcess".to_owned()),
        ("thread_name", "ThreadPoolExecutor-0_1".to_owned()),
    ];
    for (name, value) in texts {
        text(&mut to, name);
        text(&mut to, &value);
    }
    for (name, value) in [("level", 20), ("line", 42), ("process", 4711), ("customer", place * 31 % 97)] {
        text(&mut to, name);
        number(&mut to, value);
    }
    to
}

fn text(to: &mut Vec<u8>, text: &str) {
    encode::write_str(to, text).expect("a Vec takes every byte");
}

fn number(to: &mut Vec<u8>, number: usize) {
    encode::write_uint(to, number as u64).expect("a Vec takes every byte");
}
