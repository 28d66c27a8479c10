//! How many syslog lines does one core read, and how many does it write to a text file?
//!
//! `cargo bench -p logspool-server --bench syslog`. Prints the median and the spread of seven rounds. The first part
//! finds the ends of RFC 5424 lines and reads them into batches, in pieces of 64 KiB as from a connection. The second
//! part writes those batches to a file. Lines are counted each time. `-- 1` runs one round, for counting instructions.

use std::sync::Arc;
use std::time::Instant;

use logspool_server::connection::frame_reader::FrameReader;
use logspool_server::connection::framing::FrameScan;
use logspool_server::delivery::Delivery;
use logspool_server::metrics::Metrics;
use logspool_server::peer::Peer;
use logspool_server::protocols::syslog::SYSLOG;
use logspool_server::stores::Store;
use logspool_server::stores::file::FileStore;
use logspool_server::stores::private::Readers;

const LINES: usize = 200_000;
const PIECE_BYTES: usize = 64 * 1024;
const LIMIT: usize = 1 << 20;

fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(7);
    let stream: String = (0..LINES)
        .map(|number| {
            let (second, micros) = (number / 10_000, number % 10_000 * 100);
            format!(
                "<14>1 2026-11-22T10:20:{second:02}.{micros:06}Z web-1.example.org shop 4711 - - client {} sends record \
                 {number:09} of a request that took 1.250 ms\n",
                number % 7
            )
        })
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let (mut read, mut written) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let began = Instant::now();
        let deliveries = deliveries(stream.as_bytes());
        read.push(LINES as f64 / began.elapsed().as_secs_f64());
        let path = folder.path().join(format!("{round}.log"));
        let mut store = FileStore::open(&path, Readers::Owner).expect("a file");
        let began = Instant::now();
        store.write(&deliveries).expect("written");
        written.push(LINES as f64 / began.elapsed().as_secs_f64());
        assert_eq!(LINES, std::fs::read_to_string(&path).expect("a file").lines().count());
    }
    for (what, mut rates) in [("read", read), ("written to a file", written)] {
        rates.sort_by(f64::total_cmp);
        let [least, median, most] = [rates[0], rates[rates.len() / 2], rates[rates.len() - 1]];
        println!("{what}: {median:.0} lines a second ({least:.0} to {most:.0})");
    }
}

/// The lines as a connection reads them: one batch per piece.
fn deliveries(stream: &[u8]) -> Vec<Arc<Delivery>> {
    let metrics = Metrics::default();
    let mut framer = (SYSLOG.frame_format().expect("syslog has frames").framer)(LIMIT);
    let mut reader = FrameReader::new(&SYSLOG, Peer::local(0), &metrics);
    let (mut made, mut waiting) = (Vec::new(), Vec::new());
    for piece in stream.chunks(PIECE_BYTES) {
        waiting.extend_from_slice(piece);
        reader.mark_arrival();
        let mut at = 0;
        while let FrameScan::Frame { from, to, next } = framer.scan(&waiting[at..]).expect("lines") {
            reader.read(&waiting[at + from..at + to]);
            at += next;
        }
        waiting.drain(..at);
        made.push(Delivery::new(reader.take(), None, 1, None).0);
    }
    // The last line ends with the stream.
    reader.read(&waiting);
    made.push(Delivery::new(reader.take(), None, 1, None).0);
    made
}
