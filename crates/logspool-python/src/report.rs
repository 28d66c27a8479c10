//! Returns counters, metrics and recovery results as plain Python objects. The functions are called rarely; steps that
//! may take long run detached from the interpreter.

use std::collections::BTreeMap;
use std::path::PathBuf;

use logspool::openmetrics::{self, FrontCounter};
use logspool::pipeline::{self, MIN_FREE_BYTES};
use logspool::recover::{self, Condition, MAX_ORPHAN_BYTES, PendingPlace, Retention, SegmentCounters};
use logspool::sinks;
use logspool::stats::{DROP_REASONS, LEVEL_NAMES, PerLevel, REFUSAL_REASONS, SinkSnapshot, Snapshot, add};
use logspool_rules::RuleCounts;
use logspool_sys::histogram::HistogramCounts;
use logspool_sys::kernel;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls::{keywords, rules};
use crate::interpreter::leaving::detached;
use crate::pool::PoolCore;

fn per_level<'py>(py: Python<'py>, counts: PerLevel) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, count) in LEVEL_NAMES.iter().zip(counts) {
        dict.set_item(name, count)?;
    }
    Ok(dict)
}

fn per_reason<'py>(py: Python<'py>, names: &[&str], counts: &[PerLevel]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, counts) in names.iter().zip(counts) {
        dict.set_item(name, per_level(py, *counts)?)?;
    }
    Ok(dict)
}

fn add_histogram(total: &mut HistogramCounts, more: &HistogramCounts) {
    for ((_, count), (_, more)) in total.cumulative.iter_mut().zip(&more.cumulative) {
        *count += more;
    }
    total.count += more.count;
    total.sum += more.sum;
}

/// Adds the counters of another sink with the same name. The state is taken from the only open sink, or else from
/// `more`, which is the later sink.
fn add_sink(total: &mut SinkSnapshot, more: SinkSnapshot) {
    add(&mut total.counts.accepted, more.counts.accepted);
    add(&mut total.counts.written, more.counts.written);
    add(&mut total.counts.queued, more.counts.queued);
    add(&mut total.counts.spooled, more.counts.spooled);
    for (total, more) in total.counts.dropped.iter_mut().zip(more.counts.dropped) {
        add(total, more);
    }
    total.counts.bytes_written += more.counts.bytes_written;
    total.counts.errors += more.counts.errors;
    total.counts.overflow_bytes += more.counts.overflow_bytes;
    total.counts.spool_bytes += more.counts.spool_bytes;
    if total.counts.spool_error.is_empty() {
        total.counts.spool_error = more.counts.spool_error;
    }
    add_histogram(&mut total.reading.write_seconds, &more.reading.write_seconds);
    add_histogram(&mut total.reading.sync_seconds, &more.reading.sync_seconds);
    add(&mut total.reading.not_durable, more.reading.not_durable);
    add_histogram(&mut total.reading.batch_records, &more.reading.batch_records);
    for (total, more) in total.reading.errors.iter_mut().zip(more.reading.errors) {
        *total += more;
    }
    total.reading.cut_records += more.reading.cut_records;
    total.reading.last_write_seconds = total.reading.last_write_seconds.max(more.reading.last_write_seconds);
    total.reading.oldest_age_seconds = total.reading.oldest_age_seconds.max(more.reading.oldest_age_seconds);
    if !more.sync_error.is_empty() {
        total.sync_error = more.sync_error;
    }
    if total.closed || !more.closed {
        if !more.error.is_empty() || total.closed {
            total.error = more.error;
        }
        total.stuck = more.stuck || (total.stuck && !total.closed);
    }
    total.closed &= more.closed;
}

/// The core's snapshot with one entry per sink name. A file that was closed and opened again, or that two handlers
/// write to, counts as one sink.
fn merged() -> Option<Snapshot> {
    let mut snapshot = pipeline::snapshot()?;
    let mut sinks: Vec<SinkSnapshot> = Vec::with_capacity(snapshot.sinks.len());
    for sink in snapshot.sinks.drain(..) {
        let name = sink.definition.name.clone();
        match sinks.iter_mut().find(|known| known.definition.name == name) {
            Some(known) => add_sink(known, sink),
            None => sinks.push(sink),
        }
    }
    snapshot.sinks = sinks;
    Some(snapshot)
}

