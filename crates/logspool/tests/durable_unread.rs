//! Mode `Sync` and a named pipe whose reader is gone: calls learn at once that nothing becomes durable there, and the
//! lines wait for the next reader.

use crate::line;

use std::fs::File;
use std::io::Read;
use std::time::Instant;

use line::{DEADLINE, begin, counted, duplicate_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, Durability, Options};

/// Calls that returned before their record was durable.
fn not_durable() -> u64 {
    sum(pipeline::snapshot().unwrap().not_durable)
}

#[test]
fn an_unread_pipe_keeps_no_call_waiting() {
    begin(Options { durability: Durability::Sync, durability_timeout: DEADLINE, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mut reader = make_fifo(&fifo);
    let writer = File::options().write(true).open(&fifo).unwrap();
    let sink = duplicate_sink(&fifo, &writer);
    let route = route_to("fifo", sink);
    let mut text = [0; 100];
    assert!(log(route, 20, "first"));
    assert_eq!((6, 0), (reader.read(&mut text).unwrap(), not_durable()));
    drop(reader);

    let start = Instant::now();
    for line in 0..5 {
        assert!(log(route, 20, &format!("line {line}")));
    }
    // Far less than the time for which a call would wait.
    assert!(start.elapsed() < DEADLINE / 3, "{:?}", start.elapsed());
    assert_eq!((5, 5), (not_durable(), sum(counted(sink).queued)));

    let mut reader = File::open(&fifo).unwrap();
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    let count = reader.read(&mut text).unwrap();
    assert_eq!("line 0\nline 1\nline 2\nline 3\nline 4\n", String::from_utf8_lossy(&text[..count]));
    assert!(log(route, 20, "a pipe is durable when it is written"));
    assert_eq!(5, not_durable());
}
