//! A snapshot of all counters of the pipeline.

use std::sync::atomic::Ordering;

use logspool_lanes::queue::reader::LaneReader;
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::level_class;
use logspool_sys::clock;
use logspool_sys::published::Published;

use super::room::Refusal;
use super::slot::existing;
use super::state::Pipeline;
use crate::collector::CollectorHost;
use crate::copies;
use crate::stats::{self, PerLevel, SinkSnapshot, Snapshot};

/// All counters at one moment. Returns `None` if nothing was logged yet.
pub fn snapshot() -> Option<Snapshot> {
    existing().map(snapshot_of).or_else(snapshot_without_queue)
}

/// Counters of a copy of the library that has no queue, because another copy has the queue of this process.
fn snapshot_without_queue() -> Option<Snapshot> {
    let offered = copies::refused();
    let mut snapshot = Snapshot { offered, ..Snapshot::default() };
    snapshot.refused[Refusal::NoLane as usize] = offered;
    (offered != PerLevel::default()).then_some(snapshot)
}

fn snapshot_of(pipeline: &Pipeline) -> Snapshot {
    let segment = &pipeline.segment;
    let header = segment.header();
    let outlets = pipeline.outlets();
    let _guard = pipeline.batching();
    let batched = stats::read(&header.batched);
    let mut refused = [PerLevel::default(); stats::REFUSAL_REASONS.len()];
    for (total, counters) in refused.iter_mut().zip(header.refused.iter().chain([&header.stale_ids])) {
        *total = stats::read(counters);
    }
    let mut in_lanes = PerLevel::default();
    let mut lane_bytes = 0;
    let mut oldest_ticks = None;
    let lanes = header.lanes.observe();
    for index in 0..lanes as usize {
        for (total, counters) in refused.iter_mut().zip(&segment.lane(index).refused) {
            stats::add(total, stats::read(counters));
        }
        let (lane, reader) = (segment.lane(index), LaneReader::new(segment, index));
        lane_bytes += lane.producer.published().saturating_sub(lane.consumer.released());
        let Some(mut reader) = reader else { continue };
        // The records of a lane are in the order of their stamps.
        let first = reader.peek().map(|peeked| peeked.head.ticks);
        oldest_ticks = [oldest_ticks, first].into_iter().flatten().min();
        while let Some(peeked) = reader.peek() {
            in_lanes[level_class(peeked.head.level)] += 1;
            reader.move_past(peeked.head);
        }
    }
    let mut accepted = batched;
    stats::add(&mut accepted, in_lanes);
    let mut offered = accepted;
    refused.iter().for_each(|per_level| stats::add(&mut offered, *per_level));
    let now = clock::monotonic_ns();
    let sinks = outlets
        .iter()
        .flatten()
        .map(|outlet| SinkSnapshot {
            id: outlet.id as usize,
            definition: outlet.definition.clone(),
            counts: outlet.counts(),
            error: outlet.error().unwrap_or_default(),
            sync_error: outlet.sync_error().unwrap_or_default(),
            stuck: outlet.is_stuck(now),
            closed: outlet.is_closed(),
            reading: outlet.reading(),
        })
        .collect();
    Snapshot {
        offered,
        accepted,
        refused,
        untold_refusals: pipeline.untold_refusals(),
        in_lanes,
        lane_bytes,
        oldest_in_lanes_seconds: oldest_ticks.map_or(0.0, |ticks| age_seconds(segment, ticks)),
        not_durable: pipeline.pending_sync().map_or_else(Default::default, |pending_sync| pending_sync.not_durable()),
        late_records: header.late_records.load(Ordering::Relaxed),
        heartbeat: header.heartbeat.load(Ordering::Relaxed),
        batches: header.batch.load(Ordering::Relaxed),
        lanes,
        ring_bytes: segment.ring_bytes(),
        ring_limit_bytes: segment.ring_limit(),
        overflow_bytes: pipeline.budget.used(),
        overflow_limit_bytes: pipeline.budget.limit(),
        blocked_calls: pipeline.waits.calls.load(Ordering::Relaxed),
        blocked_seconds: pipeline.waits.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
        collector_runs: pipeline.collector_runs.is_running_relaxed(),
        survives: segment.survives() && segment.is_linked(),
        place: pipeline.place.place,
        place_reason: pipeline.place.reason.clone(),
        sinks,
    }
}

/// Age of a record with the stamp `ticks`, in seconds.
fn age_seconds(segment: &Segment, ticks: u64) -> f64 {
    let point = segment.last_point();
    let age = point.wall_ns_at(clock::ticks()) - point.wall_ns_at(ticks);
    age.max(0) as f64 / 1e9
}

impl Pipeline {
    /// Number of accepted records that are not written to every sink.
    pub(super) fn left_behind(&self) -> u64 {
        let snapshot = snapshot_of(self);
        let in_lanes: u64 = snapshot.in_lanes.iter().sum();
        let waiting: u64 = snapshot.sinks.iter().map(|sink| sink.counts.waiting()).sum();
        in_lanes + waiting
    }
}
