//! A sink that stalls longer than tmpfs has room: its records go to disk and come back in order.

use crate::line;

use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use line::{DEADLINE, begin, counted, counted_in, file_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, BlockingTimeout, Options};

const OVERFLOW_BYTES: u64 = 8 * 1024 * 1024;

fn spool_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/logspool-spooled-{}", std::process::id()))
}

fn begin_with_spool() {
    begin(Options {
        overflow_bytes: Some(OVERFLOW_BYTES),
        spool_dir: Some(spool_folder()),
        // Less than half of it is used, so nothing warns that the queue fills up.
        spool_bytes: 256 * 1024 * 1024,
        // This program logs faster than a busy disk can write.
        blocking_timeout: BlockingTimeout(DEADLINE),
        ..Options::default()
    });
}

fn await_that(what: &str, mut is_true: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_true() {
        assert!(begun.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_frozen_pipe_fills_the_spool_and_then_gets_everything_in_order() {
    begin_with_spool();
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mut reader = make_fifo(&fifo);
    let sink = file_sink(&fifo);
    let route = route_to("frozen", sink);
    const FROZEN: usize = 400_000;
    const LIVE: usize = 20_000;
    const LINE: usize = 61;
    // Three times the room of tmpfs; one line is longer than a frame of the spool.
    const LONG: usize = 100_000;
    const LONG_BYTES: usize = 5_000_000;
    let line = |index: usize| match index {
        LONG => "x".repeat(LONG_BYTES),
        _ => format!("{index:0>width$}", width = LINE - 1),
    };
    for index in 0..FROZEN {
        let accepted = log(route, 40, &line(index));
        assert!(accepted, "record {index} was refused: {:?}", counted(sink));
        if index % 50_000 == 0 {
            counted(sink);
        }
    }
    await_that("most records are on disk", || {
        let counts = counted(sink);
        assert_eq!("", counts.spool_error);
        sum(counts.spooled) > (FROZEN - 50_000) as u64
    });
    let stalled = pipeline::snapshot().unwrap();
    assert!(stalled.overflow_bytes <= OVERFLOW_BYTES);
    assert!(counted_in(&stalled, sink).spool_bytes >= 22_000_000);

    let thawed = std::thread::spawn(move || {
        let mut text = vec![0; (FROZEN + LIVE) * LINE + LONG_BYTES + 1 - LINE];
        reader.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    for index in FROZEN..FROZEN + LIVE {
        assert!(log(route, 40, &line(index)), "record {index} was refused");
    }
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = thawed.join().unwrap();
    assert_eq!(FROZEN + LIVE, text.lines().count());
    for (index, found) in text.lines().enumerate() {
        assert!(found == line(index), "line {index} is {:.80}", found);
    }
    let drained = counted(sink);
    assert_eq!(((FROZEN + LIVE) as u64, 0, 0), (sum(drained.written), sum(drained.queued), sum(drained.spooled)));

    assert_eq!(0, pipeline::drain(DEADLINE));
    assert!(!spool_folder().read_dir().unwrap().flatten().any(|_| true), "the spool is gone with the process");
    std::fs::remove_dir(spool_folder()).unwrap();
}
