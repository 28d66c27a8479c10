//! Writes a snapshot as OpenMetrics 1.0 text, for a scrape or for a text file collector.
//!
//! All metric names have the prefix `logspool_`, use base units, and end in `_total` for counters. Label values come
//! from bounded sets (levels, reasons, sinks).

mod page;
mod pools;

use logspool_pool::PoolReading;

use page::MetricsPage;

use crate::meters::ERROR_CLASSES;
use crate::stats::{DROP_REASONS, LEVEL_NAMES, REFUSAL_REASONS, Snapshot};

/// Content type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn total(per_level: &[u64]) -> f64 {
    per_level.iter().sum::<u64>() as f64
}

/// A counter of the front: Python, or another language.
#[derive(Debug, Clone, Copy)]
pub struct FrontCounter<'a> {
    /// The name, without prefix and without `_total`.
    pub name: &'a str,
    /// The text that explains it on the page.
    pub help: &'a str,
    /// The name of the label.
    pub label: &'a str,
    /// Each value of the label, with its count.
    pub counts: &'a [(&'a str, u64)],
}

/// The page with the metrics of logging, if there is a snapshot, and the metrics of thread pools. `build` holds the
/// labels of `logspool_build_info`, such as version and python. The counters of the front come last, and only with a
/// snapshot.
pub fn text(
    snapshot: Option<&Snapshot>,
    pools: &[PoolReading],
    build: &[(&str, &str)],
    front: &[FrontCounter<'_>],
) -> String {
    let mut page = MetricsPage::new();
    page.family("build", "info", "What is running.");
    page.sample("build_info", build, 1);
    if let Some(snapshot) = snapshot {
        levels(&mut page, snapshot);
        drops(&mut page, snapshot);
        queue(&mut page, snapshot);
        sinks(&mut page, snapshot);
    }
    if !pools.is_empty() {
        pools::families(&mut page, pools);
    }
    for counter in front.iter().filter(|_| snapshot.is_some()) {
        page.family(counter.name, "counter", counter.help);
        for (value, count) in counter.counts {
            page.sample(&format!("{}_total", counter.name), &[(counter.label, value)], *count);
        }
    }
    page.finish()
}

fn levels(page: &mut MetricsPage, snapshot: &Snapshot) {
    page.family("records", "counter", "Records accepted at the call.");
    for (name, count) in LEVEL_NAMES.iter().zip(snapshot.accepted) {
        page.sample("records_total", &[("level", name)], count);
    }
    page.family("not_durable_calls", "counter", "Calls that returned before their record was durable.");
    for (name, count) in LEVEL_NAMES.iter().zip(snapshot.not_durable) {
        page.sample("not_durable_calls_total", &[("level", name)], count);
    }
    page.family("late_records", "counter", "Records that came after a later one had been batched.");
    page.sample("late_records_total", &[], snapshot.late_records);
}

fn drops(page: &mut MetricsPage, snapshot: &Snapshot) {
    page.family("records_dropped", "counter", "Records refused at the call or dropped at a sink.");
    let refused = REFUSAL_REASONS.iter().zip(&snapshot.refused);
    let dropped: Vec<_> = DROP_REASONS
        .iter()
        .enumerate()
        .map(|(reason, name)| {
            let mut sum = [0; LEVEL_NAMES.len()];
            for sink in &snapshot.sinks {
                crate::stats::add(&mut sum, sink.counts.dropped[reason]);
            }
            (name, sum)
        })
        .collect();
    for (reason, per_level) in refused.chain(dropped.iter().map(|(name, sum)| (*name, sum))) {
        for (level, count) in LEVEL_NAMES.iter().zip(per_level) {
            page.sample("records_dropped_total", &[("reason", reason), ("level", level)], count);
        }
    }
    page.family("fallback_records", "counter", "Records that went to standard error instead.");
    page.sample("fallback_records_total", &[("target", "stderr")], crate::fallback::printed());
}

fn queue(page: &mut MetricsPage, snapshot: &Snapshot) {
    let queued: f64 = snapshot.sinks.iter().map(|sink| total(&sink.counts.queued)).sum();
    page.family("queue_records", "gauge", "Records waiting, in lanes and after them.");
    page.sample("queue_records", &[("queue", "lanes")], total(&snapshot.in_lanes));
    page.sample("queue_records", &[("queue", "sinks")], queued);
    let spooled: f64 = snapshot.sinks.iter().map(|sink| total(&sink.counts.spooled)).sum();
    page.sample("queue_records", &[("queue", "spool")], spooled);
    page.family("queue_bytes", "gauge", "Bytes waiting, in lanes and after them.");
    page.sample("queue_bytes", &[("queue", "lanes")], snapshot.lane_bytes);
    page.sample("queue_bytes", &[("queue", "overflow")], snapshot.overflow_bytes);
    let spool_bytes: u64 = snapshot.sinks.iter().map(|sink| sink.counts.spool_bytes).sum();
    page.sample("queue_bytes", &[("queue", "spool")], spool_bytes);
    page.family("queue_capacity_bytes", "gauge", "Bound of what may wait.");
    page.sample("queue_capacity_bytes", &[("queue", "lanes")], snapshot.ring_limit_bytes);
    page.sample("queue_capacity_bytes", &[("queue", "overflow")], snapshot.overflow_limit_bytes);
    page.family("oldest_record_age_seconds", "gauge", "Age of the oldest record not yet written.");
    page.sample("oldest_record_age_seconds", &[("queue", "lanes")], snapshot.oldest_in_lanes_seconds);
    let oldest = snapshot.sinks.iter().map(|sink| sink.reading.oldest_age_seconds).fold(0.0, f64::max);
    page.sample("oldest_record_age_seconds", &[("queue", "sinks")], oldest);
    page.family("blocked_calls", "counter", "Calls that waited for room.");
    page.sample("blocked_calls_total", &[], snapshot.blocked_calls);
    page.family("blocked_seconds", "counter", "Time that calls waited for room.");
    page.sample("blocked_seconds_total", &[], snapshot.blocked_seconds);
    page.family("drain_thread_alive", "gauge", "1 while the collector runs or has nothing to do.");
    page.sample("drain_thread_alive", &[], u8::from(snapshot.collector_runs || total(&snapshot.in_lanes) == 0.0));
}

fn sinks(page: &mut MetricsPage, snapshot: &Snapshot) {
    let all = &snapshot.sinks;
    page.family("records_written", "counter", "Records handed to the kernel.");
    page.per_sink("records_written_total", all, |sink| total(&sink.counts.written));
    page.family("bytes_written", "counter", "Bytes handed to the kernel.");
    page.per_sink("bytes_written_total", all, |sink| sink.counts.bytes_written as f64);
    page.family("sink_up", "gauge", "1 healthy, 0 failing or stuck.");
    page.per_sink("sink_up", all, |sink| f64::from(u8::from(sink.error.is_empty() && !sink.stuck)));
    page.family(
        "sink_queue_records",
        "gauge",
        "Records that wait for this output, in memory, on tmpfs or in its spool.",
    );
    page.per_sink("sink_queue_records", all, |sink| sink.counts.waiting() as f64);
    page.family("sink_oldest_record_age_seconds", "gauge", "Age of the oldest record that waits for this output.");
    page.per_sink("sink_oldest_record_age_seconds", all, |sink| sink.reading.oldest_age_seconds);
    page.family("last_write_timestamp_seconds", "gauge", "Time of the last write that went well.");
    page.per_sink("last_write_timestamp_seconds", all, |sink| sink.reading.last_write_seconds);
    page.family("sink_errors", "counter", "Failed writes.");
    for sink in all {
        let name = &sink.definition.name;
        for (class, count) in ERROR_CLASSES.iter().zip(sink.reading.errors) {
            page.sample("sink_errors_total", &[("sink", name), ("reason", class)], count);
        }
    }
    page.family("cut_records", "counter", "Written records that were cut because the receiver takes no longer ones.");
    for sink in all {
        page.sample("cut_records_total", &[("sink", &sink.definition.name)], sink.reading.cut_records);
    }
    page.family("write_duration_seconds", "histogram", "Duration of one write.");
    for sink in all {
        let name = &sink.definition.name;
        page.histogram("write_duration_seconds", ("sink", name), &sink.reading.write_seconds);
    }
    page.family("sync_duration_seconds", "histogram", "Duration of one sync of the file.");
    for sink in all {
        let name = &sink.definition.name;
        page.histogram("sync_duration_seconds", ("sink", name), &sink.reading.sync_seconds);
    }
    page.family("not_durable_records", "counter", "Written records whose sync failed, be it made good or not.");
    for sink in all {
        let name = &sink.definition.name;
        for (level, count) in LEVEL_NAMES.iter().zip(sink.reading.not_durable) {
            page.sample("not_durable_records_total", &[("sink", name), ("level", level)], count);
        }
    }
    page.family("batch_records", "histogram", "Records of one write.");
    for sink in all {
        let name = &sink.definition.name;
        page.histogram("batch_records", ("sink", name), &sink.reading.batch_records);
    }
}
