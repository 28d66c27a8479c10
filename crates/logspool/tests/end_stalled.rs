//! A process that continues after it tried to end, while a sink stalls: its records survive a kill again.

use crate::line;

use std::io::Read;
use std::time::Duration;

use line::{DEADLINE, begin, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, Options};

/// Longer than a thread waits for the processor of a busy machine.
const STALL: Duration = Duration::from_millis(500);

#[test]
fn a_segment_is_replaced_while_its_last_records_wait_for_a_sink() {
    // Together more than a pipe holds.
    let long = format!("{}\n", "x".repeat(9_999)).repeat(20);
    begin(Options { shutdown_timeout: DEADLINE, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let mut reader = make_fifo(&path);
    let generation = pipeline::id_epoch();
    let route = route_to("a", file_sink(&path));
    assert!(log(route, 20, "before"));
    assert_eq!(0, pipeline::end(DEADLINE));
    assert!(!pipeline::snapshot().unwrap().survives, "the segment is removed");
    assert!(long.lines().all(|line| log(route, 20, line)));
    let expected = format!("before\n{long}after\n");
    let mut found = vec![0; expected.len()];
    let reads = std::thread::spawn(move || {
        std::thread::sleep(STALL);
        reader.read_exact(&mut found).unwrap();
        found
    });
    pipeline::revert_end();

    assert_ne!(generation, pipeline::id_epoch());
    let route = route_to("a", file_sink(&path));
    assert!(log(route, 20, "after"));
    assert!(pipeline::snapshot().unwrap().survives);
    assert_eq!(expected, String::from_utf8(reads.join().unwrap()).unwrap());
}
