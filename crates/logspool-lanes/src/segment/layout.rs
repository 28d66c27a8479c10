//! Layout version 1 of a segment: the place of each part and the meaning of each word.
//!
//! ```text
//! 0        Header         4 KiB   identity, clock, counters, options that a recoverer needs
//! 4 KiB    points        16 KiB   calibration points, a ring of the newest 512
//! 20 KiB   lanes        128 KiB   256 lane heads of 512 bytes
//! 148 KiB  sinks         64 KiB   128 checkpoints and counters of 512 bytes
//! 212 KiB  indexes       84 KiB   8,192 sites, 2,048 routes, 256 formats, 128 sinks: offsets of definitions
//! ...      manifests    256 KiB   byte ring of batch manifests
//! ...      definitions    2 MiB
//! ...      rings     the rest     the first ones belong to the shared lanes
//! ```
//!
//! The file is sparse. A new segment has memory for the first page of each table and for two rings, some 100 KiB.
//! Further pages get memory as tables fill, and further rings as lanes need them (`pages.rs`).
//!
//! Every reference is an offset from the start of the segment, never a pointer. The lower half of an index word is the
//! offset of a definition, 0 for none. The upper half is the generation of its id: after the last reference to a route
//! or sink is gone, its slot is used again under another id. A definition is its length and the bytes it may take, both
//! `u32`, then the bytes. Numbers are in native byte order: a segment never leaves its host.
//!
//! Some services confirm the records that they received. The head of such a sink also holds how the records in flight
//! are numbered, so that a recoverer can continue where the process was killed: see [`SinkHead::epoch`]. Older segments
//! have zeros there.
//!
//! Stores that a recoverer reads after the death of the process keep their order: they use `publish`, though nobody
//! observes them in this process.
//!
//! A process has one segment, and one copy of the library uses it: see `copies.rs`.

use logspool_sys::published::Published;
use logspool_sys::sync::{AtomicU32, AtomicU64, Ordering};

pub use crate::lane::head::{LEVEL_CLASSES, LaneHead, REFUSALS, level_class};

/// First eight bytes of every segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LOGSPOOL");
/// Version of the layout; a reader of another major version cannot read it.
pub const MAJOR: u32 = 1;
/// Minor version of the layout. It grows with additions that an older reader may ignore.
pub const MINOR: u32 = 0;

/// Number of reasons for a drop at a sink, see `stats::DropReason`.
pub const DROPS: usize = 6;

/// Maximum number of lanes in a segment. Chosen: from the 257th thread on, threads share lanes.
pub const MAX_LANES: usize = 256;
/// Maximum bytes of one lane.
pub const MAX_QUEUE_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of sinks that a process has open at one time. Further handlers stay synchronous.
pub const MAX_SINKS: usize = 128;
/// Maximum number of call sites with an id. A record of a further call site contains the site itself.
pub const MAX_SITES: usize = 8192;
/// Maximum number of routes (a logger's set of open sinks). A logger beyond this number uses the standard library's
/// code.
pub const MAX_ROUTES: usize = 2048;
/// Maximum number of log formats that get an id in one segment.
pub const MAX_FORMATS: usize = 256;
/// Maximum number of calibration points in a segment; the newest ones are kept.
pub const MAX_POINTS: usize = 512;
/// Size of the manifest ring in bytes.
pub const MANIFEST_BYTES: u64 = 256 * 1024;
/// Bytes at the start of the manifest ring that always have memory: enough for the longest manifest.
pub const FIRST_MANIFEST_BYTES: u64 = 8 * 1024;
/// Size of the area for all definitions in bytes.
pub const DEFINITION_BYTES: u64 = 2 * 1024 * 1024;

