//! A sink that does not take its records: a FIFO without a reader.

use crate::line;

use std::io::Read;
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, counted_in, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, Options};
use logspool::stats::Snapshot;

fn assert_identities(snapshot: &Snapshot) {
    for class in 0..6 {
        let refused: u64 = snapshot.refused.iter().map(|reason| reason[class]).sum();
        assert_eq!(snapshot.offered[class], snapshot.accepted[class] + refused);
    }
    for sink in &snapshot.sinks {
        counted_in(snapshot, sink.id as u32);
    }
}

#[test]
fn a_frozen_pipe_refuses_nothing_and_delays_no_other_sink() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let (fifo, file) = (folder.path().join("fifo"), folder.path().join("file.log"));
    let mut reader = make_fifo(&fifo);
    let frozen = route_to("frozen", file_sink(&fifo));
    let healthy_sink = file_sink(&file);
    let healthy = route_to("healthy", healthy_sink);
    const RECORDS: usize = 100_000;
    let mut longest = Duration::ZERO;
    for index in 0..RECORDS {
        let start = Instant::now();
        assert!(log(frozen, 20, &format!("{index:0>60}")), "record {index} was refused");
        longest = longest.max(start.elapsed());
        if index % 1000 == 0 {
            assert!(log(healthy, 20, "alive"));
        }
    }

    // The other sink's records are written although the pipe is stuck.
    assert!(pipeline::flush(Some(healthy_sink), Some(DEADLINE)));
    assert_eq!(RECORDS / 1000, std::fs::read_to_string(&file).unwrap().lines().count());
    assert_identities(&pipeline::snapshot().unwrap());
    println!("longest call {longest:?}");

    let thawed = std::thread::spawn(move || {
        let mut text = vec![0; RECORDS * 61];
        reader.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = thawed.join().unwrap();
    for (index, line) in text.lines().enumerate() {
        assert_eq!(index, line.parse::<usize>().unwrap());
    }
    assert_eq!(RECORDS, text.lines().count());
    let snapshot = pipeline::snapshot().unwrap();
    assert_identities(&snapshot);
    assert_eq!(0, snapshot.overflow_bytes, "overflow files are removed once written");
}
