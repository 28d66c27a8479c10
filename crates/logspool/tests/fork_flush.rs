//! A flush that is requested while another thread forks: no native thread runs at that moment.

use crate::line;

use std::time::Duration;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Flush, Options};

#[test]
fn a_flush_requested_while_the_threads_are_stopped_is_answered() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let route = route_to("flushed", file_sink(&folder.path().join("flushed.log")));
    assert!(log(route, 20, "all that is logged"));
    assert!(pipeline::flush(None, Some(DEADLINE)));

    pipeline::before_fork();
    assert!(Flush::begin(None).is_none(), "nothing is queued, so nobody has to answer");
    assert!(log(route, 20, "logged during the fork"));
    let flush = Flush::begin(None).unwrap();
    assert!(!flush.wait(Duration::from_millis(1)), "nobody is there to answer");
    pipeline::after_fork_in_parent();

    assert!(flush.wait(DEADLINE));
}
