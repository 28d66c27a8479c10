//! A service that is late, away, silent or cut off: every record arrives once, and is counted at every moment.

use crate::line;
use crate::service;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, counted, file_sink, log, route_to, sum};
use logspool::pipeline::{self, Options};
use logspool::sinks::{ServiceOptions, SinkOptions};
use logspool::stats::{DropReason, SinkSnapshot};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::FormatSpec;
use service::{Answer, Service};

/// One test at a time: alone, a burst to a healthy service refuses nothing; with eight tests on a busy machine it may.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sink for a service, and the route of a logger to it.
fn open(address: &str) -> (u32, u32) {
    begin(Options::default());
    let kind = ServiceOptions::at(address.parse().unwrap());
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let format = pipeline::define_format(&FormatSpec::entry(std::process::id())).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    (sink, pipeline::define_route(&RouteDefinition { logger: address.to_owned(), targets }).unwrap())
}

fn unix(folder: &Path) -> String {
    format!("unix://{}", folder.join("service").display())
}

/// Logs records that are so long that a few thousand of them fill several chunks.
fn log_many(route: u32, numbers: std::ops::Range<usize>) {
    for number in numbers {
        assert!(log(route, 20, &format!("{number:0>500}")), "record {number} was refused");
    }
}

fn numbers(messages: &[String]) -> Vec<usize> {
    messages.iter().map(|message| message.parse().unwrap()).collect()
}

fn seen(sink: u32) -> SinkSnapshot {
    let snapshot = pipeline::snapshot().unwrap();
    snapshot.sinks.into_iter().find(|known| known.id == sink as usize).unwrap()
}

fn written(sink: u32) -> u64 {
    sum(counted(sink).written)
}

fn queued(sink: u32) -> u64 {
    sum(counted(sink).queued)
}

#[test]
fn records_arrive_in_order_and_are_written_once_they_are_acked() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    log_many(route, 0..5000);

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..5000).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!((5000, 0), (written(sink), queued(sink)));
    let arrivals = service.arrivals();
    assert!(arrivals.iter().all(|chunk| chunk.bytes < 1024 * 1024 && !chunk.gzipped), "{arrivals:?}");
    assert!(arrivals.len() < 40, "{arrivals:?}");
    assert!(pipeline::close_sink(sink, DEADLINE));
    assert!(arrivals[0].id.starts_with(&service.wait_for_end()));
}

#[test]
fn records_that_the_service_drops_are_rejected_and_told_and_later_ones_arrive() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    log_many(route, 0..100);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    service.set(Answer::Drop);
    log_many(route, 100..350);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    // The reason is noted after the end of the flush.
    let begun = Instant::now();
    while !seen(sink).error.contains("records for ever: too old") {
        assert!(begun.elapsed() < DEADLINE, "{:?}", seen(sink));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(seen(sink).counts.errors > 0);
    service.set(Answer::Ack);
    log_many(route, 350..400);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));

    assert_eq!((0..100).chain(350..400).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!((150, 250, 0), (written(sink), sum(counted(sink).dropped[DropReason::Rejected as usize]), queued(sink)));
    assert!(pipeline::close_sink(sink, DEADLINE));
    service.wait_for_end();
}

