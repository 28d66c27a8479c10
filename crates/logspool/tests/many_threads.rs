//! More threads at one time than a segment has lanes: each record is written, and the records of a thread are in order.

use crate::line;

use std::sync::RwLock;
use std::sync::mpsc::{Sender, channel};

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

/// Threads, and records of each.
const CASES: [(usize, usize); 3] = [(300, 1_000), (1_000, 200), (2_000, 100)];

/// Logs `lines` records on each of `threads` threads. No thread ends before all have logged. Returns the number of
/// refused records.
///
/// A `Barrier` wakes its threads one after the other. Beside busy programs, 2,000 of them took 20 to 40 s for that.
fn log_together(route: u32, threads: usize, lines: usize) -> usize {
    let (begun, ended) = (RwLock::new(()), RwLock::new(()));
    let (begin, end) = (begun.write().unwrap(), ended.write().unwrap());
    let (tell, told) = channel();
    let work = |thread: usize, tell: Sender<usize>| {
        drop(begun.read().unwrap());
        let text = |number| format!("{thread} {number} of a thread that is one of many");
        tell.send((0..lines).filter(|number| !log(route, 20, &text(*number))).count()).unwrap();
        drop(ended.read().unwrap());
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (work, tell) = (&work, tell.clone());
            let builder = std::thread::Builder::new().stack_size(64 * 1024);
            builder.spawn_scoped(scope, move || work(thread, tell)).unwrap();
        }
        drop(begin);
        let refused = told.iter().take(threads).sum();
        drop(end);
        refused
    })
}

#[test]
fn a_burst_of_more_threads_than_lanes_loses_nothing() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    for (threads, lines) in CASES {
        let path = folder.path().join(format!("{threads}.log"));
        let route = route_to(&format!("{threads}"), file_sink(&path));
        let refused = log_together(route, threads, lines);
        assert!(pipeline::flush(None, Some(DEADLINE)));

        assert_eq!(0, refused, "{threads} threads");
        let mut next = vec![0; threads];
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let mut words = line.split(' ').map(|word| word.parse::<usize>());
            let (thread, number) = (words.next().unwrap().unwrap(), words.next().unwrap().unwrap());
            assert_eq!(next[thread], number, "thread {thread} of {threads}");
            next[thread] += 1;
        }
        assert!(next.iter().all(|count| *count == lines), "{threads} threads");
    }
}
