//! One thread per sink: takes finished chunks in batch order and writes them, retrying as long as needed.
//!
//! Pipeline stage: *writer (sink)* (see ARCHITECTURE.md). An [`Outlet`] is the queue between the collector and one
//! sink. The collector never waits for a sink. Chunks that a writer does not accept within 20 ms move to overflow files
//! on tmpfs. The chunk of a stuck write moves too. The overflow file holds it under its batch number; a recoverer skips
//! batches up to the sink's checkpoint.
//!
//! Invariants:
//! - Entries are in batch order.
//! - The lane space of a batch may be reused after its entry is written or spilled.
//! - Counters change only under the outlet's lock, so a snapshot under the lock is consistent.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: `front_batch`, `unspilled_batch`,
//! `overflowing_since`, `writing_since`, `flushed_ticket`, `error_number`. The collector reads these words in every
//! turn and must not take the lock to read them.
//!
//! This file is the collector's side of an outlet. The other files:
//! - `outlet.rs`: the fields of an outlet; `spool_state.rs` and `syncs.rs` hold more of its state;
//! - `thread.rs`: the writer's side;
//! - `delivery.rs`: the writer's side for sinks whose destination confirms later;
//! - `syncing.rs`: durability of batches;
//! - `spooling.rs`: the side of the spool's thread;
//! - `closing.rs`: the end of a sink; `members.rs`: the handlers that write to it, `joining.rs`: how they come
//!   and go;
//! - `entries.rs`: the queue itself, in all places where chunks are stored; `spare_chunks.rs`: written chunks to reuse.

mod closing;
mod delivery;
mod entries;
mod joining;
mod members;
mod outlet;
mod sink_spool;
mod spare_chunks;
mod spool_state;
mod spooling;
mod syncing;
mod syncs;
mod thread;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_sys::clock::monotonic_ns;
use logspool_sys::progress;
use logspool_sys::published::Published;

use crate::chunk::Chunk;
use crate::durable::SyncOutcome;
use crate::meters::{BATCH_RECORDS, SinkReading};
use crate::stats::{DropReason, SinkCounts};
use entries::{QueuedChunk, TransitFacts};
pub use joining::Departure;
pub use outlet::{NONE, Outlet};
use outlet::{OutletState, TEXT};
pub use sink_spool::{BacklogRead, SinkSpool};
pub use spare_chunks::drop_spare_chunks;
pub use spool_state::{Bell, SpoolHome, SpoolTurn};
pub use syncs::{SyncRule, Syncs};

/// A writer whose write has not returned for this long is stuck, and its records move to overflow.
///
/// Specified by docs/decisions/when-a-sink-is-stuck.md. A page-cache write takes well under a millisecond.
pub const STUCK_NS: u64 = 20_000_000;

/// A service that has confirmed nothing for this long, while records wait for it, is stuck.
///
/// Chosen: a healthy service makes a hundred commits in this time. Doubling it would alert an operator later; halving
/// it would report busy disks.
const UNCONFIRMED_STUCK_NS: u64 = 5_000_000_000;

/// If a write takes longer than this while another chunk waits, the waiting chunks move to overflow. The queued chunks
/// on the heap must also occupy at least [`SPILL_ABOVE_BYTES`] of the lanes.
///
/// Chosen: a healthy write of a batch takes a tenth of this time. A lane at 200,000 records a second fills in 15 ms, so
/// callers do not notice the delay. Halving it would spill on a busy disk; doubling it lengthens the longest call of a
/// burst.
const SPILL_AFTER_NS: u64 = 500_000;
/// Lane space for [`SPILL_AFTER_NS`], [`LAG_NS`] and [`LONG_QUEUE_LAG_NS`]. Lane space is counted, not lines: the lines
/// of a full lane may be as short as a tenth of their records.
///
/// Chosen: a quarter of the smallest lane. Halving it spills for a few records; doubling it leaves a small lane full
/// until the sink counts as stuck.
const SPILL_ABOVE_BYTES: usize = 8 * 1024;