/// The core's snapshot as a dict; `None` if nothing was logged yet.
pub fn snapshot(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(snapshot) = detached(py, merged) else { return Ok(None) };
    let dict = PyDict::new(py);
    dict.set_item("offered", per_level(py, snapshot.offered)?)?;
    dict.set_item("accepted", per_level(py, snapshot.accepted)?)?;
    dict.set_item("refused", per_reason(py, &REFUSAL_REASONS, &snapshot.refused)?)?;
    dict.set_item("not_durable", per_level(py, snapshot.not_durable)?)?;
    dict.set_item("in_lanes", per_level(py, snapshot.in_lanes)?)?;
    dict.set_item("lane_bytes", snapshot.lane_bytes)?;
    dict.set_item("oldest_in_lanes_seconds", snapshot.oldest_in_lanes_seconds)?;
    dict.set_item("late_records", snapshot.late_records)?;
    dict.set_item("batches", snapshot.batches)?;
    dict.set_item("heartbeat", snapshot.heartbeat)?;
    dict.set_item("lanes", snapshot.lanes)?;
    dict.set_item("ring_bytes", snapshot.ring_bytes)?;
    dict.set_item("ring_limit_bytes", snapshot.ring_limit_bytes)?;
    dict.set_item("overflow_bytes", snapshot.overflow_bytes)?;
    dict.set_item("overflow_limit_bytes", snapshot.overflow_limit_bytes)?;
    dict.set_item("blocked_calls", snapshot.blocked_calls)?;
    dict.set_item("blocked_seconds", snapshot.blocked_seconds)?;
    dict.set_item("collector_runs", snapshot.collector_runs)?;
    dict.set_item("survives", snapshot.survives)?;
    dict.set_item("place", snapshot.place.name())?;
    dict.set_item("place_reason", &snapshot.place_reason)?;
    dict.set_item("sinks", sinks(py, &snapshot)?)?;
    Ok(Some(dict))
}

