//! Large records for a sink at work. Each waits until the records before it are written, however long that takes,
//! although its level may wait only a moment.

use crate::line;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

/// More than all large records may take together, so that each waits until no other is queued.
const BYTES: usize = 20 * 1024 * 1024;
const RECORDS: u64 = 4;

#[test]
fn records_larger_than_all_the_room_wait_for_a_working_sink() {
    begin(Options { overflow_bytes: Some(1024 * 1024), ..Options::default() });
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("app.log");
    let sink = file_sink(&path);
    let route = route_to("large", sink);
    let text = "x".repeat(BYTES);

    for index in 0..RECORDS {
        assert!(log(route, 20, &text), "{index} was refused");
    }

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!(RECORDS * (BYTES as u64 + 1), std::fs::metadata(&path).unwrap().len());
    assert!(pipeline::close_sink(sink, DEADLINE));
}
