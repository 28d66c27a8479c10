//! A process that continues after it tried to end: a later start finds the records that it logs then.

use crate::line;

use std::path::PathBuf;
use std::time::Instant;

use line::{DEADLINE, begin, file_sink, log, native_threads, route_to};
use logspool::pipeline::{self, Options};

/// Whether a later start would find a segment of this process.
fn has_segment() -> bool {
    let folder = PathBuf::from(format!("/dev/shm/logspool-test-{}", std::process::id()));
    let names = folder.read_dir().map(|entries| entries.flatten().map(|entry| entry.file_name()).collect::<Vec<_>>());
    names.unwrap_or_default().iter().any(|name| name.to_string_lossy().ends_with(".seg"))
}

#[test]
fn records_logged_after_a_failed_exit_are_in_a_segment_again() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let generation = pipeline::id_epoch();
    let route = route_to("a", file_sink(&path));
    assert!(log(route, 20, "before"));
    assert_eq!(0, pipeline::empty(DEADLINE));
    assert!(has_segment(), "the process goes on");
    assert_eq!(0, pipeline::end(DEADLINE));
    assert!(!has_segment());
    // Logged by the thread that ends the process.
    assert!(log(route, 20, "between"));
    pipeline::revert_end();

    assert_ne!(generation, pipeline::id_epoch());
    let begun = Instant::now();
    while native_threads() > 0 {
        assert!(begun.elapsed() < DEADLINE, "threads of the first segment are still there");
        std::thread::yield_now();
    }
    let route = route_to("a", file_sink(&path));
    assert!(log(route, 20, "after"));
    assert!(pipeline::flush(None, Some(DEADLINE)));
    assert!(has_segment() && pipeline::snapshot().unwrap().survives);
    assert_eq!("before\nbetween\nafter\n", std::fs::read_to_string(&path).unwrap());
    assert_eq!(0, pipeline::end(DEADLINE));
    assert!(!has_segment());
    pipeline::revert_end();
}
