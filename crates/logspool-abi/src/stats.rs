//! Counters as JSON text.

use logspool::pipeline;
use logspool::stats::{DROP_REASONS, PerLevel, REFUSAL_REASONS};
use serde_json::{Map, Value, json};

fn total(counts: &PerLevel) -> u64 {
    counts.iter().sum()
}

fn reasons(names: &[&str], counts: &[PerLevel]) -> Value {
    let pairs = names.iter().zip(counts).map(|(name, counts)| ((*name).to_owned(), json!(total(counts))));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// All counters of the process.
pub fn text() -> String {
    let Some(now) = pipeline::snapshot() else {
        return json!({"offered": 0, "accepted": 0, "refused": {}, "in_lanes": 0, "sinks": []}).to_string();
    };
    let sinks: Vec<_> = now
        .sinks
        .iter()
        .map(|sink| {
            json!({
                "name": sink.definition.name,
                "kind": sink.definition.kind,
                "accepted": total(&sink.counts.accepted),
                "written": total(&sink.counts.written),
                "queued": total(&sink.counts.queued),
                "spooled": total(&sink.counts.spooled),
                "dropped": reasons(&DROP_REASONS, &sink.counts.dropped),
                "bytes_written": sink.counts.bytes_written,
                "error": sink.error,
                "stuck": sink.stuck,
            })
        })
        .collect();
    json!({
        "offered": total(&now.offered),
        "accepted": total(&now.accepted),
        "refused": reasons(&REFUSAL_REASONS, &now.refused),
        "in_lanes": total(&now.in_lanes),
        "late_records": now.late_records,
        "blocked_calls": now.blocked_calls,
        "blocked_seconds": now.blocked_seconds,
        "lanes": now.lanes,
        "ring_bytes": now.ring_bytes,
        "ring_limit_bytes": now.ring_limit_bytes,
        "place": now.place.name(),
        "survives": now.survives,
        "sinks": sinks,
    })
    .to_string()
}