fn sinks<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for sink in &snapshot.sinks {
        let dict = PyDict::new(py);
        dict.set_item("name", &sink.definition.name)?;
        dict.set_item("accepted", per_level(py, sink.counts.accepted)?)?;
        dict.set_item("written", per_level(py, sink.counts.written)?)?;
        dict.set_item("queued", per_level(py, sink.counts.queued)?)?;
        dict.set_item("spooled", per_level(py, sink.counts.spooled)?)?;
        dict.set_item("dropped", per_reason(py, &DROP_REASONS, &sink.counts.dropped)?)?;
        dict.set_item("not_durable", per_level(py, sink.reading.not_durable)?)?;
        dict.set_item("syncs", sink.reading.sync_seconds.count)?;
        dict.set_item("cut", sink.reading.cut_records)?;
        dict.set_item("bytes_written", sink.counts.bytes_written)?;
        dict.set_item("errors", sink.counts.errors)?;
        dict.set_item("overflow_bytes", sink.counts.overflow_bytes)?;
        dict.set_item("spool_bytes", sink.counts.spool_bytes)?;
        dict.set_item("spool_error", &sink.counts.spool_error)?;
        dict.set_item("error", &sink.error)?;
        dict.set_item("sync_error", &sink.sync_error)?;
        dict.set_item("stuck", sink.stuck)?;
        dict.set_item("closed", sink.closed)?;
        dict.set_item("oldest_age_seconds", sink.reading.oldest_age_seconds)?;
        dict.set_item("last_write_seconds", sink.reading.last_write_seconds)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Returns the counters as OpenMetrics text, including those of pools, of the texts of exceptions, and of the records
/// that deferred formatters lost, by reason.
///
/// # Errors
///
/// A pool in `pools` was not opened.
pub fn metrics_text(
    py: Python<'_>,
    python: &str,
    pools: Vec<(String, Bound<'_, PoolCore>)>,
    deferred: &[(String, u64)],
) -> PyResult<String> {
    let pools = pools.into_iter().map(|(name, pool)| pool.get().reading(name)).collect::<PyResult<Vec<_>>>()?;
    let snapshot = detached(py, merged);
    let build = [("version", env!("CARGO_PKG_VERSION")), ("python", python)];
    let (native, python) = keywords::exception_texts();
    let exceptions = FrontCounter {
        name: "exception_texts",
        help: "Texts of exceptions, by maker.",
        label: "made_by",
        counts: &[("native", native), ("python", python)],
    };
    let deferred: Vec<_> = deferred.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    let deferred = FrontCounter {
        name: "deferred_records_dropped",
        help: "Records that found no room before their deferred formatter, or no time at the end.",
        label: "reason",
        counts: &deferred,
    };
    let counts = logspool_rules::counts();
    let ruled = FrontCounter {
        name: "rule_records",
        help: "Records that a rule of install() has rewritten or left out, and repeated calls that log once.",
        label: "rule",
        counts: &counts.by_name(),
    };
    let mut front = vec![exceptions];
    front.extend(Some(deferred).filter(|counter| !counter.counts.is_empty()));
    front.extend(Some(ruled).filter(|_| rules::current().is_some() || counts != RuleCounts::default()));
    Ok(openmetrics::text(snapshot.as_ref(), &pools, &build, &front))
}

/// Delivers the records that dead processes left in `folder`, or with `paths` only the records for these files.
pub fn recover<'py>(
    py: Python<'py>,
    folder: Option<PathBuf>,
    paths: Option<Vec<PathBuf>>,
) -> PyResult<Bound<'py, PyDict>> {
    let report = detached(py, || match paths {
        Some(paths) => pipeline::recover_targets(&paths),
        None => pipeline::recover(folder.as_deref()),
    })?;
    let dict = PyDict::new(py);
    let delivered = PyDict::new(py);
    for file in &report.delivered {
        delivered.set_item(file.path.display().to_string(), file.records)?;
    }
    dict.set_item("delivered", delivered)?;
    let kept = PyDict::new(py);
    for orphan in &report.kept {
        kept.set_item(&orphan.name, orphan.reasons.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    }
    dict.set_item("kept", kept)?;
    dict.set_item("removed", report.removed.iter().map(|orphan| orphan.name.clone()).collect::<Vec<_>>())?;
    let discarded = report.removed.iter().map(|orphan| orphan.discarded).sum::<u64>() + report.done_away;
    dict.set_item("discarded", discarded)?;
    dict.set_item("torn_lines", report.torn_lines)?;
    dict.set_item("refused", report.refused)?;
    Ok(dict)
}

/// Number of records of dead processes that this process delivered, and number of records that it dropped.
pub fn recovery_counts() -> (u64, u64) {
    let counts = pipeline::recovery_counts();
    (counts.records, counts.discarded)
}

/// The names that counters use: level classes, reasons to refuse, reasons to drop, and limits such as the maximum size
/// of orphaned queues.
pub fn names<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("levels", LEVEL_NAMES)?;
    dict.set_item("refusals", REFUSAL_REASONS)?;
    dict.set_item("drops", DROP_REASONS)?;
    dict.set_item("orphan_limit_bytes", MAX_ORPHAN_BYTES)?;
    dict.set_item("least_free_bytes", MIN_FREE_BYTES)?;
    Ok(dict)
}

/// The system calls that do not work on this machine, one dict each.
pub fn missing_calls(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for missing in kernel::missing() {
        let dict = PyDict::new(py);
        dict.set_item("name", missing.name)?;
        dict.set_item("errno", missing.errno)?;
        dict.set_item("weaker", missing.weaker)?;
        dict.set_item("fix", missing.remedy)?;
        dict.set_item("costs_records", missing.costs_records)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// The queues of running processes in `folder`, one dict each; `counters` is a text if they cannot be read.
pub fn running<'py>(py: Python<'py>, folder: Option<PathBuf>) -> PyResult<Bound<'py, PyList>> {
    let found = detached(py, || pipeline::running(folder.as_deref()))?;
    let list = PyList::empty(py);
    for queue in found {
        let dict = PyDict::new(py);
        dict.set_item("name", &queue.name)?;
        dict.set_item("pid", queue.pid)?;
        dict.set_item("is_of_this_namespace", queue.is_of_this_namespace)?;
        dict.set_item("overflow_bytes", queue.overflow_bytes)?;
        match &queue.counters {
            Ok(counters) => dict.set_item("counters", counters_dict(py, counters)?)?,
            Err(why) => dict.set_item("counters", why)?,
        }
        list.append(dict)?;
    }
    Ok(list)
}

