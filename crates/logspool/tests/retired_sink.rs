//! A sink whose handler was destroyed at a place where blocking is not allowed.

use crate::line;

use std::path::Path;
use std::time::Instant;

use line::{DEADLINE, begin, duplicate_sink, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

/// Number of descriptors of this process that refer to `path`.
fn open_descriptors(path: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    links.filter(|link| std::fs::read_link(link.path()).is_ok_and(|target| target == path)).count()
}

fn await_closed(path: &Path) {
    let begun = Instant::now();
    while open_descriptors(path) > 0 {
        assert!(begun.elapsed() < DEADLINE, "{} is still open", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn everything_is_written_before_the_writer_closes_the_sink() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("retired.log");
    let sink = file_sink(&path);
    let route = route_to("retired", sink);
    for index in 0..1000 {
        assert!(log(route, 20, &index.to_string()));
    }
    assert_eq!(1, open_descriptors(&path));

    pipeline::retire_sink(sink);
    await_closed(&path);
    assert_eq!(1000, std::fs::read_to_string(&path).unwrap().lines().count());
}

#[test]
fn a_sink_without_a_record_is_closed_too() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unused.log");
    let sink = file_sink(&path);
    assert_eq!(1, open_descriptors(&path));

    pipeline::retire_sink(sink);
    await_closed(&path);
}

#[test]
fn a_sink_that_another_handler_uses_stays() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.log");
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let (first, second) = (duplicate_sink(&path, &file), duplicate_sink(&path, &file));
    assert_eq!(first, second);
    let route = route_to("shared", second);

    pipeline::retire_sink(first);
    assert!(log(route, 20, "still here"));
    assert!(pipeline::flush(Some(second), Some(DEADLINE)));
    assert_eq!("still here\n", std::fs::read_to_string(&path).unwrap());
}

#[test]
fn a_record_logged_after_the_sink_was_retired_is_counted() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late.log");
    let sink = file_sink(&path);
    let route = route_to("late", sink);
    pipeline::retire_sink(sink);
    await_closed(&path);

    assert!(log(route, 20, "late"));
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let counts =
        pipeline::snapshot().unwrap().sinks.into_iter().find(|found| found.id == sink as usize).unwrap().counts;
    assert_eq!(1, counts.accepted.iter().sum::<u64>());
    assert_eq!(1, counts.dropped.iter().flatten().sum::<u64>());
}