#[test]
fn records_for_another_machine_are_gzipped() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    // This address reaches this machine, but is not recognised as local.
    let (sink, route) = open(&service.address.replace("127.0.0.1", "0.0.0.0"));
    log_many(route, 0..5000);

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..5000).collect::<Vec<_>>(), numbers(&service.messages()));
    assert!(service.arrivals().iter().all(|chunk| chunk.gzipped), "{:?}", service.arrivals());
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn records_longer_than_a_chunk_arrive_whole_each_in_its_own_chunk() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    let long = "x".repeat(3_000_000);
    assert!(log(route, 20, "before") && log(route, 40, &long) && log(route, 40, &long) && log(route, 20, "after"));

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert!(["before", &long, &long, "after"] == *service.messages());
    assert!(service.arrivals().iter().all(|chunk| chunk.bytes < 3_100_000));
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn a_few_records_are_sent_without_waiting_for_more() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    assert!(log(route, 20, "1"));
    service.wait("one chunk", |arrivals| arrivals.len() == 1);

    assert_eq!(["1"], *service.messages());
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn records_logged_before_the_service_starts_arrive_when_it_starts() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (sink, route) = open(&unix(folder.path()));
    log_many(route, 0..3000);

    assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(200))));
    let before = seen(sink);
    assert_eq!((0, 3000), (written(sink), queued(sink)));
    assert!(before.counts.errors > 0 && !before.error.is_empty(), "{before:?}");

    let service = Service::start(&unix(folder.path()));
    log_many(route, 3000..3100);
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    let after = seen(sink);
    assert_eq!((0..3100).collect::<Vec<_>>(), numbers(&service.messages()));
    assert!(after.error.is_empty(), "{after:?}");
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn acks_can_arrive_in_any_order_and_chunks_in_flight_are_limited() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    service.set(Answer::Hold);
    let (sink, route) = open(&service.address);
    log_many(route, 0..15_000);
    service.wait("a full window", |arrivals| arrivals.len() == 24);

    assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(100))));
    assert_eq!(24, service.arrivals().len());
    assert_eq!((0, 15_000), (written(sink), queued(sink)));
    service.release();
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..15_000).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!(15_000, written(sink));
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn after_a_lost_connection_unacked_chunks_are_resent_unchanged_and_stored_once() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    for (round, answer) in
        [Answer::KeepAndCut, Answer::CutAt(100_000), Answer::Hold, Answer::CutAt(10), Answer::KeepAndCut]
            .into_iter()
            .enumerate()
    {
        service.set(answer);
        let before = service.arrivals().len();
        log_many(route, round * 1500..(round + 1) * 1500);
        match answer {
            Answer::CutAt(_) => assert!(!pipeline::flush(Some(sink), Some(Duration::from_millis(300)))),
            _ => service.wait("something of it", |arrivals| arrivals.len() > before),
        }
        service.cut();
    }
    service.set(Answer::Ack);

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..7500).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!(7500, written(sink));
    let arrivals = service.arrivals();
    let first_of = |connection| arrivals.iter().find(|chunk| chunk.connection == connection);
    let again =
        (1..20).filter_map(first_of).filter(|chunk| arrivals.iter().filter(|other| other.id == chunk.id).count() > 1);
    assert!(again.count() > 0, "no chunk came twice: {arrivals:?}");
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn a_service_that_is_stopped_and_started_gets_everything_once() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(&unix(folder.path()));
    let (sink, route) = open(&service.address);
    for round in 0..5 {
        log_many(route, round * 1000..round * 1000 + 500);
        service.stop();
        log_many(route, round * 1000 + 500..(round + 1) * 1000);
        service.listen();
    }

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..5000).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!(5000, written(sink));
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn a_silent_service_refuses_nothing_and_delays_no_other_sink() {
    let _alone = alone();
    const RECORDS: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start("tcp://127.0.0.1:0");
    service.set(Answer::Hold);
    let (sink, route) = open(&service.address);
    let file = folder.path().join("file.log");
    let file_sink = file_sink(&file);
    let to_file = route_to("healthy", file_sink);
    for number in 0..RECORDS {
        assert!(log(route, 20, &format!("{number:0>60}")), "record {number} was refused");
        if number % 1000 == 0 {
            assert!(log(to_file, 20, "alive"));
        }
    }

    assert!(pipeline::flush(Some(file_sink), Some(DEADLINE)));
    assert_eq!(RECORDS / 1000, std::fs::read_to_string(&file).unwrap().lines().count());
    assert_eq!((0, RECORDS as u64), (written(sink), queued(sink)));
    service.release();
    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..RECORDS).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!(0, counted(sink).overflow_bytes, "overflow files are removed once everything is acked");
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn unacked_records_are_still_sent_after_the_sink_is_closed() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    service.set(Answer::Hold);
    let (sink, route) = open(&service.address);
    log_many(route, 0..10);
    service.wait("the chunk", |arrivals| !arrivals.is_empty());

    assert!(!pipeline::close_sink(sink, Duration::from_millis(200)));
    assert_eq!((0, 10), (written(sink), queued(sink)));
    service.release();
    service.wait_for_end();
    assert_eq!((0..10).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!(10, written(sink));
}

#[test]
fn of_a_list_the_service_that_answers_gets_the_records() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    // Nothing listens at the first port.
    let list = service.address.replace("tcp://", "tcp://127.0.0.1:1,");
    let (sink, route) = open(&list);
    log_many(route, 0..10);

    assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
    assert_eq!((0..10).collect::<Vec<_>>(), numbers(&service.messages()));
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn an_idle_connection_closed_by_the_service_is_reopened_without_an_error() {
    let _alone = alone();
    let service = Service::start("tcp://127.0.0.1:0");
    let (sink, route) = open(&service.address);
    for number in 0..5 {
        log_many(route, number..number + 1);
        assert!(pipeline::flush(Some(sink), Some(DEADLINE)));
        service.cut();
    }

    assert_eq!((0..5).collect::<Vec<_>>(), numbers(&service.messages()));
    assert_eq!((5, 0), (written(sink), counted(sink).errors));
    assert_eq!(5, service.arrivals().last().unwrap().connection + 1);
    assert!(pipeline::close_sink(sink, DEADLINE));
}

#[test]
fn bytes_that_are_not_an_answer_end_the_connection_and_lose_nothing() {
    let _alone = alone();
    use std::io::{Read, Write};

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (sink, route) = open(&format!("tcp://{}", listener.local_addr().unwrap()));
    log_many(route, 0..10);
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0x81, 0xa3, b'a', b'c', b'k', 0xc3], &[0xc1]] {
        let (mut wire, _) = listener.accept().unwrap();
        wire.write_all(answer).unwrap();
        let mut rest = Vec::new();
        // Ends when the sink closes the connection, with or without a reset.
        let _ = wire.read_to_end(&mut rest);
    }
    assert_eq!((0, 10), (written(sink), queued(sink)));
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    drop(listener);
    let service = Service::start(&address);
    assert!(pipeline::close_sink(sink, DEADLINE));
    assert_eq!((0..10).collect::<Vec<_>>(), numbers(&service.messages()));
}
