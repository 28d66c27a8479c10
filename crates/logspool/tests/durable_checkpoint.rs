//! Mode `Checkpoint`: at most N-1 accepted records of returned calls are not durable.

use crate::line;

use std::path::Path;
use std::time::Duration;

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::pipeline::{self, Durability, Options};

const EVERY: u64 = 10;

fn options() -> Options {
    // So long that only calls cause a sync.
    let sync_interval = Duration::from_secs(3600);
    Options { durability: Durability::Checkpoint, checkpoint_every: EVERY, sync_interval, ..Options::default() }
}

fn syncs() -> u64 {
    pipeline::snapshot().unwrap().sinks.iter().map(|sink| sink.reading.sync_seconds.count).sum()
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn at_most_the_credit_of_records_is_at_risk_and_few_calls_wait() {
    begin(options());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.log");
    let route = route_to("checkpoint", file_sink(&path));
    for index in 1..=EVERY * 20 {
        assert!(log(route, 20, &format!("record {index}")));
        // Every durable record is written, and a sync adds no more records at risk than the credit allows.
        assert!(lines(&path) as u64 + EVERY > index, "{} of {index}", lines(&path));
        assert!(syncs() >= (index + 1 - EVERY.min(index + 1)) / EVERY, "{} syncs, {index} calls", syncs());
    }
    let alone = syncs();
    assert!(alone <= 10 * EVERY, "{alone} syncs");
    // Many threads together have no more credit than one thread.
    let before = alone;
    std::thread::scope(|scope| {
        for thread in 0..16 {
            scope
                .spawn(move || (0..EVERY * 10).for_each(|index| assert!(log(route, 20, &format!("{thread} {index}")))));
        }
    });
    let total = (EVERY * 180) as usize;
    assert!(lines(&path) > total - EVERY as usize, "{} of {total}", lines(&path));
    let shared = syncs() - before;
    assert!((1..=800).contains(&shared), "{shared} syncs");

    assert!(pipeline::flush_durable(None, Some(DEADLINE)));
    assert_eq!(total, lines(&path));
    assert_eq!(0, pipeline::snapshot().unwrap().not_durable.iter().sum::<u64>());
}
