//! The writer thread of a closed sink: it serves the next sink, and stops for a fork.

use crate::line;

use std::path::Path;
use std::time::Instant;

use line::{DEADLINE, begin, file_sink, log, native_threads, route_to};
use logspool::pipeline::{self, Options};

/// Thread ids of the writers.
fn writers() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let is_writer =
        |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "logspool-write\n");
    let writers = tasks.filter(|task| is_writer(&task.path()));
    writers.map(|task| task.file_name().into_string().unwrap()).collect()
}

/// Logs one line to a file that is opened and closed for it. Returns the writers while the file was open.
fn log_once(path: &Path, message: &str) -> Vec<String> {
    let sink = file_sink(path);
    assert!(log(route_to("a", sink), 20, message));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    let writers = writers();
    assert!(pipeline::close_sink(sink, DEADLINE));
    writers
}

#[test]
fn the_writer_of_a_closed_sink_serves_the_next_one_and_stops_for_a_fork() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let (mut before, mut lines) = (log_once(&path, "first"), "first\n".to_owned());
    // On a loaded machine the next sink may come after the thread has ended, but not each time.
    let is_shared = (0..100).any(|_| {
        let after = log_once(&path, "next");
        lines += "next\n";
        let is_shared = after.iter().any(|writer| before.contains(writer));
        before = after;
        is_shared
    });
    assert!(is_shared, "each sink had a thread of its own");

    pipeline::before_fork();
    let begun = Instant::now();
    while native_threads() > 0 {
        assert!(begun.elapsed() < DEADLINE, "threads are still there");
        std::thread::yield_now();
    }
    pipeline::after_fork_in_parent();
    log_once(&path, "after the fork");
    assert_eq!(lines + "after the fork\n", std::fs::read_to_string(&path).unwrap());
    assert_eq!(0, pipeline::end(DEADLINE));
}