/// The first page of a segment.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], stored last when the segment is made: without it a segment is unfinished.
    pub magic: AtomicU64,
    /// Layout version, see [`MAJOR`].
    pub major: u32,
    /// Layout version, see [`MINOR`].
    pub minor: u32,
    /// Size of the segment file in bytes.
    pub segment_bytes: u64,
    /// Random identity; part of checksums, and the stream id of exactly-once delivery.
    pub uuid: [u8; 16],
    /// Process id in its own namespace. Diagnostics only: the lock shows whether the owner lives.
    pub pid: u32,
    /// The clock that stamps records: the number of a `clock::ClockKind`.
    pub clock: u32,
    /// Start time of the process, clock ticks since boot.
    pub process_start: u64,
    /// Inode of the process's pid namespace.
    pub pid_namespace: u64,
    /// Wall time of creation, nanoseconds since the epoch.
    pub created_ns: i64,
    /// Process id of the process whose collector reads the segment, 0 for none. Claimed by compare-and-swap.
    pub collector: AtomicU32,
    /// Number of calibration points ever appended; point `i` is in slot `i % MAX_POINTS`.
    pub points: AtomicU32,
    /// Number of rounds of the collector. The value does not change while the collector is stopped.
    pub heartbeat: AtomicU64,
    /// Number of call site ids handed out.
    pub sites: AtomicU32,
    /// Number of route ids handed out.
    pub routes: AtomicU32,
    /// Number of format ids handed out.
    pub formats: AtomicU32,
    /// Number of sink ids handed out.
    pub sinks: AtomicU32,
    /// Number of lane heads that were ever used. The collector reads only these heads.
    pub lanes: AtomicU32,
    /// 1 while the collector sleeps and must be woken.
    pub sleeping: AtomicU32,
    /// Number of bytes in use in the area for definitions.
    pub definition_bytes: AtomicU64,
    /// Offset after the last ring.
    pub ring_end: AtomicU64,
    /// Total number of bytes that were ever written into the manifest ring.
    pub manifest_head: AtomicU64,
    /// Total number of bytes of manifests that are no longer needed.
    pub manifest_tail: AtomicU64,
    /// Number of the last batch.
    pub batch: AtomicU64,
    /// Sequence number after the last batched record.
    pub next_seq: AtomicU64,
    /// Records batched, per level class. Written by the collector only.
    pub batched: [AtomicU64; LEVEL_CLASSES],
    /// Records refused outside any lane, per reason and level class.
    pub refused: [[AtomicU64; LEVEL_CLASSES]; REFUSALS],
    /// Number of late records: a record with a later stamp was already in a batch when they arrived.
    pub late_records: AtomicU64,
    /// Number of the last blob file.
    pub blobs: AtomicU64,
    /// Generation of the recoverer that works on the segment of a dead process. Each step of a recoverer checks the
    /// word.
    pub recoverer: AtomicU64,
    /// Records and bytes that a recoverer could not read. If it is not 0 the segment is kept for inspection by a
    /// person.
    pub unreadable: AtomicU64,
    /// Records refused because their ids belonged to another segment, per level class. Older segments have zeros there.
    pub stale_ids: [AtomicU64; LEVEL_CLASSES],
}

/// Checkpoint and counters of one sink. Written under the sink's lock, read by any thread or process.
#[repr(C, align(512))]
pub struct SinkHead {
    /// Last batch that is completely written.
    pub batch: AtomicU64,
    /// Number of bytes written so far of the chunk of batch `writing`.
    pub offset: AtomicU64,
    /// Last batch whose chunk is in an overflow file.
    pub overflowed_batch: AtomicU64,
    /// Bytes handed to the kernel.
    pub bytes_written: AtomicU64,
    /// Failed writes.
    pub errors: AtomicU64,
    /// 1 after the sink was closed with everything written, or a recoverer has delivered every record.
    pub closed: AtomicU64,
    /// Batch to whose chunk `offset` refers.
    pub writing: AtomicU64,
    /// Records that the collector put into batches for this sink, per level class.
    pub accepted: [AtomicU64; LEVEL_CLASSES],
    /// Records handed to the kernel, per level class.
    pub written: [AtomicU64; LEVEL_CLASSES],
    /// Records dropped, per reason and level class.
    pub dropped: [[AtomicU64; LEVEL_CLASSES]; DROPS],
    /// Id of the sink's stream, its low half first.
    pub stream: [AtomicU64; 2],
    /// Epoch of the stream. 0: the sink sends no stream, or the process does not record it.
    pub epoch: AtomicU64,
    /// Two entries with the stream number of the last record up to a batch. The entry whose batch equals `batch` is
    /// valid.
    pub numbered: [BatchNumber; 2],
    /// Last batch that was sent to the service with one additional record: a message of logspool itself, after the
    /// records from the lanes. Everything before that batch had arrived when it was sent.
    pub message_batch: AtomicU64,
}

/// Stream number of the last record up to a batch.
#[repr(C)]
pub struct BatchNumber {
    /// The batch, or [`NO_BATCH`].
    pub batch: AtomicU64,
    /// The number; records are numbered from 1.
    pub number: AtomicU64,
}

/// Value of [`BatchNumber::batch`] in an entry that is not used.
pub const NO_BATCH: u64 = u64::MAX;

impl SinkHead {
    /// Resets the head for another sink, whose first batch follows `batch`.
    ///
    /// During the reset, the head never reports a batch up to `batch` as unwritten.
    pub fn reset_for_next_sink(&self, batch: u64) {
        self.epoch.publish(0);
        self.note_arrival(batch, 0);
        for word in [
            &self.writing,
            &self.offset,
            &self.overflowed_batch,
            &self.bytes_written,
            &self.errors,
            &self.message_batch,
        ] {
            word.publish(0);
        }
        for counter in self.accepted.iter().chain(&self.written).chain(self.dropped.iter().flatten()) {
            counter.store(0, Ordering::Relaxed);
        }
        self.closed.publish(0);
    }

    /// Records which stream the sink sends. Call it before any record of the stream is sent.
    pub fn begin_stream(&self, id: u128, epoch: u64) {
        self.stream[0].publish(id as u64);
        self.stream[1].publish((id >> 64) as u64);
        // Last: a nonzero epoch means that the id is complete.
        self.epoch.publish(epoch);
    }

