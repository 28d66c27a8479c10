//! A thread that is preempted in the middle of a push, while its sink or the process ends.

use crate::line;

use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, log_around, route_to};
use logspool::pipeline::{self, Options};

/// Longer than any end takes that does not wait for the push.
const STOPPED: Duration = Duration::from_millis(100);

/// One test at a time: the end of the process affects all of it.
static ALONE: Mutex<()> = Mutex::new(());

/// Begins a push and calls `end` in the middle of it. Checks that its line is in the file at most `patience` after
/// `end` has returned.
fn end_in_the_middle(name: &str, folder: &Path, patience: Duration, end: impl FnOnce(u32)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    begin(Options::default());
    let path = folder.join(name);
    let sink = file_sink(&path);
    let route = route_to(name, sink);
    assert!(log(route, 20, "first"));
    let (say, inside) = mpsc::channel();
    std::thread::scope(|scope| {
        let caller = scope.spawn(move || {
            // The thread gets its lane before, so that the push is not stopped while it takes a lane.
            assert!(log(route, 20, "second"));
            log_around(route, 20, "third", || {
                say.send(()).unwrap();
                std::thread::sleep(STOPPED);
            })
        });
        inside.recv_timeout(DEADLINE).unwrap();
        end(sink);
        let written = || std::fs::read_to_string(&path).unwrap();
        let begun = Instant::now();
        while written().lines().count() < 3 && begun.elapsed() < patience {
            std::thread::yield_now();
        }
        assert_eq!("first\nsecond\nthird\n", written());
        assert!(caller.join().unwrap());
    });
}

#[test]
fn a_sink_is_closed_after_the_record_that_is_being_pushed() {
    let folder = tempfile::tempdir().unwrap();
    end_in_the_middle("closed.log", folder.path(), Duration::ZERO, |sink| {
        assert!(pipeline::close_sink(sink, DEADLINE))
    });
}

#[test]
fn a_sink_is_retired_after_the_record_that_is_being_pushed() {
    let folder = tempfile::tempdir().unwrap();
    end_in_the_middle("retired.log", folder.path(), DEADLINE / 10, pipeline::retire_sink);
}

#[test]
fn the_process_ends_after_the_record_that_is_being_pushed() {
    let folder = tempfile::tempdir().unwrap();
    end_in_the_middle("ended.log", folder.path(), Duration::ZERO, |_| {
        assert_eq!(0, pipeline::end(DEADLINE));
        pipeline::revert_end();
    });
}
