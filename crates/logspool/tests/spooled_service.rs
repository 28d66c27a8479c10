//! A service that is away longer than tmpfs has room: its records go to disk, and arrive once, in order.

use crate::line;
use crate::service;

use std::path::PathBuf;
use std::time::Instant;

use line::{DEADLINE, begin, counted, log, route_to_format, sum};
use logspool::pipeline::{self, BlockingTimeout, Options};
use logspool::sinks::{ServiceOptions, SinkOptions};
use logspool_record::definition::Descriptor;
use logspool_record::format::FormatSpec;
use service::{Answer, Service};

#[test]
fn a_service_that_comes_and_goes_gets_every_record_once_in_order() {
    let folder = PathBuf::from(format!("/tmp/logspool-spooled-service-{}", std::process::id()));
    begin(Options {
        overflow_bytes: Some(4 * 1024 * 1024),
        spool_dir: Some(folder.clone()),
        spool_bytes: 256 * 1024 * 1024,
        // This program logs faster than a busy disk can write.
        blocking_timeout: BlockingTimeout(DEADLINE),
        ..Options::default()
    });
    let mut service = Service::start("tcp://127.0.0.1:0");
    service.set(Answer::Hold);
    let kind = ServiceOptions::at(service.address.parse().unwrap());
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let route = route_to_format("away", sink, &FormatSpec::entry(std::process::id()));
    const AWAY: usize = 40_000;
    const RECORDS: usize = 60_000;
    let log_some = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            assert!(log(route, 40, &format!("{number:0>500}")), "record {number} was refused");
        }
    };
    // Some chunks are sent and not acked when the service stops.
    log_some(0..AWAY / 2);
    service.stop();
    log_some(AWAY / 2..AWAY);
    let begun = Instant::now();
    while sum(counted(sink).spooled) < (AWAY - 10_000) as u64 {
        assert!(begun.elapsed() < DEADLINE, "{:?}", counted(sink));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(0, sum(counted(sink).written));

    service.set(Answer::Ack);
    service.listen();
    log_some(AWAY..RECORDS);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)), "{:?}", counted(sink));
    let numbers: Vec<usize> = service.messages().iter().map(|message| message.parse().unwrap()).collect();
    assert_eq!((0..RECORDS).collect::<Vec<_>>(), numbers);
    let drained = counted(sink);
    assert_eq!((RECORDS as u64, 0, 0), (sum(drained.written), sum(drained.queued), sum(drained.spooled)));
    assert!(pipeline::close_sink(sink, DEADLINE));

    assert_eq!(0, pipeline::drain(DEADLINE));
    std::fs::remove_dir(folder).expect("the spool is gone with the process");
}
