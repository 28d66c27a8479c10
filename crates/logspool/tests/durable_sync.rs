//! Mode `Sync`: a call returns when its record is durable, and many calls share a sync.

use crate::line;

use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, Durability, Options};
use logspool::stats::SinkSnapshot;

const TIMEOUT: Duration = Duration::from_secs(1);

fn options() -> Options {
    Options { durability: Durability::Sync, durability_timeout: TIMEOUT, ..Options::default() }
}

fn sink_of(sink: u32) -> SinkSnapshot {
    pipeline::snapshot().unwrap().sinks.into_iter().find(|found| found.id == sink as usize).unwrap()
}

/// Calls that returned before their record was durable.
fn not_durable() -> u64 {
    pipeline::snapshot().unwrap().not_durable.iter().sum()
}

#[test]
fn records_of_returned_calls_are_written_and_synced() {
    begin(options());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sync.log");
    let sink = file_sink(&path);
    let route = route_to("alone", sink);
    for index in 0..50 {
        assert!(log(route, 20, &format!("record {index}")));
        let text = std::fs::read_to_string(&path).unwrap();

        assert_eq!(index + 1, text.lines().count());
        let reading = sink_of(sink).reading;
        assert!(reading.sync_seconds.count > index as u64, "{index}: {} syncs", reading.sync_seconds.count);
    }
}

#[test]
fn threads_share_syncs() {
    begin(options());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("group.log");
    let sink = file_sink(&path);
    let route = route_to("group", sink);
    const THREADS: usize = 16;
    const RECORDS: usize = 50;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for index in 0..RECORDS {
                    assert!(log(route, 20, &format!("{thread} {index}")));
                }
            });
        }
    });

    assert_eq!(THREADS * RECORDS, std::fs::read_to_string(&path).unwrap().lines().count());
    let syncs = sink_of(sink).reading.sync_seconds.count;
    assert!(syncs < (THREADS * RECORDS / 2) as u64, "{syncs} syncs");
}

#[test]
fn a_frozen_pipe_times_out_only_its_own_calls() {
    begin(options());
    let folder = tempfile::tempdir().unwrap();
    let (fifo, file) = (folder.path().join("fifo"), folder.path().join("file.log"));
    let reader = make_fifo(&fifo);
    let frozen_sink = file_sink(&fifo);
    let frozen = route_to("frozen", frozen_sink);
    let healthy = route_to("healthy", file_sink(&file));
    // More bytes than a pipe holds.
    let long = "x".repeat(30_000);
    let before = not_durable();
    let mut timed_out = 0;
    while timed_out == 0 {
        let start = Instant::now();
        assert!(log(frozen, 20, &long));
        if not_durable() > before {
            timed_out += 1;
            assert!(start.elapsed() >= TIMEOUT, "{:?}", start.elapsed());
        }
    }
    let start = Instant::now();
    for index in 0..20 {
        assert!(log(healthy, 20, &format!("record {index}")));
        assert_eq!(index + 1, std::fs::read_to_string(&file).unwrap().lines().count());
    }

    println!("20 calls beside a frozen pipe took {:?}", start.elapsed());
    assert_eq!(before + 1, not_durable(), "no call for the file was kept waiting");
    let thawed = std::thread::spawn(move || {
        let mut reader = reader;
        let mut text = vec![0; 100_000];
        while !text.is_empty() && std::io::Read::read(&mut reader, &mut text).unwrap() == text.len() {}
        reader
    });
    assert!(pipeline::flush(Some(frozen_sink), Some(DEADLINE)));
    assert!(log(frozen, 20, "a pipe is durable when it is written"));
    assert_eq!(before + 1, not_durable());
    drop(thawed.join().unwrap());
}
