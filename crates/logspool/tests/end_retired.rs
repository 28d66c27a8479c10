//! A process that ends while a sink stalls whose handler was destroyed: nobody has waited for its records yet.

use crate::line;

use std::io::Read;
use std::time::Duration;

use line::{DEADLINE, begin, file_sink, log, make_fifo, route_to};
use logspool::pipeline::{self, Options};

/// Longer than a thread waits for the processor of a busy machine.
const STALL: Duration = Duration::from_millis(500);

#[test]
fn the_end_waits_for_a_sink_whose_handler_was_destroyed() {
    // More than a pipe holds.
    let long = format!("{}\n", "x".repeat(9_999)).repeat(20);
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let mut reader = make_fifo(&path);
    let sink = file_sink(&path);
    let route = route_to("a", sink);
    assert!(long.lines().all(|line| log(route, 20, line)));
    pipeline::retire_sink(sink);
    let mut found = vec![0; long.len()];
    let reads = std::thread::spawn(move || {
        std::thread::sleep(STALL);
        reader.read_exact(&mut found).unwrap();
        found
    });

    assert_eq!(0, pipeline::end(DEADLINE));
    assert_eq!(long, String::from_utf8(reads.join().unwrap()).unwrap());
}
