//! Exact accounting: what was offered, accepted, refused; per sink what became of it.
//!
//! Per level `offered = accepted + refused{reason}`, per sink and level
//! `accepted_for_sink = written + queued + spooled + dropped{reason} + uncertain`.
//! Counters lie in the segment, so that a recoverer can go on from them.

use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::{DROPS, LEVEL_CLASSES, REFUSALS, SinkHead};

/// Why a sink gave records up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum DropReason {
    /// The destination is gone: a pipe without a reader, a closed descriptor.
    SinkClosed = 0,
    /// The destination refused these bytes.
    Rejected = 1,
    /// The sink was stuck and the overflow budget used up.
    OverflowFull = 2,
    /// The record could not be rendered.
    Unrenderable = 3,
    /// The overflow file could not be read back.
    Unreadable = 4,
    /// Shutdown ended before the sink took them.
    Deadline = 5,
}

/// Names of the drop reasons, in the order of [`DropReason`].
pub const DROP_REASONS: [&str; DROPS] =
    ["sink_closed", "rejected", "overflow_full", "unrenderable", "unreadable", "deadline"];
/// Names of the refusal reasons, in the order of `pipeline::Refusal`.
pub const REFUSAL_REASONS: [&str; REFUSALS + 1] = ["queue_full", "reentrant", "no_lane", "no_blob", "stale_ids"];
/// Names of the level classes.
pub const LEVEL_NAMES: [&str; LEVEL_CLASSES] = ["NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// One number per level class.
pub type PerLevel = [u64; LEVEL_CLASSES];

/// Reads counters.
pub fn read(counters: &[AtomicU64; LEVEL_CLASSES]) -> PerLevel {
    std::array::from_fn(|class| counters[class].load(Ordering::Relaxed))
}

/// Adds `more` to `total`.
pub fn add(total: &mut PerLevel, more: PerLevel) {
    for (total, more) in total.iter_mut().zip(more) {
        *total += more;
    }
}

/// What became of the records of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkCounts {
    /// Records of batches that go to this sink.
    pub accepted: PerLevel,
    /// Handed to the kernel.
    pub written: PerLevel,
    /// Waiting: on the heap or in overflow files.
    pub queued: PerLevel,
    /// Waiting: in the spool on disk.
    pub spooled: PerLevel,
    /// Given up, per [`DropReason`].
    pub dropped: [PerLevel; DROPS],
    /// Bytes handed to the kernel.
    pub bytes_written: u64,
    /// Failed writes.
    pub errors: u64,
    /// Bytes waiting in overflow files.
    pub overflow_bytes: u64,
    /// Bytes of the files of its spool, those that wait to be used again among them.
    pub spool_bytes: u64,
    /// Why the spool does not take records, empty when it does.
    pub spool_error: String,
}

impl SinkCounts {
    /// Records that are neither written nor given up, wherever they wait.
    pub fn waiting(&self) -> u64 {
        self.queued.iter().chain(&self.spooled).sum()
    }

    /// Reads the counters that lie in a sink's head: nothing waits. Consistent when its outlet's lock is held.
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
    /// In its folder, on a tmpfs.
    Tmpfs,
    /// In its folder, on a disk: the user named that one.
    Disk,
    /// In memory that a keeper holds too.
    Memfd,
    /// In memory of this process alone, or nowhere.
    #[default]
    Memory,
}

impl QueuePlace {
    /// Its name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::Disk => "disk",
            Self::Memfd => "memfd",
            Self::Memory => "memory",
        }
    }
}

/// The whole process at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// Calls that reached the queue: `accepted + refused`.
    pub offered: PerLevel,
    /// In the queue or beyond.
    pub accepted: PerLevel,
    /// Turned away, per `pipeline::Refusal`.
    pub refused: [PerLevel; REFUSAL_REASONS.len()],
    /// Accepted and not yet batched: still in lanes.
    pub in_lanes: PerLevel,
    /// Calls that returned although their record was not durable, where they had to wait for that.
    pub not_durable: PerLevel,
    /// Records that came after one with a later stamp had been batched.
    pub late_records: u64,
    /// Batches so far.
    pub batches: u64,
    /// Lanes ever used.
    pub lanes: u32,
    /// Bytes of rings.
    pub ring_bytes: u64,
    /// Bound of `ring_bytes`.
    pub ring_limit_bytes: u64,
    /// Bytes in overflow files.
    pub overflow_bytes: u64,
    /// Bound of `overflow_bytes`.
    pub overflow_limit_bytes: u64,
    /// Calls that waited for room.
    pub blocked_calls: u64,
    /// Time that calls waited for room.
    pub blocked_seconds: f64,
    /// Whether the collector thread runs; it starts with the first record.
    pub collector_runs: bool,
    /// Whether what is queued survives a kill of the process.
    pub survives: bool,
    /// Where the queue is.
    pub place: QueuePlace,
    /// Why it is not in its folder; empty where it is, or where the user wants it in plain memory.
    pub place_reason: String,
    /// Per sink: id, definition, counts, last error.
    pub sinks: Vec<SinkSnapshot>,
}

/// One sink of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq)]
pub struct SinkSnapshot {
    /// Id in the sink table.
    pub id: usize,
    /// What was opened.
    pub definition: logspool_record::definition::SinkDefinition,
    /// What became of its records.
    pub counts: SinkCounts,
    /// Error of the last write, empty when it went well.
    pub error: String,
    /// Error of the last sync that failed, empty when none did or a later one made it good.
    pub sync_error: String,
    /// Whether the writer has not come back for 20 ms, or 5 s from a sync.
    pub stuck: bool,
    /// Whether it was closed.
    pub closed: bool,
    /// Durations, sizes, errors by reason.
    pub reading: crate::meters::SinkReading,
}
