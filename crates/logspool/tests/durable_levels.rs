//! Mode `Process` with `durable_levels`, and flushes that wait until all records are durable.

use crate::line;

use std::path::Path;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Durability, Options};

const CRITICAL: u16 = 50;

fn syncs_of(sink: u32) -> u64 {
    let snapshot = pipeline::snapshot().unwrap();
    snapshot.sinks.iter().find(|found| found.id == sink as usize).unwrap().reading.sync_seconds.count
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn calls_of_durable_levels_wait_and_others_do_not() {
    begin(Options { durable_levels: vec![CRITICAL], ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("levels.log");
    let sink = file_sink(&path);
    let route = route_to("levels", sink);
    for index in 0..100 {
        assert!(log(route, 20, &format!("record {index}")));
    }
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!(0, syncs_of(sink), "nobody waits for these");
    for index in 1..=5 {
        assert!(log(route, CRITICAL, &format!("critical {index}")));
        assert_eq!(100 + index, lines(&path));
        assert!(syncs_of(sink) >= index as u64, "{} syncs", syncs_of(sink));
    }
    // A writer that was still awake may have synced the records before by itself.
    assert!(syncs_of(sink) <= 6, "{} syncs", syncs_of(sink));
    // In the same test: a call that waits makes the sinks of other threads sync too.
    a_durable_flush_syncs_what_it_is_for();
}

fn a_durable_flush_syncs_what_it_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["one.log", "two.log"].map(|name| folder.path().join(name));
    let sinks = paths.each_ref().map(|path| file_sink(path));
    for (sink, name) in sinks.iter().zip(["one", "two"]) {
        assert!(log(route_to(name, *sink), 20, "a record"));
    }

    assert!(pipeline::flush_durable(Some(sinks[0]), Some(DEADLINE)));
    assert_eq!([1, 0], sinks.map(syncs_of));
    assert!(pipeline::flush_durable(None, Some(DEADLINE)));
    assert!(sinks.map(syncs_of).iter().all(|syncs| *syncs >= 1));
    assert!(paths.iter().all(|path| lines(path) == 1));
    // A sink is synced before it is closed.
    assert!(log(route_to("one", sinks[0]), 20, "the last one"));
    let before = syncs_of(sinks[0]);
    assert!(pipeline::close_sink(sinks[0], DEADLINE));
    assert_eq!(before + 1, syncs_of(sinks[0]));
}

#[test]
fn durable_levels_are_refused_with_a_queue_in_memory() {
    let options = Options { durability: Durability::Memory, durable_levels: vec![CRITICAL], ..Options::default() };

    assert!(options.validate().unwrap_err().to_string().contains("durable_levels"));
    assert!(Options { checkpoint_every: 0, ..Options::default() }.validate().is_err());
}