/// The counters of the segment in the file `path`; `None` if the file is no segment.
pub fn segment_counters(py: Python<'_>, path: PathBuf) -> PyResult<Option<Bound<'_, PyDict>>> {
    let counters = detached(py, || recover::counters_of(&path))?;
    counters.map(|counters| counters_dict(py, &counters)).transpose()
}

fn counters_dict<'py>(py: Python<'py>, counters: &SegmentCounters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("created_seconds", counters.created_ns as f64 / 1e9)?;
    dict.set_item("heartbeat", counters.heartbeat)?;
    dict.set_item("batches", counters.batches)?;
    dict.set_item("batched", per_level(py, counters.batched)?)?;
    dict.set_item("refused", per_reason(py, &REFUSAL_REASONS, &counters.refused)?)?;
    dict.set_item("late_records", counters.late_records)?;
    dict.set_item("lanes", counters.lanes)?;
    dict.set_item("lane_bytes", counters.lane_bytes)?;
    dict.set_item("ring_bytes", counters.ring_bytes)?;
    let sinks = PyList::empty(py);
    for sink in &counters.sinks {
        let entry = PyDict::new(py);
        entry.set_item("name", &sink.name)?;
        entry.set_item("accepted", per_level(py, sink.accepted)?)?;
        entry.set_item("written", per_level(py, sink.written)?)?;
        entry.set_item("dropped", per_reason(py, &DROP_REASONS, &sink.dropped)?)?;
        entry.set_item("waiting", sink.waiting())?;
        entry.set_item("bytes_written", sink.bytes_written)?;
        entry.set_item("errors", sink.errors)?;
        entry.set_item("closed", sink.closed)?;
        sinks.append(entry)?;
    }
    dict.set_item("sinks", sinks)?;
    Ok(dict)
}

/// The queues that dead processes left in `folder`, one dict each.
pub fn orphans<'py>(py: Python<'py>, folder: Option<PathBuf>) -> PyResult<Bound<'py, PyList>> {
    let found = detached(py, || pipeline::orphans(folder.as_deref()))?;
    let list = PyList::empty(py);
    for orphan in found {
        let dict = PyDict::new(py);
        dict.set_item("name", &orphan.name)?;
        dict.set_item("pid", orphan.pid)?;
        dict.set_item("age_seconds", orphan.age.as_secs_f64())?;
        dict.set_item("bytes", orphan.bytes())?;
        dict.set_item("beyond_cap", orphan.retention == Retention::ToBeEvicted)?;
        dict.set_item("readable", matches!(orphan.condition, Condition::Whole | Condition::Damaged(_)))?;
        let waiting = orphan.pending.iter().filter(|entry| matches!(entry.place, PendingPlace::File(_)));
        dict.set_item("waiting", waiting.map(|entry| entry.records).sum::<u64>())?;
        let mut pending = BTreeMap::<String, u64>::new();
        for entry in &orphan.pending {
            let place = match &entry.place {
                PendingPlace::File(path) => sinks::shown_place(path).display().to_string(),
                PendingPlace::Gone(name) => name.clone(),
                PendingPlace::Unknown => "unknown".to_owned(),
            };
            // Places that differ only in their secrets are shown as one.
            *pending.entry(place).or_default() += entry.records;
        }
        dict.set_item("pending", pending)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// The sidecars of log files in `folder`, one dict each.
pub fn sidecars<'py>(py: Python<'py>, folder: Option<PathBuf>) -> PyResult<Bound<'py, PyList>> {
    let found = detached(py, || pipeline::sidecars(folder.as_deref()))?;
    let list = PyList::empty(py);
    for sidecar in found {
        let dict = PyDict::new(py);
        dict.set_item("name", &sidecar.name)?;
        dict.set_item("path", sidecar.path)?;
        dict.set_item("bytes", sidecar.bytes)?;
        dict.set_item("inside_seconds", sidecar.inside.map(|inside| inside.as_secs_f64()))?;
        dict.set_item("unfinished", sidecar.unfinished)?;
        dict.set_item("torn_lines", sidecar.torn)?;
        list.append(dict)?;
    }
    Ok(list)
}
