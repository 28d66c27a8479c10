//! Records far larger than a lane, for a sink that takes nothing: they have a limit of bytes of their own, and accepted
//! ones are written one by one.

use crate::line;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, counted, file_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, BlockingTimeout, Options};
use logspool::stats::DropReason;

const BYTES: usize = 1024 * 1024;
/// The smallest limit for all large records.
const BOUND: u64 = 16 * 1024 * 1024;

/// Bytes of large records in the queue folder.
fn blob_bytes() -> u64 {
    let folder = format!("/dev/shm/logspool-test-{}", std::process::id());
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let blobs = entries.filter(|entry| entry.file_name().to_string_lossy().contains(".blob-"));
    blobs.map(|entry| entry.metadata().unwrap().len()).sum()
}

fn text(index: u64) -> String {
    format!("{index:08}{}", "x".repeat(BYTES - 8))
}

#[test]
fn large_records_are_bounded_while_unread_and_written_one_by_one() {
    // No large record fits into the overflow.
    begin(Options {
        overflow_bytes: Some(BYTES as u64),
        blocking_timeout: BlockingTimeout(DEADLINE),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    // First, because beside a sink at work a sink that takes nothing drops its records.
    a_stuck_sink_has_a_bound(&folder.path().join("fifo"));
    a_sink_at_work_takes_any_number(&folder.path().join("app.log"));
}

/// A write that takes longer than a slow disk needs makes the sink count as stuck. It then drops what the overflow
/// cannot hold, as on a very busy machine: so the records are counted in each attempt, and one without a drop is enough.
fn a_sink_at_work_takes_any_number(path: &Path) {
    assert!((0..5).any(|attempt| dropped_at_work(&path.with_extension(attempt.to_string())) == 0));
}

/// Logs 60 large records from three threads. Returns how many of them the sink dropped.
fn dropped_at_work(path: &Path) -> u64 {
    let sink = file_sink(path);
    let route = route_to("at work", sink);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| (0..20).for_each(|index| assert!(log(route, 40, &text(index)), "{index} was refused")));
        }
    });
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    let counts = counted(sink);
    let (written, dropped) = (sum(counts.written), counts.dropped.map(sum));
    assert_eq!(60, written + dropped[DropReason::OverflowFull as usize], "dropped, by reason: {dropped:?}");
    assert_eq!(written * (BYTES as u64 + 1), std::fs::metadata(path).unwrap().len());
    assert!(pipeline::close_sink(sink, DEADLINE));
    60 - written
}

fn a_stuck_sink_has_a_bound(path: &Path) {
    let reader = make_fifo(path);
    let sink = file_sink(path);
    let route = route_to("stuck", sink);
    let (mut accepted, mut refused) = (0, 0);
    while refused < 5 {
        match log(route, 20, &text(accepted)) {
            true => accepted += 1,
            false => refused += 1,
        }
    }
    assert_eq!(refused, pipeline::snapshot().unwrap().refused[3][2]);
    assert!(log(route, 40, &text(accepted)), "a part is for errors");
    accepted += 1;
    let taken = blob_bytes();
    assert!(taken > BOUND / 2 && taken <= BOUND, "{taken} bytes of {accepted} records");

    let thawed = std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut index = 0;
        while index < accepted {
            let mut line = Vec::new();
            reader.read_until(b'\n', &mut line).unwrap();
            // Lines about refused records come in between.
            if !line.ends_with(b"the queue was full\n") {
                assert!(line == (text(index) + "\n").into_bytes(), "record {index}");
                index += 1;
            }
        }
        reader
    });
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let counts = counted(sink);
    assert_eq!(0, counts.dropped.into_iter().map(sum).sum::<u64>(), "what is let in is written");
    let _reader = thawed.join().unwrap();
    let snapshot = pipeline::snapshot().unwrap();
    let batches = &snapshot.sinks.iter().find(|known| known.id == sink as usize).unwrap().reading.batch_records;
    assert!(batches.count >= accepted, "{} batches of {accepted} large records", batches.count);
    let begun = Instant::now();
    while blob_bytes() > 0 {
        assert!(begun.elapsed() < DEADLINE, "{} bytes stay", blob_bytes());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(pipeline::close_sink(sink, DEADLINE));
}
