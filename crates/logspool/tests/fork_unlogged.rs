//! A program with one thread forks before its first record, or long after its last: no native thread lives at that
//! moment.

use crate::line;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::Instant;

use line::{DEADLINE, begin, lent_sink, log, native_threads, route_to};
use logspool::pipeline::{self, Options};

fn await_threads(what: &str, is_so: impl Fn(usize) -> bool) {
    let begun = Instant::now();
    while !is_so(native_threads()) {
        assert!(begun.elapsed() < DEADLINE, "{what}");
        std::thread::yield_now();
    }
}

fn fork_thrice() {
    for _ in 0..3 {
        pipeline::before_fork();
        // A thread that has stopped still takes a moment to disappear on a busy machine.
        await_threads("a writer stays", |count| count == 0);
        pipeline::after_fork_in_parent();
        await_threads("nobody sees when the pipe is closed", |count| count > 0);
    }
}

#[test]
fn no_writer_thread_is_alive_at_a_fork_even_if_it_is_idle() {
    begin(Options::default());
    let (_reader, writer) = std::io::pipe().unwrap();
    let writer = File::from(OwnedFd::from(writer));
    let sink = lent_sink(&writer);
    fork_thrice();

    assert!(log(route_to("first", sink), 20, "the first record"));
    assert!(pipeline::flush(None, Some(DEADLINE)));
    fork_thrice();
}
