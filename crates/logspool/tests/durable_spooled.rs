//! Mode `Sync` with a spool: if the output stalls or the service is away, a call returns when its record is on disk.

use crate::line;
use crate::service;

use std::path::PathBuf;

use line::{DEADLINE, begin, file_sink, log, make_fifo, route_to, route_to_format};
use logspool::pipeline::{self, Durability, Options};
use logspool::sinks::{ServiceOptions, SinkOptions};
use logspool::stats::SinkCounts;
use logspool_record::definition::Descriptor;
use logspool_record::format::FormatSpec;
use service::Service;

fn spool_folder() -> PathBuf {
    PathBuf::from(format!("/tmp/logspool-durable-{}", std::process::id()))
}

fn counts(sink: u32) -> SinkCounts {
    pipeline::snapshot().unwrap().sinks.into_iter().find(|known| known.id == sink as usize).unwrap().counts
}

fn not_durable() -> u64 {
    pipeline::snapshot().map_or(0, |snapshot| snapshot.not_durable.iter().sum())
}

#[test]
fn a_call_returns_when_its_record_is_in_the_spool() {
    begin(Options {
        durability: Durability::Sync,
        durability_timeout: DEADLINE,
        spool_dir: Some(spool_folder()),
        ..Options::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let mut reader = make_fifo(&fifo);
    let frozen_sink = file_sink(&fifo);
    let frozen = route_to("frozen", frozen_sink);
    // More bytes than a pipe holds.
    let long = "x".repeat(30_000);
    for _ in 0..20 {
        assert!(log(frozen, 20, &long));
    }
    let stalled = counts(frozen_sink);
    assert_eq!(0, not_durable(), "{stalled:?}");
    assert!(stalled.spooled.iter().sum::<u64>() > 10, "{stalled:?}");

    let mut service = Service::start("tcp://127.0.0.1:0");
    let kind = ServiceOptions::at(service.address.parse().unwrap());
    service.stop();
    let away_sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let away = route_to_format("away", away_sink, &FormatSpec::entry(std::process::id()));
    for _ in 0..5 {
        assert!(log(away, 20, "on disk"));
    }
    assert_eq!(0, not_durable());
    assert_eq!(5, counts(away_sink).spooled.iter().sum::<u64>());
    service.listen();
    assert!(pipeline::flush(Some(away_sink), Some(DEADLINE)));
    assert_eq!(5, service.messages().len());
    assert!(pipeline::close_sink(away_sink, DEADLINE));

    let thawed = std::thread::spawn(move || {
        let mut text = vec![0; 20 * 30_001];
        std::io::Read::read_exact(&mut reader, &mut text).unwrap();
        text.split(|byte| *byte == b'\n').filter(|line| line.len() == 30_000).count()
    });
    assert!(pipeline::flush(Some(frozen_sink), Some(DEADLINE)));
    assert_eq!(20, thawed.join().unwrap());
}
