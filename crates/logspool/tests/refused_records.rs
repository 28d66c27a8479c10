//! A stuck sink after every budget is used up.

use crate::line;

use std::path::Path;
use std::time::Duration;

use line::{DEADLINE, begin, file_sink, in_child, log, make_fifo, route_to};
use logspool::pipeline::{self, BlockingTimeout, Options};

const QUEUE_BYTES: usize = 32 * 1024;
const OVERFLOW_BYTES: u64 = 256 * 1024;

#[test]
fn refused_records_are_counted_and_summarised_once_there_is_room() {
    begin(Options {
        queue_bytes: QUEUE_BYTES,
        overflow_bytes: Some(OVERFLOW_BYTES),
        blocking_timeout: BlockingTimeout(Duration::from_millis(1)),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    // The ids of a child begin after those of its parent, which are in use here.
    let log_file = folder.path().join("a.log");
    assert!(log(route_to("parent", file_sink(&log_file)), 20, "of the parent"));
    in_child(|| fill_a_stuck_sink(&folder.path().join("of the child")));
}

fn fill_a_stuck_sink(path: &Path) {
    let reader = make_fifo(path);
    let before = pipeline::snapshot().map_or(0, |snapshot| snapshot.accepted[2]);
    let route = route_to("stuck", file_sink(path));
    let mut accepted = 0_u64;
    let mut refused = 0_u64;
    while refused < 50 {
        match log(route, 20, &format!("{accepted:0>60}")) {
            true => accepted += 1,
            false => refused += 1,
        }
    }
    let snapshot = pipeline::snapshot().unwrap();
    assert_eq!(accepted, snapshot.accepted[2] - before);
    assert_eq!(refused, snapshot.refused[0][2]);
    assert_eq!(accepted + refused, snapshot.offered[2] - before);
    // The number of batches in it depends on their sizes.
    let left = OVERFLOW_BYTES - snapshot.overflow_bytes;
    assert!(left < QUEUE_BYTES as u64, "a full lane would have fitted into the {left} bytes left of the overflow");

    let thawed = std::thread::spawn(move || {
        use std::io::BufRead;
        let mut lines = std::io::BufReader::new(reader).lines();
        let (mut numbers, mut told) = (0, None);
        loop {
            let line = lines.next().unwrap().unwrap();
            if line == "end" {
                break;
            }
            match line.strip_suffix(" records dropped: the queue was full") {
                Some(count) => told = Some(count.parse::<u64>().unwrap()),
                None => numbers += u64::from(line.trim_start_matches('0').parse::<u64>().unwrap_or(0) == numbers),
            }
        }
        (numbers, told, lines)
    });
    assert!(pipeline::flush(None, Some(DEADLINE)));
    // The message comes with the next batch.
    assert!(log(route, 20, &format!("{accepted:0>60}")) && pipeline::flush(None, Some(DEADLINE)));
    assert!(log(route, 20, "end") && pipeline::flush(None, Some(DEADLINE)));
    let (numbers, told, _open) = thawed.join().unwrap();
    assert_eq!((accepted + 1, Some(refused)), (numbers, told));
}
