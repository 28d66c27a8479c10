//! From `push` to lines in a file.

use crate::line;

use std::collections::HashMap;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Options};

#[test]
fn every_record_of_four_threads_arrives_in_the_order_of_its_thread() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let route = route_to("app", file_sink(&path));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            std::thread::spawn(move || {
                for index in 0..25_000 {
                    assert!(log(route, 20, &format!("{thread} {index} padding to make the record longer")));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());

    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut next: HashMap<u32, u32> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let thread = words.next().unwrap().parse().unwrap();
        let index: u32 = words.next().unwrap().parse().unwrap();
        let expected = next.entry(thread).or_default();
        assert_eq!(*expected, index);
        *expected += 1;
    }
    assert_eq!(100_000, text.lines().count());
}

#[test]
fn a_record_larger_than_a_lane_arrives_whole() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.log");
    let route = route_to("large", file_sink(&path));
    let large = "x".repeat(3_000_000);
    assert!(log(route, 20, "before"));
    assert!(log(route, 20, &large));
    assert!(log(route, 20, "after"));

    assert!(pipeline::flush(None, Some(DEADLINE)));
    assert_eq!(format!("before\n{large}\nafter\n"), std::fs::read_to_string(&path).unwrap());
}

#[test]
fn a_closed_sink_writes_everything_before_it_releases_its_file() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed.log");
    let sink = file_sink(&path);
    let route = route_to("closed", sink);
    for index in 0..1000 {
        assert!(log(route, 20, &index.to_string()));
    }

    assert!(pipeline::close_sink(sink, DEADLINE));
    assert_eq!(1000, std::fs::read_to_string(&path).unwrap().lines().count());
}

#[test]
fn two_handlers_on_one_file_keep_the_order_of_the_calls() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.log");
    let files: Vec<_> =
        (0..2).map(|_| std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap()).collect();
    let routes: Vec<_> = files.iter().map(|file| route_to("shared", line::duplicate_sink(&path, file))).collect();
    for index in 0..2000 {
        assert!(log(routes[index % 2], 20, &index.to_string()));
    }

    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((0..2000).map(|index| index.to_string()).collect::<Vec<_>>(), text.lines().collect::<Vec<_>>());
}
