//! The metrics page after some records.

use crate::line;

use std::thread;
use std::time::{Duration, Instant};

use line::{DEADLINE, begin, file_sink, log, route_to};
use logspool::openmetrics::{self, FrontCounter};
use logspool::pipeline::{self, Options};

#[test]
fn the_page_counts_logged_records_and_ends_as_the_format_requires() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a \"quoted\" name.log");
    let route = route_to("metrics", file_sink(&path));
    for _ in 0..7 {
        assert!(log(route, 40, "seven errors"));
    }
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let calls = FrontCounter { name: "calls", help: "Calls.", label: "by", counts: &[("a", 2), ("b", 0)] };
    let build = [("version", "0.1.0")];
    let page = openmetrics::text(pipeline::snapshot().as_ref(), &[], &build, &[calls]);

    assert!(page.contains("logspool_records_total{level=\"ERROR\"} 7\n"), "{page}");
    let written = page.lines().find(|line| line.starts_with("logspool_records_written_total{")).unwrap();
    assert!(written.ends_with("a \\\"quoted\\\" name.log\"} 7"), "{written}");
    assert!(page.contains("logspool_records_dropped_total{reason=\"queue_full\",level=\"INFO\"} 0\n"));
    assert!(page.contains("logspool_drain_thread_alive 1\n"));
    for waiting in ["sink_queue_records", "sink_oldest_record_age_seconds"] {
        let line = page.lines().find(|line| line.starts_with(&format!("logspool_{waiting}{{"))).unwrap();
        assert!(line.ends_with("a \\\"quoted\\\" name.log\"} 0"), "{line}");
    }
    // The collector gives back the room in a queue after the write, which is all that a flush waits for.
    let empty = ["queue_records", "queue_bytes", "oldest_record_age_seconds"]
        .map(|waiting| format!("logspool_{waiting}{{queue=\"lanes\"}} 0\n"));
    let until = Instant::now() + DEADLINE;
    loop {
        let page = openmetrics::text(pipeline::snapshot().as_ref(), &[], &build, &[]);
        if empty.iter().all(|line| page.contains(line)) {
            break;
        }
        assert!(Instant::now() < until, "{page}");
        thread::sleep(Duration::from_millis(1));
    }
    let last = "# TYPE logspool_calls counter\n# HELP logspool_calls Calls.\n\
                logspool_calls_total{by=\"a\"} 2\nlogspool_calls_total{by=\"b\"} 0\n# EOF\n";
    assert!(page.ends_with(last), "{page}");
    assert!(!openmetrics::text(None, &[], &build, &[calls]).contains("logspool_calls"));
    for line in page.lines() {
        assert!(line.starts_with("# ") || line.starts_with("logspool_"), "{line}");
    }
}
