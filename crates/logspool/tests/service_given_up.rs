//! A service that does not answer before its sink is closed, with a queue that no later start can read.

use crate::line;
use crate::service;

use std::time::{Duration, Instant};

use line::{begin, log};
use logspool::pipeline::{self, Durability, Options};
use logspool::sinks::{ServiceOptions, SinkOptions};
use logspool::stats::DropReason;
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::FormatSpec;
use service::{Answer, Service};

#[test]
fn records_not_acked_at_the_deadline_are_dropped_and_counted() {
    begin(Options { durability: Durability::Memory, ..Options::default() });
    let service = Service::start("tcp://127.0.0.1:0");
    service.set(Answer::Hold);
    let kind = ServiceOptions::at(service.address.parse().unwrap());
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let format = pipeline::define_format(&FormatSpec::entry(1)).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "shop".to_owned(), targets }).unwrap();
    for number in 0..10 {
        assert!(log(route, 20, &number.to_string()));
    }
    service.wait("the chunk", |arrivals| !arrivals.is_empty());
    let start = Instant::now();

    assert!(!pipeline::close_sink(sink, Duration::from_millis(200)));
    assert!(start.elapsed() < Duration::from_secs(10));
    let counts = &pipeline::snapshot().unwrap().sinks[0].counts;
    assert_eq!(10, counts.dropped[DropReason::Deadline as usize].iter().sum::<u64>());
    assert_eq!((0, 0), (counts.written.iter().sum::<u64>(), counts.queued.iter().sum::<u64>()));
}
