//! A pipe that the program closes before it logs: the record is dropped and counted, and a flush says so.

use crate::line;

use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::time::Instant;

use line::{DEADLINE, begin, lent_sink, log, route_to};
use logspool::pipeline::{self, Options};

/// Capacity in bytes of the pipes in this file.
const PIPE_BYTES: usize = 4096;

/// A small pipe: its reading end, which does not block, and its writing end.
fn pipe() -> (File, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` is a valid place for two descriptors, and nothing else owns them.
    unsafe {
        assert_eq!(0, libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC));
        assert_eq!(PIPE_BYTES as i32, libc::fcntl(ends[1], libc::F_SETPIPE_SZ, PIPE_BYTES));
        assert_eq!(0, libc::fcntl(ends[0], libc::F_SETFL, libc::O_NONBLOCK));
        (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
    }
}

/// Everything up to the end of the pipe, which comes after the last writer has closed it.
fn read_to_end(reader: &mut File) -> Vec<u8> {
    let begun = Instant::now();
    let mut read = Vec::new();
    while reader.read_to_end(&mut read).is_err() {
        assert!(begun.elapsed() < DEADLINE / 3, "the pipe is still open");
        std::thread::yield_now();
    }
    read
}

#[test]
fn a_pipe_that_was_closed_takes_nothing_more_and_that_is_counted() {
    begin(Options::default());
    let (mut reader, writer) = pipe();
    let sink = lent_sink(&writer);
    let route = route_to("closed", sink);
    assert!(log(route, 20, "before"));
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    drop(writer);
    assert_eq!("before\n", String::from_utf8_lossy(&read_to_end(&mut reader)));

    assert!(log(route, 20, "after"));
    assert!(!pipeline::flush(Some(sink), Some(DEADLINE)), "the record is lost");

    let counts = line::counted(sink);
    assert_eq!((1, 1), (line::sum(counts.written), counts.dropped.iter().flatten().sum::<u64>()));
}
