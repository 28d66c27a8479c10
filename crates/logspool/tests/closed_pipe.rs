//! A pipe that the program closes before it logs: the record is dropped and counted, and a flush says so. Other handlers
//! on the same pipe go on.

use crate::line;

use std::os::fd::{AsRawFd, FromRawFd};

use line::{DEADLINE, begin, lent_sink, log, pipe, read_to_end, route_to};
use logspool::pipeline::{self, Options};
use logspool_sys::kept::FileIdentity;

#[test]
fn records_for_a_closed_pipe_are_counted() {
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

/// Closes every descriptor of the file of `number` in this process, except those of the test.
fn close_others(number: i32, kept: &[i32]) {
    let file = FileIdentity::of(number);
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let numbers: Vec<i32> = links.map(|link| link.file_name().to_str().unwrap().parse().unwrap()).collect();
    for other in numbers.into_iter().filter(|other| !kept.contains(other) && FileIdentity::of(*other) == file) {
        // SAFETY: the duplicates of the sinks, closed as a program closes descriptors that it does not know.
        unsafe { libc::close(other) };
    }
}

#[test]
fn a_flush_waits_for_the_handlers_whose_descriptor_is_open() {
    const COUNT: usize = 20_000;
    begin(Options::default());
    let (reader, first) = pipe();
    // SAFETY: a new duplicate, which nothing else owns.
    let second = unsafe { std::fs::File::from_raw_fd(libc::fcntl(first.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3)) };
    let (gone, open) = (lent_sink(&first), lent_sink(&second));
    let routes = [route_to("gone", gone), route_to("open", open)];
    close_others(first.as_raw_fd(), &[reader.as_raw_fd(), first.as_raw_fd(), second.as_raw_fd()]);
    drop(first);
    assert!(log(routes[0], 20, "lost"));
    let read = std::thread::spawn(move || {
        let mut reader = reader;
        read_to_end(&mut reader)
    });

    assert!(!pipeline::flush(Some(gone), Some(DEADLINE)), "the record is lost");
    (0..COUNT).for_each(|number| assert!(log(routes[1], 20, &number.to_string())));
    assert!(!pipeline::flush(Some(open), Some(DEADLINE)), "the handlers of one pipe have one answer");

    // They share a queue, so the counts are those of both.
    let counts = line::counted(gone);
    assert_eq!((COUNT as u64, 1), (line::sum(counts.written), counts.dropped.iter().flatten().sum::<u64>()));
    assert!(pipeline::close_sink(open, DEADLINE) && pipeline::close_sink(gone, DEADLINE));
    drop(second);
    assert_eq!(COUNT, String::from_utf8_lossy(&read.join().unwrap()).lines().count());
}
