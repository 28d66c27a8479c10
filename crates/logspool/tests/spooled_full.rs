//! A full spool, and a spool whose folder disappears: refused records are counted, accepted records arrive.

use crate::line;

use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, counted, counted_in, file_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, Options};

const MIB: u64 = 1024 * 1024;

#[test]
fn a_full_spool_is_reported_and_accepts_records_again() {
    let folder = PathBuf::from(format!("/tmp/logspool-spooled-full-{}", std::process::id()));
    begin(Options {
        overflow_bytes: Some(2 * MIB),
        spool_dir: Some(folder.clone()),
        spool_bytes: 4 * MIB,
        queue_total_bytes: Some(MIB as usize),
        ..Options::default()
    });
    let files = tempfile::tempdir().unwrap();
    let fifo = files.path().join("fifo");
    let mut reader = make_fifo(&fifo);
    let sink = file_sink(&fifo);
    let route = route_to("frozen", sink);
    let (mut accepted, mut number, mut refused) = (Vec::new(), 0_u64, 0);
    let begun = Instant::now();
    // Until both are full. Records refused before that came too fast for the disk.
    while pipeline::snapshot().is_none_or(|snapshot| counted_in(&snapshot, sink).spool_error.is_empty())
        || refused < 1000
    {
        assert!(begun.elapsed() < DEADLINE, "{:?}", pipeline::snapshot());
        for _ in 0..100 {
            match log(route, 20, &format!("{number:0>200}")) {
                true => accepted.push(number),
                false => refused += 1,
            }
            number += 1;
        }
    }
    let full = pipeline::snapshot().unwrap();
    let counts = counted_in(&full, sink);
    assert!(counts.spool_error.contains("it takes"), "{}", counts.spool_error);
    assert!(counts.spool_bytes <= 4 * MIB && sum(counts.spooled) > 5_000, "{counts:?}");
    assert_eq!(number, full.offered.iter().sum::<u64>());
    assert_eq!(refused, full.refused.iter().flatten().sum::<u64>());

    let thawed = std::thread::spawn(move || {
        let (mut text, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while !text.ends_with(b"the end\n") {
            let count = reader.read(&mut buffer).unwrap();
            text.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(text).unwrap()
    });
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    // The spool takes records again, and reports no error any more.
    let begun = Instant::now();
    while !counted(sink).spool_error.is_empty() {
        assert!(begun.elapsed() < DEADLINE);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(log(route, 20, "the end"));
    let text = thawed.join().unwrap();
    let numbers: Vec<u64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    let drained = counted(sink);
    // A record that was accepted and then found the overflow full is counted as dropped.
    let dropped: u64 = drained.dropped.iter().flatten().sum();
    assert_eq!(accepted.len() as u64, numbers.len() as u64 + dropped, "{drained:?}");
    assert!(numbers.is_sorted() && numbers.iter().all(|number| accepted.binary_search(number).is_ok()));
    assert_eq!(0, pipeline::drain(DEADLINE));
    std::fs::remove_dir(folder).expect("the spool is gone with the process");
}
