//! Measures the processor time of a line in each thread: the caller, the collector, and the writer.
//!
//! `cargo bench -p logspool --bench cpu [-- MILLIONS [GRAMMAR]]`. One thread pushes four million records (or MILLIONS)
//! whose lines have 80 bytes. GRAMMAR is `percent` (the default) or `fmt`. Counts the lines at the end.
//!
//! Read the times per line with care on a busy machine. The instructions of `perf stat` or callgrind repeat better.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use logspool::pipeline::{self, Push, Waiter};
use logspool::sinks::{FileOptions, SinkOptions};
use logspool_record::definition::{Descriptor, Grammar, RouteDefinition, SiteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Head, tag};

/// Processor time of each thread of this process in nanoseconds, by the thread's name.
fn thread_times() -> BTreeMap<String, u64> {
    let mut times = BTreeMap::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let nanos = read("schedstat").split(' ').next().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        *times.entry(read("comm").trim().to_owned()).or_default() += nanos;
    }
    times
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let millions = arguments.first().map_or(4.0, |text| text.parse::<f64>().expect("MILLIONS is a number"));
    let (grammar, template) = match arguments.get(1).map_or("percent", String::as_str) {
        "percent" => (Grammar::Percent, "user %s did %d in %.3f ms"),
        "fmt" => (Grammar::Fmt, "user {} did {} in {:.3f} ms"),
        other => panic!("unknown grammar {other}: write `percent` or `fmt`"),
    };
    let records = (millions * 1e6) as usize;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.log");
    let kind = FileOptions { path: path.to_str().unwrap().to_owned() };
    let sink = pipeline::open_sink(&kind.define(Descriptor::Open)).unwrap();
    let mut spec = FormatSpec::text(Style::Percent, "[%(asctime)s] [%(levelname)s] [%(name)s] %(message)s");
    spec.default_msec_format = Some("%s.%03d".to_owned());
    let format = pipeline::define_format(&spec).unwrap();
    let targets = vec![Target { sink, format, min_level: 0 }];
    let route = pipeline::define_route(&RouteDefinition { logger: "bench".to_owned(), targets }).unwrap();
    let site = pipeline::define_site(&SiteDefinition {
        file: "/srv/app/main.cc".to_owned(),
        line: 42,
        function: "main".to_owned(),
        template: Some(template.to_owned()),
        grammar,
    })
    .unwrap();
    let name = b"annabel";
    let bytes = 1 + 4 + name.len() + 9 + 9;

    let before = thread_times();
    let start = Instant::now();
    for index in 0..records {
        let head = Head { len: 0, site, route, level: 20, flags: 0, ticks: 0 };
        let (number, millis) = (index as i64, 0.001 * (index % 100_000) as f64 + 0.000_25);
        let mut waited = Duration::ZERO;
        loop {
            // SAFETY: `push` reserves room for `bytes` bytes, and the values take exactly that many.
            let pushed = pipeline::push(head, bytes, |place| unsafe {
                place.write(tag::STR);
                place.add(1).cast::<u32>().write_unaligned(name.len() as u32);
                place.add(5).copy_from_nonoverlapping(name.as_ptr(), name.len());
                let place = place.add(5 + name.len());
                place.write(tag::INT);
                place.add(1).cast::<i64>().write_unaligned(number);
                place.add(9).write(tag::FLOAT);
                place.add(10).cast::<f64>().write_unaligned(millis);
            });
            if pushed == Push::Accepted {
                break;
            }
            // A refusal only ends the wait: the record is pushed again.
            let _ = pipeline::make_room(head.level, bytes, Waiter::Thread, &mut waited);
        }
    }
    assert!(pipeline::flush(None, Some(Duration::from_secs(60))));
    let wall = start.elapsed();
    let after = thread_times();

    let reader = BufReader::with_capacity(1 << 20, std::fs::File::open(&path).unwrap());
    let (mut lines, mut line_bytes, mut last) = (0_usize, 0, String::new());
    for line in reader.lines() {
        let line = line.unwrap();
        // On a busy machine there may be messages about records that were refused, and then pushed again.
        if !line.ends_with(" ms") {
            continue;
        }
        last = line;
        lines += 1;
        line_bytes += last.len() + 1;
    }
    assert_eq!(records, lines);
    println!("{last}");
    println!("{:<16} {:7.1} ns a line of {} bytes", "wall", per(wall.as_nanos() as u64, lines), line_bytes / lines);
    let mut background = 0;
    for (name, nanos) in after {
        let nanos = nanos - before.get(&name).copied().unwrap_or(0);
        println!("{name:<16} {:7.1} ns CPU a line", per(nanos, lines));
        background += if name.starts_with("logspool") { nanos } else { 0 };
    }
    println!("{:<16} {:7.1} ns CPU a line", "background", per(background, lines));
    println!("{lines} lines counted");
    assert_eq!(0, pipeline::drain(Duration::from_secs(10)));
}

fn per(nanos: u64, lines: usize) -> f64 {
    nanos as f64 / lines as f64
}
