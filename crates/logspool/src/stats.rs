//! Exact accounting: counts the records that were offered, accepted and refused, and their outcome at each sink.
//!
//! For each level, `offered = accepted + refused{reason}`. For each sink and level, `accepted_for_sink = written +
//! queued + spooled + dropped{reason} + uncertain`. The counters are in the segment, so that a recoverer can continue
//! them.

use std::sync::atomic::Ordering;

use logspool_lanes::segment::layout::{DROPS, LEVEL_CLASSES, REFUSALS, SinkHead};

pub use crate::per_level::{PerLevel, add, read};

/// Why a sink dropped records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum DropReason {
    /// The destination is gone. Examples: a pipe without a reader, a closed descriptor.
    SinkClosed = 0,
    /// The destination rejected these bytes.
    Rejected = 1,
    /// The sink was stuck and the overflow budget was used up.
    OverflowFull = 2,
    /// The record could not be rendered.
    Unrenderable = 3,
    /// The overflow file could not be read back.
    Unreadable = 4,
    /// Shutdown ended before the sink accepted the records.
    Deadline = 5,
}

/// Names of the drop reasons, in the order of [`DropReason`].
pub const DROP_REASONS: [&str; DROPS] =
    ["sink_closed", "rejected", "overflow_full", "unrenderable", "unreadable", "deadline"];
/// Names of the refusal reasons, in the order of `pipeline::Refusal`.
pub const REFUSAL_REASONS: [&str; REFUSALS + 1] = ["queue_full", "reentrant", "no_lane", "no_blob", "stale_ids"];
/// Names of the level classes.
pub const LEVEL_NAMES: [&str; LEVEL_CLASSES] = ["NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// Outcome of the records of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkCounts {
    /// Records that were batched for this sink.
    pub accepted: PerLevel,
    /// Records handed to the kernel.
    pub written: PerLevel,
    /// Records waiting on the heap or in overflow files.
    pub queued: PerLevel,
    /// Records waiting in the spool on disk.
    pub spooled: PerLevel,
    /// Records dropped, per [`DropReason`].
    pub dropped: [PerLevel; DROPS],
    /// Bytes handed to the kernel.
    pub bytes_written: u64,
    /// Number of failed writes.
    pub errors: u64,
    /// Bytes waiting in overflow files.
    pub overflow_bytes: u64,
    /// Bytes of the spool's files, including files kept for reuse.
    pub spool_bytes: u64,
    /// Why the spool accepts no records; empty if the spool accepts records.
    pub spool_error: String,
}

impl SinkCounts {
    /// Number of records that are neither written nor dropped, wherever they wait.
    pub fn waiting(&self) -> u64 {
        self.queued.iter().chain(&self.spooled).sum()
    }

    /// Reads the counters in a sink's head; the result's counts of waiting records are zero. The counters are
    /// consistent while the outlet's lock is held.
    pub fn read(head: &SinkHead) -> Self {
        Self {
            accepted: read(&head.accepted),
            written: read(&head.written),
            queued: PerLevel::default(),
            spooled: PerLevel::default(),
            dropped: std::array::from_fn(|reason| read(&head.dropped[reason])),
            bytes_written: head.bytes_written.load(Ordering::Relaxed),
            errors: head.errors.load(Ordering::Relaxed),
            overflow_bytes: 0,
            spool_bytes: 0,
            spool_error: String::new(),
        }
    }
}

/// Where the queue of a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueuePlace {
    /// The queue is in its folder, on a tmpfs.
    Tmpfs,
    /// The queue is in its folder, on a disk, because the user named this folder.
    Disk,
    /// The queue is in memory files that a keeper process also holds.
    Memfd,
    /// The queue is in the memory of this process alone, or there is no queue.
    #[default]
    Memory,
}

impl QueuePlace {
    /// Name of the place in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Disk => "disk",
            Self::Memfd => "memfd",
            Self::Memory => "memory",
        }
    }
}

/// Counters of the whole process at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// Number of calls that tried to queue a record: `accepted + refused`.
    pub offered: PerLevel,
    /// Records that were accepted into the queue, including those that have left it.
    pub accepted: PerLevel,
    /// Records refused, per `pipeline::Refusal`.
    pub refused: [PerLevel; REFUSAL_REASONS.len()],
    /// Records refused because the queue was full, of which no message at the sinks tells yet.
    pub untold_refusals: u64,
    /// Accepted records in lanes, not batched yet.
    pub in_lanes: PerLevel,
    /// Bytes of the lanes that hold records, including records that are on their way to a sink.
    pub lane_bytes: u64,
    /// Age of the oldest record in lanes that is not batched yet, in seconds.
    pub oldest_in_lanes_seconds: f64,
    /// Calls that had to wait for durability and returned although their record was not durable.
    pub not_durable: PerLevel,
    /// Records that were batched later than a record with a later stamp.
    pub late_records: u64,
    /// Number of batches.
    pub batches: u64,
    /// Rounds of the collector. Their number does not change while the collector hangs or does not run.
    pub heartbeat: u64,
    /// Number of lanes ever used.
    pub lanes: u32,
    /// Bytes of all rings.
    pub ring_bytes: u64,
    /// Limit of `ring_bytes`.
    pub ring_limit_bytes: u64,
    /// Bytes in overflow files.
    pub overflow_bytes: u64,
    /// Limit of `overflow_bytes`.
    pub overflow_limit_bytes: u64,
    /// Number of calls that waited for room.
    pub blocked_calls: u64,
    /// Total time that calls waited for room.
    pub blocked_seconds: f64,
    /// Whether the collector thread runs. The thread starts with the first record.
    pub collector_runs: bool,
    /// Whether queued records survive a kill of the process.
    pub survives: bool,
    /// Where the queue is.
    pub place: QueuePlace,
    /// Why the queue is not in its folder. Empty if it is in its folder, or if the user chose plain memory.
    pub place_reason: String,
    /// One entry for each sink.
    pub sinks: Vec<SinkSnapshot>,
}

/// One sink of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSnapshot {
    /// Id in the sink table.
    pub id: usize,
    /// The definition with which the sink was opened.
    pub definition: logspool_record::definition::SinkDefinition,
    /// Outcome of the sink's records.
    pub counts: SinkCounts,
    /// Error of the last write; empty if it succeeded.
    pub error: String,
    /// Error of the last failed sync; empty if none failed, or if a later sync repaired it.
    pub sync_error: String,
    /// Whether the sink is stuck: a write has not returned for 20 ms, a service has confirmed nothing for 5 s, or a
    /// sync has not returned for 5 s.
    pub stuck: bool,
    /// Whether the sink was closed.
    pub closed: bool,
    /// Metrics of the sink: durations, sizes, and errors by reason.
    pub reading: crate::meters::SinkReading,
}
