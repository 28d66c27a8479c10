//! A pipe that the program closes while its handler still uses it. Earlier records reach the pipe, no record reaches
//! another file, and the reader sees the end.

use crate::line;

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use line::{DEADLINE, PIPE_BYTES, begin, lent_sink, log, pipe, read_to_end, route_to};
use logspool::pipeline::{self, Options};

#[test]
fn lines_logged_before_the_end_go_to_the_pipe_and_not_to_a_reused_descriptor() {
    begin(Options::default());
    let (mut reader, mut writer) = pipe();
    let route = route_to("reused", lent_sink(&writer));
    writer.write_all(&[b'x'; PIPE_BYTES]).unwrap();
    (0..3).for_each(|number| assert!(log(route, 20, &format!("line {number}"))));
    let data = tempfile::tempfile().unwrap();
    // As when the program closes its stream and the next opened file gets the same number.
    // SAFETY: this test owns both descriptors.
    assert!(unsafe { libc::dup2(data.as_raw_fd(), writer.as_raw_fd()) } >= 0);

    let read = read_to_end(&mut reader);

    assert_eq!(0, data.metadata().unwrap().len());
    assert_eq!("line 0\nline 1\nline 2\n", String::from_utf8_lossy(&read[PIPE_BYTES..]));
}

#[test]
fn the_reader_of_a_pipe_that_was_closed_sees_the_end() {
    begin(Options::default());
    let (mut logged, mut silent) = (pipe(), pipe());
    let route = route_to("ended", lent_sink(&logged.1));
    // The sink of a handler whose level no record reaches.
    lent_sink(&silent.1);
    assert!(log(route, 20, "the last line"));
    assert!(pipeline::flush(None, Some(DEADLINE)));

    drop((logged.1, silent.1));

    assert_eq!("the last line\n", String::from_utf8_lossy(&read_to_end(&mut logged.0)));
    assert_eq!("", String::from_utf8_lossy(&read_to_end(&mut silent.0)));
}

#[test]
fn records_logged_between_a_fork_and_the_end_go_to_the_pipe() {
    begin(Options::default());
    let (mut reader, writer) = pipe();
    let route = route_to("forked", lent_sink(&writer));
    assert!(log(route, 20, "before"));
    assert!(pipeline::flush(None, Some(DEADLINE)));
    pipeline::before_fork();
    pipeline::after_fork_in_parent();
    assert!(log(route, 20, "last"));
    let data = tempfile::tempfile().unwrap();
    // SAFETY: this test owns both descriptors.
    assert!(unsafe { libc::dup2(data.as_raw_fd(), writer.as_raw_fd()) } >= 0);

    let read = read_to_end(&mut reader);

    assert_eq!("before\nlast\n", String::from_utf8_lossy(&read));
    assert_eq!(0, data.metadata().unwrap().len());
}

/// A child that waits. Of the descriptors of this test it has only those of its sinks open.
fn fork_child(writer: &File) -> libc::pid_t {
    pipeline::before_fork();
    // SAFETY: the child runs what every child runs, and nothing else that takes a lock.
    let child = unsafe { libc::fork() };
    if child == 0 {
        pipeline::after_fork_in_child();
        // SAFETY: this child's copy of the descriptor; no preconditions.
        unsafe {
            libc::close(writer.as_raw_fd());
            libc::sleep(DEADLINE.as_secs() as u32);
            libc::_exit(0);
        }
    }
    pipeline::after_fork_in_parent();
    child
}

#[test]
fn a_forked_child_keeps_no_pipe_open_for_its_parent() {
    begin(Options::default());
    // The second pipe is full, so that its line is still in flight.
    for filled in [0, PIPE_BYTES] {
        let (mut reader, mut writer) = pipe();
        writer.write_all(&vec![b'x'; filled]).unwrap();
        let route = route_to(&format!("filled with {filled}"), lent_sink(&writer));
        assert!(log(route, 20, "the last line"));
        let child = fork_child(&writer);
        drop(writer);

        assert_eq!("the last line\n", String::from_utf8_lossy(&read_to_end(&mut reader)[filled..]));
        // SAFETY: `child` is a child of this process.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}