    /// Records that all batches up to `batch` have arrived, and that their last record has the stream number `number`.
    ///
    /// The pair is stored in the entry that is not valid now. The store to `batch` makes this entry valid and the other
    /// one invalid.
    pub fn note_arrival(&self, batch: u64, number: u64) {
        for (word, value) in self.steps_of_arrival(batch, number) {
            word.publish(value);
        }
    }

    /// The stores of [`note_arrival`](Self::note_arrival) in their order.
    pub fn steps_of_arrival(&self, batch: u64, number: u64) -> [(&AtomicU64, u64); 4] {
        let now = self.batch.load(Ordering::Relaxed);
        let spare = &self.numbered[usize::from(self.numbered[0].batch.load(Ordering::Relaxed) == now)];
        [(&spare.batch, NO_BATCH), (&spare.number, number), (&spare.batch, batch), (&self.batch, batch)]
    }
}

/// Head of a manifest in its ring; `lanes` ranges follow it. Entries never cross the end of the ring.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ManifestHead {
    /// Bytes of the entry, including this head. 0 marks filler up to the end of the ring.
    pub bytes: u32,
    /// Number of ranges.
    pub lanes: u32,
    /// Batch number, contiguous.
    pub batch: u64,
    /// Sequence number of the first record.
    pub first_seq: u64,
    /// Records in the batch.
    pub records: u32,
    /// Index of the newest calibration point that the batch was converted with.
    pub point: u32,
}

/// One lane's share of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct LaneRange {
    /// Index of the lane.
    pub lane: u32,
    /// Incarnation of the lane; it breaks ties in the order of the batch.
    pub incarnation: u32,
    /// First position.
    pub from: u64,
    /// Position after the last record.
    pub to: u64,
}

/// The four tables of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Call sites, each encoded as a `SiteDefinition`.
    Sites,
    /// Routes, each encoded as a `RouteDefinition`.
    Routes,
    /// Formats, each encoded as a `FormatSpec`.
    Formats,
    /// Sinks, each encoded as a `SinkDefinition`.
    Sinks,
}

impl Table {
    /// Number of ids that can be in use at one time. Id 0 is never handed out.
    pub const fn capacity(self) -> usize {
        match self {
            Self::Sites => MAX_SITES,
            Self::Routes => MAX_ROUTES,
            Self::Formats => MAX_FORMATS,
            Self::Sinks => MAX_SINKS,
        }
    }

    /// Slot of an id in the table. Ids that use the same slot are `capacity` apart.
    #[inline]
    pub const fn slot(self, id: u32) -> usize {
        id as usize % self.capacity()
    }

    /// Number of ids that used the slot of `id` before it.
    pub const fn generation(self, id: u32) -> u64 {
        (id as usize / self.capacity()) as u64
    }

    /// Offset of the table's index.
    pub const fn index_offset(self) -> u64 {
        let before = match self {
            Self::Sites => 0,
            Self::Routes => MAX_SITES,
            Self::Formats => MAX_SITES + MAX_ROUTES,
            Self::Sinks => MAX_SITES + MAX_ROUTES + MAX_FORMATS,
        };
        INDEXES_OFFSET + 8 * before as u64
    }
}

/// Offset of the head of lane `index`.
pub const fn lane_offset(index: usize) -> u64 {
    LANES_OFFSET + (index * size_of::<LaneHead>()) as u64
}

/// Offset of the head of sink `index`.
pub const fn sink_offset(index: usize) -> u64 {
    SINKS_OFFSET + (index * size_of::<SinkHead>()) as u64
}

/// Offset of the calibration points.
pub const POINTS_OFFSET: u64 = 4096;
/// Offset of the lane heads.
pub const LANES_OFFSET: u64 = POINTS_OFFSET + 16 * 1024;
/// Offset of the sink heads.
pub const SINKS_OFFSET: u64 = LANES_OFFSET + (MAX_LANES * 512) as u64;
/// Offset of the four index tables, which hold the offset of each definition.
pub const INDEXES_OFFSET: u64 = SINKS_OFFSET + (MAX_SINKS * 512) as u64;
/// Offset of the manifest ring.
pub const MANIFESTS: u64 =
    (INDEXES_OFFSET + 8 * (MAX_SITES + MAX_ROUTES + MAX_FORMATS + MAX_SINKS) as u64).next_multiple_of(4096);
/// Offset of the definitions.
pub const DEFINITIONS: u64 = MANIFESTS + MANIFEST_BYTES;
/// Offset of the first ring.
pub const RINGS: u64 = DEFINITIONS + DEFINITION_BYTES;

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Header>() <= 4096);
    assert!(size_of::<LaneHead>() == 512);
    assert!(size_of::<SinkHead>() == 512);
    assert!(MAX_POINTS * 24 <= 16 * 1024);
    assert!(RINGS < 1 << 32);
    assert!(LANES_OFFSET.is_multiple_of(512) && SINKS_OFFSET.is_multiple_of(512) && INDEXES_OFFSET.is_multiple_of(8));
};
