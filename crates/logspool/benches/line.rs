//! Measures the cost of a record: the push alone, and the whole way to a line in a file.
//!
//! `cargo bench -p logspool --bench line`. Prints the median and the spread of seven rounds, and counts the
//! lines at the end.

use std::time::{Duration, Instant};

use logspool::pipeline::{self, Push, Waiter};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_record::definition::{Descriptor, RouteDefinition, SiteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Encoder, Head};

const RECORDS: usize = 200_000;
const ROUNDS: usize = 7;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.log");
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let layout = "%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s";
    let format = pipeline::define_format(&FormatSpec::text(Style::Percent, layout)).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "bench".to_owned(), targets }).unwrap();
    let site = pipeline::define_site(&SiteDefinition {
        file: "/srv/app/main.py".to_owned(),
        line: 42,
        function: "main".to_owned(),
        template: Some("user %s did %d in %.3f ms".to_owned()),
        ..SiteDefinition::default()
    })
    .unwrap();
    let mut values = Encoder::new();
    values.str("ann").int(12345).float(3.25159);
    let values = values.bytes;

    let mut push_ns = Vec::new();
    let mut whole_ns = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..RECORDS {
            let head = Head { len: 0, site, route, level: 20, flags: 0, ticks: 0 };
            let mut waited = Duration::ZERO;
            loop {
                let pushed = pipeline::push(head, values.len(), |place| {
                    // SAFETY: `push` reserves room for all values.
                    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), place, values.len()) }
                });
                if pushed == Push::Accepted {
                    break;
                }
                let _ = pipeline::make_room(20, values.len(), Waiter::Thread, &mut waited);
            }
        }
        push_ns.push(start.elapsed().as_nanos() as f64 / RECORDS as f64);
        assert!(pipeline::flush(None, Some(Duration::from_secs(60))));
        whole_ns.push(start.elapsed().as_nanos() as f64 / RECORDS as f64);
    }
    let lines = std::fs::read(&path).unwrap().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(RECORDS * ROUNDS, lines);
    for (name, mut rounds) in [("push", push_ns), ("to the file", whole_ns)] {
        rounds.sort_by(f64::total_cmp);
        let (median, last) = (rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
        println!("{name:<12} {median:7.1} ns a record ({:.1} to {last:.1})", rounds[0]);
    }
    println!("{lines} lines counted");
    assert_eq!(0, pipeline::drain(Duration::from_secs(10)));
}
