//! Sinks that are opened and closed one after the other, more of them than the table has slots.

use crate::line;

use line::{DEADLINE, begin, file_sink, log};
use logspool::pipeline::{self, Options};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_lanes::segment::layout::{MAX_ROUTES, MAX_SINKS};
use logspool_record::definition::{Descriptor, RouteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};

#[test]
fn slots_of_closed_sinks_and_their_routes_are_reused() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let lasting = folder.path().join("lasting.log");
    let lasting_sink = file_sink(&lasting);
    let format = pipeline::define_format(&FormatSpec::text(Style::Percent, "%(message)s")).unwrap();
    let route_to = |logger: &str, sink: u32| {
        let targets = vec![Target { sink, format, min_level: 0 }];
        pipeline::define_route(&RouteDefinition { logger: logger.to_owned(), targets }).unwrap()
    };
    let lasting_route = route_to("lasting", lasting_sink);
    let jobs = MAX_ROUTES + MAX_SINKS;
    let path = |job: usize| folder.path().join(format!("{}.log", job % 500));

    for job in 0..jobs {
        let sink = file_sink(&path(job));
        let route = route_to(&format!("job-{}", "x".repeat(job % 97)), sink);
        assert!(log(route, 20, &format!("job {job}")));
        assert!(log(lasting_route, 20, &format!("lasting {job}")));
        assert!(pipeline::close_sink(sink, DEADLINE));
        assert!(pipeline::close_sink(sink, DEADLINE), "an id that is used no more is nobody's");
    }
    assert!(pipeline::flush(None, Some(DEADLINE)));

    let lines = |path| std::fs::read_to_string(path).unwrap();
    for first in 0..500 {
        let expected: String = (first..jobs).step_by(500).map(|job| format!("job {job}\n")).collect();
        assert_eq!(expected, lines(path(first)));
    }
    assert_eq!((0..jobs).map(|job| format!("lasting {job}\n")).collect::<String>(), lines(lasting));
    let snapshot = pipeline::snapshot().unwrap();
    assert!(snapshot.sinks.iter().all(|sink| sink.counts.dropped.iter().flatten().sum::<u64>() == 0));
    assert_eq!(2 * jobs as u64, snapshot.accepted[2]);

    // As many sinks as slots except the first, which is never used.
    let open: Vec<u32> = (1..MAX_SINKS - 1).map(|number| file_sink(&path(number))).collect();
    let kind = FileOptions { path: path(0).to_str().unwrap().to_owned() };
    let one_more = kind.define(Descriptor::Open);
    assert!(pipeline::open_sink(&one_more).unwrap_err().contains("at most"), "a sink that is open keeps its place");
    open.into_iter().for_each(|sink| assert!(pipeline::close_sink(sink, DEADLINE)));
    assert!(pipeline::open_sink(&one_more).is_ok());
}
