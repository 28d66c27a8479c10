//! A sink that reports errors: a device without space, a file that may not grow.

use crate::line;

use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

#[test]
fn writes_to_a_full_device_are_retried_counted_and_dropped_at_the_deadline() {
    begin(Options::default());
    let sink = file_sink(std::path::Path::new("/dev/full"));
    let route = route_to("full", sink);
    for _ in 0..10 {
        assert!(log(route, 20, "nowhere to go"));
    }

    assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(200))));
    let snapshot = pipeline::snapshot().unwrap();
    let failing = snapshot.sinks.iter().find(|entry| entry.id == sink as usize).unwrap();
    assert!(failing.counts.errors > 0);
    assert_eq!(10, failing.counts.queued.iter().sum::<u64>());
    assert!(failing.error.contains("No space left"), "{}", failing.error);

    assert!(!pipeline::close_sink(sink, Duration::from_millis(50)));
    let snapshot = pipeline::snapshot().unwrap();
    let closed = snapshot.sinks.iter().find(|entry| entry.id == sink as usize).unwrap();
    assert_eq!(0, closed.counts.queued.iter().sum::<u64>());
    assert_eq!(10, closed.counts.dropped.iter().flatten().sum::<u64>());
}

#[test]
fn a_file_that_can_grow_again_gets_everything_once() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limited.log");
    let set_limit = |bytes: u64| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a valid limit. It applies to the whole process, but only this test's file reaches it.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(0, libc::setrlimit(libc::RLIMIT_FSIZE, &limit));
        }
    };
    let sink = file_sink(&path);
    let route = route_to("limited", sink);
    set_limit(10 * 1024 * 1024 + 7);
    const LINE: usize = 1024;
    const RECORDS: usize = 11 * 1024;
    for index in 0..RECORDS {
        assert!(log(route, 20, &format!("{index:0>width$}", width = LINE - 1)));
    }
    let begun = Instant::now();
    while std::fs::metadata(&path).unwrap().len() < 10 * 1024 * 1024 + 7 {
        assert!(begun.elapsed() < DEADLINE);
        std::thread::yield_now();
    }
    assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(20))));

    set_limit(libc::RLIM_INFINITY);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    let text = std::fs::read_to_string(&path).unwrap();
    for (index, line) in text.lines().enumerate() {
        assert_eq!(index, line.parse::<usize>().unwrap());
    }
    assert_eq!(RECORDS * LINE, text.len());
}