/// If earlier chunks are not written yet, a chunk on the heap moves to an overflow file after this time, even while the
/// writer works. Until the chunk is written it occupies lane space, and the earlier chunks delay its write. Such a
/// writer may be slow although each of its writes is short: a pipe takes a chunk in pieces of 4 KiB.
///
/// Chosen: a lane at 200,000 records a second fills in 13 ms. With 1 ms, a writer that had no processor for a moment was
/// left behind for the rest of a burst: writing a chunk to a file and reading it again took longer than making one.
const LAG_NS: u64 = 5_000_000;

/// Replaces [`LAG_NS`] if more than [`LONG_QUEUE`] chunks are queued: an ordinary sink has been stalled, and a chunk
/// waits until all of them are written.
const LONG_QUEUE_LAG_NS: u64 = 1_000_000;

/// Chosen: twice the chunks that the heap holds. A writer that is only slow has fewer before it.
const LONG_QUEUE: u64 = 16;

/// Lane space of unconfirmed batches on the heap from which on they are spilled. They occupy it until they are
/// confirmed or spilled.
///
/// Chosen, with [`UNCONFIRMED_NS`]: a batch or two, so that records in transit never fill a lane. The time is long
/// enough that a quiet program needs no overflow file. It is short enough that unaccepted records soon leave the lanes.
const UNCONFIRMED_BYTES: usize = 64 * 1024;
/// How long unconfirmed batches may stay on the heap before they are spilled, in nanoseconds. See
/// [`UNCONFIRMED_BYTES`].
const UNCONFIRMED_NS: u64 = 1_000_000_000;

/// Replaces [`UNCONFIRMED_NS`] while calls wait until their record is durable, if the process has a spool, which can
/// make it durable.
///
/// Chosen: a commit of a busy service takes less. If the service is unreachable, a waiting call is delayed by this
/// much.
const AWAITED_NS: u64 = 100_000_000;

/// Maximum number of bytes of finished chunks on the heap for one sink.
///
/// Chosen: ten batches. Halving it makes the collector wait for the writer more often; doubling it gains nothing.
const HEAP_BYTES: usize = 1024 * 1024;

/// A chunk of at least this many bytes is large: it contains a large record, and takes longer than [`STUCK_NS`] on a
/// slow disk.
///
/// Chosen: it is twice the size of a batch of ordinary records.
const LARGE_BYTES: usize = 256 * 1024;

/// Whether an outlet can accept another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// The outlet can accept another chunk.
    Free,
    /// The outlet cannot accept a chunk now, but its writer makes progress.
    Busy,
    /// The outlet cannot accept a chunk: its writer is stuck and the overflow budget is used up.
    Saturated,
}

impl Outlet {
    /// Number of the batch of the oldest chunk that is not written yet, or [`NONE`].
    pub fn front_batch(&self) -> u64 {
        self.front_batch.observe()
    }

    /// Number of the batch of the oldest chunk that is only in lanes and on the heap, or [`NONE`].
    pub fn unspilled_batch(&self) -> u64 {
        self.unspilled_batch.observe()
    }

