//! Mode `Interval`: no call waits; written records are synced soon, and not more often than configured.

use crate::line;

use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Durability, Options};

const INTERVAL: Duration = Duration::from_millis(200);

fn syncs() -> u64 {
    pipeline::snapshot().unwrap().sinks.iter().map(|sink| sink.reading.sync_seconds.count).sum()
}

#[test]
fn records_are_synced_within_the_interval_and_not_one_by_one() {
    begin(Options { durability: Durability::Interval, sync_interval: INTERVAL, ..Options::default() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("interval.log");
    let route = route_to("interval", file_sink(&path));
    let start = Instant::now();
    while start.elapsed() < 3 * INTERVAL {
        assert!(log(route, 20, "a record"));
        assert!(pipeline::flush(None, Some(DEADLINE)));
    }
    let most = start.elapsed().as_nanos() / INTERVAL.as_nanos() + 1;
    assert!(u128::from(syncs()) <= most, "{} syncs in {:?}", syncs(), start.elapsed());

    let before = syncs();
    assert!(log(route, 20, "the last one"));
    let end = Instant::now() + DEADLINE;
    while syncs() == before && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(syncs() > before, "nobody asked, and it was synced");
    // Without new records there is nothing to sync.
    let mut last = 0;
    while syncs() != last && Instant::now() < end {
        last = syncs();
        std::thread::sleep(2 * INTERVAL);
    }
    assert_eq!(last, syncs());
}
