//! A named pipe whose reader goes away: lines wait for the next reader, as long as one can come.

use crate::line;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use line::{DEADLINE, begin, counted, file_sink, log, make_fifo, route_to, sum};
use logspool::pipeline::{self, Options};

/// A reader only; `make_fifo` would open the pipe for writing too.
fn open_reader(path: &Path) -> BufReader<File> {
    // Does not block until a writer comes.
    BufReader::new(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap())
}

/// The next line, after a flush.
fn read_line(reader: &mut BufReader<File>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

#[test]
fn lines_logged_without_a_reader_reach_the_next_reader() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let both = make_fifo(&path);
    let sink = file_sink(&path);
    let route = route_to("restarted", sink);
    let mut first = open_reader(&path);
    drop(both);
    assert!(log(route, 20, "first"));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!("first\n", read_line(&mut first));
    drop(first);

    assert!(log(route, 20, "second"));
    assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(100))));
    let waiting = pipeline::snapshot().unwrap().sinks.into_iter().find(|known| known.id == sink as usize).unwrap();
    assert!(waiting.error.contains("Broken pipe"), "{}", waiting.error);
    let mut second = open_reader(&path);
    assert!(log(route, 20, "third"));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    assert_eq!(("second\n", "third\n"), (read_line(&mut second).as_str(), read_line(&mut second).as_str()));
    assert_eq!(3, sum(counted(sink).written));
}

#[test]
fn nothing_waits_for_a_pipe_whose_name_was_removed() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let both = make_fifo(&path);
    let sink = file_sink(&path);
    let route = route_to("removed", sink);
    std::fs::remove_file(&path).unwrap();
    drop(both);

    assert!(log(route, 20, "for nobody"));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    assert_eq!(1, counted(sink).dropped.iter().flatten().sum::<u64>());
}
