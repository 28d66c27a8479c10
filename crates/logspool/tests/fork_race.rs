//! Records that come while the native threads stop and start again are written without a further call.

use crate::line;

use std::time::Instant;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

#[test]
fn no_record_is_left_behind_when_the_threads_stop_for_a_fork_and_restart() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let route = route_to("a", file_sink(&path));

    for round in 0..200 {
        let forker = std::thread::spawn(|| {
            pipeline::before_fork();
            pipeline::after_fork_in_parent();
        });
        // Around the moment at which the collector stops.
        for line in 0..round % 20 {
            assert!(log(route, 20, &format!("{round} {line}")));
        }
        forker.join().unwrap();
        assert!(log(route, 20, &format!("{round} last")));
        let last = format!("{round} last\n");
        let deadline = Instant::now() + DEADLINE;
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with(&last)) {
            assert!(Instant::now() < deadline, "round {round} lies in the queue");
            std::thread::yield_now();
        }
    }
}