    /// If `notify` is true, the writer wakes the collector after each write, and sends records at once instead of
    /// gathering them.
    pub fn set_notify(&self, notify: bool) {
        self.notify.store(notify, Ordering::Relaxed);
        if notify && self.confirms {
            // Take the lock once. A writer that checked `notify` before this point is waiting by now, so the next call
            // wakes it.
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    /// The error of the last write. `None` if the last write succeeded.
    pub fn error(&self) -> Option<String> {
        match self.error_number.load(Ordering::Relaxed) {
            0 => None,
            TEXT => Some(self.lock().error.clone()),
            number => Some(std::io::Error::from_raw_os_error(number).to_string()),
        }
    }

    /// Whether the current write or sync takes too long.
    pub fn is_stuck(&self, now: u64) -> bool {
        self.writes_longer_than(if self.confirms { UNCONFIRMED_STUCK_NS } else { STUCK_NS }, now)
            || self.hangs_in_sync(now)
    }

    fn writes_longer_than(&self, nanoseconds: u64, now: u64) -> bool {
        let since = self.writing_since.load(Ordering::Relaxed);
        since != 0 && now.saturating_sub(since) > nanoseconds
    }

    /// Whether a large chunk is being written, within the time that a healthy sink needs.
    pub fn is_at_large_chunk(&self, now: u64) -> bool {
        now < self.large_until.load(Ordering::Relaxed)
    }

    /// Number of bytes that the sink has accepted.
    pub fn bytes_taken(&self) -> u64 {
        self.head().bytes_written.load(Ordering::Relaxed)
    }

    /// Publishes the sink's progress for the collector and for waiting flushes. Call it after every change of the
    /// entries, when the counters include the change.
    fn publish_fronts(&self, state: &mut OutletState) {
        let front = state.entries.first_batch().unwrap_or(NONE);
        let unspilled = state.entries.unstored().map_or(NONE, |entry| entry.batch);
        // Pairs with `observe` above. The collector frees lane space up to these batches; their bytes were read or
        // stored before this.
        self.front_batch.publish(front);
        self.unspilled_batch.publish(unspilled);
        if self.bell.is_some() {
            self.overflowing_since.store(state.entries.overflowing_since(), Ordering::Relaxed);
        }
        if self.answer_flushes(state, front) {
            progress::note();
        }
    }

    /// Returns a chunk to fill. It has reused buffers if there are any.
    pub fn spare_chunk(&self) -> Chunk {
        let usual = self.lock().usual;
        spare_chunks::take(usual)
    }

    /// Queues a chunk of a batch whose records occupy `lane_bytes` in the lanes. Returns whether a writer thread must be
    /// started.
    pub fn push(&self, chunk: Chunk, lane_bytes: usize, now: u64) -> bool {
        let mut state = self.lock();
        count(&self.head().accepted, chunk.counts);
        // The sink was closed while these records were in the pipeline. Python's logging would have raised for them.
        if state.dead.is_some() || self.is_closed() {
            self.count_dropped(state.dead.unwrap_or(DropReason::SinkClosed), chunk.counts);
            self.settle(&[chunk.batch], SyncOutcome::Failed);
            return false;
        }
        if self.has_no_reader() {
            self.settle(&[chunk.batch], SyncOutcome::Failed);
        }
        self.meters.batch_records.observe(&BATCH_RECORDS, chunk.marks.len() as f64);
        let bytes = chunk.bytes.len();
        let order = std::mem::take(&mut state.transit_facts);
        state.entries.push(QueuedChunk {
            batch: chunk.batch,
            counts: chunk.counts,
            bytes,
            lane_bytes,
            queued_at: now,
            heap: Some(Arc::new(chunk)),
            place: None,
            spool_end: None,
            is_loaded: false,
            order,
        });
        self.publish_fronts(&mut state);
        let start = !state.thread_runs;
        state.thread_runs = true;
        drop(state);
        self.changed.notify_one();
        start
    }

    /// Counts a batch's records for this sink as dropped, without queueing the batch.
    pub fn drop_chunk(&self, chunk: &Chunk, reason: DropReason) {
        let mut state = self.lock();
        state.transit_facts = TransitFacts { follows_dropped: true, ends_with_message: false };
        count(&self.head().accepted, chunk.counts);
        self.count_dropped(reason, chunk.counts);
        self.settle(&[chunk.batch], SyncOutcome::Failed);
    }

    /// Notes that the last record of the next chunk is a message that reports dropped records.
    pub fn note_message(&self) {
        self.lock().transit_facts.ends_with_message = true;
    }

    fn count_dropped(&self, reason: DropReason, counts: [impl Into<u64>; LEVEL_CLASSES]) {
        if reason == DropReason::Unreadable {
            self.has_unreadable.store(true, Ordering::Relaxed);
        }
        count(&self.head().dropped[reason as usize], counts);
    }

    /// Moves chunks that the writer does not accept to overflow files. Returns whether there is room for more.
    pub fn spill_queued(&self, now: u64) -> Capacity {
        if self.unspilled_batch() == NONE {
            return Capacity::Free;
        }
        let mut state = self.lock();
        let oldest = state.entries.unstored().map_or(now, |entry| entry.queued_at);
        let heap_bytes = state.entries.heap_bytes();
        let lane_bytes = state.entries.lane_bytes();
        let full = heap_bytes >= HEAP_BYTES;
        let (pressing, stands) = if self.confirms {
            let patience = if self.has_durability_waiters() { AWAITED_NS } else { UNCONFIRMED_NS };
            (lane_bytes >= UNCONFIRMED_BYTES, now.saturating_sub(oldest) > patience)
        } else {
            let pressing = state.entries.len() > 1
                && lane_bytes >= SPILL_ABOVE_BYTES
                && self.writes_longer_than(SPILL_AFTER_NS, now);
            // The writer neither finished an entry nor got a new one for this long. Its write hangs, or the thread gets
            // no processor time.
            (pressing, now.saturating_sub(oldest.max(state.finished_at)) > STUCK_NS)
        };
        let late = full && now.saturating_sub(oldest) > STUCK_NS;
        let is_stuck = pressing || stands || late;
        let lag = if state.entries.len() > LONG_QUEUE { LONG_QUEUE_LAG_NS } else { LAG_NS };
        let is_behind = !self.confirms
            && lane_bytes >= SPILL_ABOVE_BYTES
            && state.entries.len() > 1
            && now.saturating_sub(oldest) > lag;
        if !(is_stuck || is_behind) {
            return if full { Capacity::Busy } else { Capacity::Free };
        }
        let OutletState { entries, overflow, usual, .. } = &mut *state;
        let store = |chunk: &Chunk| {
            let place = overflow.append(chunk).ok()?;
            self.head().overflowed_batch.store(chunk.batch, Ordering::Relaxed);
            Some(place)
        };
        entries.store(store, |chunk| *usual = spare_chunks::put(chunk));
        self.publish_fronts(&mut state);
        if !is_stuck {
            return if state.entries.heap_bytes() >= HEAP_BYTES { Capacity::Busy } else { Capacity::Free };
        }
        let is_full = state.entries.heap_bytes() >= HEAP_BYTES || state.entries.unstored().is_some();
        let is_at_work = self.is_at_large_chunk(now);
        match (is_full, is_at_work || self.bell.is_some() && state.spool.is_making_room(is_full, now)) {
            (false, _) => Capacity::Free,
            (true, true) => Capacity::Busy,
            (true, false) => Capacity::Saturated,
        }
    }

    /// Bytes in the sink's spool, and the bytes that it may take: none if it takes no records now.
    pub fn spool_bytes(&self, max_bytes: u64) -> (u64, u64) {
        let state = self.lock();
        (state.spool.bytes, if state.spool.error.is_empty() { max_bytes } else { state.spool.bytes })
    }

    /// Returns the counters and the queue, all read at one moment.
    pub fn counts(&self) -> SinkCounts {
        let state = self.lock();
        let OutletState { entries, spool, .. } = &*state;
        SinkCounts {
            queued: entries.queued(),
            spooled: entries.spooled(),
            overflow_bytes: entries.overflow_bytes(),
            spool_bytes: spool.bytes,
            spool_error: spool.error.clone(),
            ..SinkCounts::read(self.head())
        }
    }

    /// Returns the metrics of this sink for operators.
    pub fn reading(&self) -> SinkReading {
        let oldest = self.lock().entries.oldest().map_or(0, |queued_at| monotonic_ns().saturating_sub(queued_at));
        self.meters.read(oldest as f64 / 1e9)
    }

    /// Number of records that this sink has ever been given.
    pub fn head_accepted(&self) -> u64 {
        self.head().accepted.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Calls `show` with each queued chunk, except the chunks that are only in the spool.
    pub fn show_queued(&self, show: impl Fn(&Chunk)) {
        let parts = |entry: &QueuedChunk| (entry.batch, entry.counts, entry.heap.clone(), entry.place.clone());
        let queued: Vec<_> = self.lock().entries.iter().map(parts).collect();
        // The lock is released here, since the collector needs it.
        for (batch, counts, heap, place) in queued {
            let stored = || place?.read(batch, counts).ok().map(Arc::new);
            if let Some(chunk) = heap.or_else(stored) {
                show(&chunk);
            }
        }
    }
}

/// Adds the records of a chunk to the counters of a sink.
fn count(counters: &[AtomicU64; LEVEL_CLASSES], counts: [impl Into<u64>; LEVEL_CLASSES]) {
    for (counter, count) in counters.iter().zip(counts) {
        counter.fetch_add(count.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use logspool_lanes::segment::Segment;
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::overflow::Budget;
    use crate::sinks::{NullOptions, SinkOptions};

    fn outlet() -> Outlet {
        let definition = NullOptions {}.define(Descriptor::Open);
        let sink = crate::sinks::open(&definition).unwrap();
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(1024 * 1024)))
    }

    /// Queues a chunk of one short line, whose records occupy `lane_bytes` in the lanes.
    fn push(outlet: &Outlet, batch: u64, lane_bytes: usize, now: u64) -> bool {
        outlet.push(Chunk { batch, bytes: b"line\n".to_vec(), ..Chunk::default() }, lane_bytes, now)
    }

    /// A sink that accepts records again after a stall: of so many stored chunks the writer has finished the first.
    fn outlet_after_stall(chunks: u64) -> Outlet {
        let outlet = outlet();
        let stalled = monotonic_ns();
        (1..=chunks).for_each(|batch| assert_eq!(batch == 1, push(&outlet, batch, SPILL_ABOVE_BYTES, stalled)));
        assert_eq!(Capacity::Free, outlet.spill_queued(stalled + 2 * STUCK_NS));
        assert_eq!(NONE, outlet.unspilled_batch());
        outlet.finish(0, None);
        outlet
    }

    #[test]
    fn a_chunk_after_spilled_ones_frees_its_lane_space_while_the_writer_works() {
        let stored = LONG_QUEUE + 1;
        let outlet = outlet_after_stall(stored);
        let now = monotonic_ns();
        push(&outlet, stored + 1, SPILL_ABOVE_BYTES, now);
        assert_eq!((Capacity::Free, stored + 1), (outlet.spill_queued(now), outlet.unspilled_batch()));

        assert_eq!(Capacity::Free, outlet.spill_queued(now + 2 * LONG_QUEUE_LAG_NS));
        assert_eq!(NONE, outlet.unspilled_batch());
    }

    #[test]
    fn a_chunk_after_few_spilled_ones_is_left_to_the_writer() {
        let outlet = outlet_after_stall(3);
        let now = monotonic_ns();
        push(&outlet, 4, SPILL_ABOVE_BYTES, now);
        assert_eq!((Capacity::Free, 4), (outlet.spill_queued(now + 2 * LONG_QUEUE_LAG_NS), outlet.unspilled_batch()));

        assert_eq!(Capacity::Free, outlet.spill_queued(now + 2 * LAG_NS));
        assert_eq!(NONE, outlet.unspilled_batch());
    }

    #[test]
    fn a_writer_that_works_slowly_keeps_no_lane_space() {
        let outlet = outlet();
        let now = monotonic_ns();
        push(&outlet, 1, SPILL_ABOVE_BYTES / 2, now);
        push(&outlet, 2, SPILL_ABOVE_BYTES / 2, now);
        assert_eq!((Capacity::Free, 1), (outlet.spill_queued(now + LAG_NS / 2), outlet.unspilled_batch()));

        assert_eq!(Capacity::Free, outlet.spill_queued(now + 2 * LAG_NS));
        assert_eq!(NONE, outlet.unspilled_batch());
    }

    #[test]
    fn chunks_that_occupy_little_of_the_lanes_stay_on_the_heap() {
        let outlet = outlet();
        let now = monotonic_ns();
        push(&outlet, 1, SPILL_ABOVE_BYTES / 4, now);
        push(&outlet, 2, SPILL_ABOVE_BYTES / 4, now);

        assert_eq!((Capacity::Free, 1), (outlet.spill_queued(now + 2 * LAG_NS), outlet.unspilled_batch()));
    }

    #[test]
    fn a_chunk_with_no_other_before_it_stays_on_the_heap() {
        let outlet = outlet();
        let now = monotonic_ns();
        push(&outlet, 1, 2 * SPILL_ABOVE_BYTES, now);

        assert_eq!((Capacity::Free, 1), (outlet.spill_queued(now + 2 * LAG_NS), outlet.unspilled_batch()));
    }
}
