//! The queue of one sink, in batch order, across all places where chunks are stored.
//!
//! It has three consecutive parts:
//! - `front`: chunks that the writer holds or gets next;
//! - the *backlog*: chunks that are only in the spool, so they take no memory;
//! - `rest`: later chunks. Without a backlog, `front` and `rest` form one queue.
//!
//! Invariants:
//! - An entry has its chunk on the heap, or a place in an overflow file, or both. The exception is a chunk that a
//!   courier has taken and that the spool has a copy of.
//! - In `rest`, entries with a place come before entries without one.
//! - While there is a backlog, each entry of `front` has a place or a copy in the spool.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use logspool_lanes::segment::layout::LEVEL_CLASSES;

use crate::chunk::Chunk;
use crate::overflow::OverflowPlace;
use crate::stats::PerLevel;

/// A queued chunk.
#[derive(Debug)]
pub struct QueuedChunk {
    /// Number of the batch to which the chunk belongs.
    pub batch: u64,
    /// Number of records of the chunk, by level class.
    pub counts: [u32; LEVEL_CLASSES],
    /// Number of bytes of the chunk's lines.
    pub bytes: usize,
    /// Number of bytes that the records of its batch occupy in the lanes, with the bytes of large records.
    pub lane_bytes: usize,
    /// Time at which the chunk was queued, on the monotonic clock.
    pub queued_at: u64,
    /// The chunk, if it is on the heap.
    pub heap: Option<Arc<Chunk>>,
    /// Place of the chunk in an overflow file, if it is in one.
    pub place: Option<OverflowPlace>,
    /// Record number after the chunk in the spool, if the chunk is in the spool.
    pub spool_end: Option<u64>,
    /// Whether the chunk was loaded back from the spool.
    pub is_loaded: bool,
    /// Facts to note before the chunk is sent to a sink that numbers its records.
    pub order: TransitFacts,
}

/// Facts that must be noted before a batch is sent to a sink that numbers its records, see `delivery.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransitFacts {
    /// Records of the sink were dropped directly before this batch.
    pub follows_dropped: bool,
    /// The last record of this batch is a message on dropped records, which no lane holds.
    pub ends_with_message: bool,
}

/// The chunks that are only in the spool.
#[derive(Debug, Default, Clone, Copy)]
pub struct Backlog {
    /// Number of chunks.
    pub chunks: u64,
    /// Number of bytes of their lines.
    pub bytes: u64,
    /// Number of the batch of the oldest chunk. It is a lower bound after chunks were loaded.
    pub first_batch: u64,
    /// Time at which the oldest chunk was queued. It is a lower bound after chunks were loaded.
    pub queued_at: u64,
}

/// Where a chunk is after it was copied to the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spooled {
    /// The chunk is in the backlog.
    Away,
    /// The writer holds the chunk; the copy in the spool is for a recoverer.
    AtHand,
    /// The chunk was written or dropped in the meantime.
    Gone,
}

/// The queue of one sink. The module documentation describes its parts and invariants.
#[derive(Debug, Default)]
pub struct Entries {
    front: VecDeque<QueuedChunk>,
    backlog: Backlog,
    /// Facts to note for chunks of the backlog, by batch number.
    orders: BTreeMap<u64, TransitFacts>,
    rest: VecDeque<QueuedChunk>,
    /// Number of entries, from the beginning of `rest`, that have a place in an overflow file.
    stored: usize,
    /// Bytes of entries in `rest` without a place in an overflow file.
    heap_bytes: usize,
    /// Bytes that these entries occupy in the lanes.
    lane_bytes: usize,
    /// Bytes of entries in `front` that were loaded from the spool.
    loaded_bytes: usize,
    overflow_bytes: u64,
    queued: PerLevel,
    spooled: PerLevel,
}

fn add(total: &mut PerLevel, counts: [u32; LEVEL_CLASSES]) {
    total.iter_mut().zip(counts).for_each(|(total, count)| *total += u64::from(count));
}

fn take(total: &mut PerLevel, counts: [u32; LEVEL_CLASSES]) {
    total.iter_mut().zip(counts).for_each(|(total, count)| *total -= u64::from(count));
}

impl Entries {
    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.backlog.chunks == 0 && self.rest.is_empty()
    }

    /// Number of queued chunks.
    pub fn len(&self) -> u64 {
        (self.front.len() + self.rest.len()) as u64 + self.backlog.chunks
    }

    /// The oldest entry, if it is not in the backlog.
    pub fn first(&self) -> Option<&QueuedChunk> {
        self.get(0)
    }

    /// The entry that has `position` entries before it. `None` if that entry is in the backlog or does not exist.
    pub fn get(&self, position: usize) -> Option<&QueuedChunk> {
        match self.front.get(position) {
            None if self.backlog.chunks == 0 => self.rest.get(position - self.front.len()),
            entry => entry,
        }
    }

    /// Does the same as [`Entries::get`], for changing the entry.
    pub fn get_mut(&mut self, position: usize) -> Option<&mut QueuedChunk> {
        let before = self.front.len();
        match self.front.get_mut(position) {
            None if self.backlog.chunks == 0 => self.rest.get_mut(position - before),
            entry => entry,
        }
    }

    /// Number of the batch of the oldest chunk.
    pub fn first_batch(&self) -> Option<u64> {
        let backlog = (self.backlog.chunks > 0).then_some(self.backlog.first_batch);
        let front = self.front.front().map(|entry| entry.batch);
        front.or(backlog).or_else(|| self.rest.front().map(|entry| entry.batch))
    }

    /// Time at which the oldest chunk was queued.
    pub fn oldest(&self) -> Option<u64> {
        let backlog = (self.backlog.chunks > 0).then_some(self.backlog.queued_at);
        let front = self.front.front().map(|entry| entry.queued_at);
        front.or(backlog).or_else(|| self.rest.front().map(|entry| entry.queued_at))
    }

    /// Returns the oldest chunk that is only in lanes and on the heap.
    pub fn unstored(&self) -> Option<&QueuedChunk> {
        self.rest.get(self.stored)
    }

    /// Time at which the oldest chunk was queued that is in an overflow file and not in the spool. 0 means that there
    /// is no such chunk. 1 means the same, but there are chunks in the spool.
    pub fn overflowing_since(&self) -> u64 {
        let overflows = |entry: &&QueuedChunk| entry.place.is_some() && entry.spool_end.is_none();
        let at = self.front.partition_point(|entry| entry.spool_end.is_some());
        let oldest = self.front.get(at).filter(overflows).or_else(|| self.rest.front().filter(overflows));
        let spools = self.backlog.chunks > 0 || at > 0;
        oldest.map_or(u64::from(spools), |entry| entry.queued_at.max(2))
    }

    /// Bytes of chunks that are only in lanes and on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Bytes that these chunks occupy in the lanes. Lines may be shorter than their records by any factor.
    pub fn lane_bytes(&self) -> usize {
        self.lane_bytes
    }

    /// Number of bytes in overflow files.
    pub fn overflow_bytes(&self) -> u64 {
        self.overflow_bytes
    }

    /// Number of records on the heap or in overflow files that are not in the spool, by level class.
    pub fn queued(&self) -> PerLevel {
        self.queued
    }

    /// Number of records in the spool, by level class.
    pub fn spooled(&self) -> PerLevel {
        self.spooled
    }

    /// Describes the chunks that are only in the spool.
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Number of bytes of queued chunks that were loaded from the spool.
    pub fn loaded_bytes(&self) -> usize {
        self.loaded_bytes
    }

    /// Appends an entry to the queue.
    pub fn push(&mut self, entry: QueuedChunk) {
        add(&mut self.queued, entry.counts);
        self.heap_bytes += entry.bytes;
        self.lane_bytes += entry.lane_bytes;
        self.rest.push_back(entry);
    }

    /// Calls `store` for each chunk without a place, oldest first, until `store` returns no place. The first entry of
    /// the queue keeps its chunk on the heap as well, since the writer may be using it. `reuse` gets the other chunks.
    pub fn store(&mut self, mut store: impl FnMut(&Chunk) -> Option<OverflowPlace>, mut reuse: impl FnMut(Chunk)) {
        let is_first_at_hand = self.front.is_empty() && self.backlog.chunks == 0;
        while let Some(entry) = self.rest.get_mut(self.stored) {
            let chunk = entry.heap.as_ref().expect("an entry without a place has its chunk on the heap");
            let Some(place) = store(chunk) else { return };
            entry.place = Some(place);
            self.heap_bytes -= entry.bytes;
            self.lane_bytes -= entry.lane_bytes;
            self.overflow_bytes += entry.bytes as u64;
            if (self.stored > 0 || !is_first_at_hand)
                && let Some(chunk) = entry.heap.take().and_then(Arc::into_inner)
            {
                reuse(chunk);
            }
            self.stored += 1;
        }
    }

    /// Removes the oldest entry and returns it. Returns `None` if the oldest chunk is in the backlog.
    pub fn pop(&mut self) -> Option<QueuedChunk> {
        let entry = match self.front.pop_front() {
            None if self.backlog.chunks == 0 => self.pop_rest()?,
            None => return None,
            Some(entry) => entry,
        };
        self.forget(&entry);
        Some(entry)
    }

    /// Removes the entry that has `position` entries before it. Returns `None` if that entry is in the backlog or does
    /// not exist.
    pub fn remove(&mut self, position: usize) -> Option<QueuedChunk> {
        let entry = if position < self.front.len() {
            self.front.remove(position)?
        } else if self.backlog.chunks == 0 {
            let position = position - self.front.len();
            let entry = self.rest.remove(position)?;
            if position < self.stored {
                self.stored -= 1;
            } else {
                self.leave_lanes(&entry);
            }
            entry
        } else {
            return None;
        };
        self.forget(&entry);
        Some(entry)
    }

    fn pop_rest(&mut self) -> Option<QueuedChunk> {
        let entry = self.rest.pop_front()?;
        match self.stored {
            0 => self.leave_lanes(&entry),
            _ => self.stored -= 1,
        }
        Some(entry)
    }

    /// Counts an entry without a place as removed.
    fn leave_lanes(&mut self, entry: &QueuedChunk) {
        self.heap_bytes -= entry.bytes;
        self.lane_bytes -= entry.lane_bytes;
    }

    fn forget(&mut self, entry: &QueuedChunk) {
        take(if entry.spool_end.is_some() { &mut self.spooled } else { &mut self.queued }, entry.counts);
        if entry.place.is_some() {
            self.overflow_bytes -= entry.bytes as u64;
        }
        if entry.is_loaded {
            self.loaded_bytes -= entry.bytes;
        }
    }

    /// Returns the oldest chunk that is in an overflow file and not in the spool. First moves entries that the writer
    /// holds to `front`, until `front` has `hands` entries.
    pub fn next_to_spool(&mut self, hands: usize) -> Option<&QueuedChunk> {
        if self.backlog.chunks == 0 {
            while self.front.len() < hands && self.stored > 0 {
                let entry = self.rest.pop_front().expect("some are stored");
                self.stored -= 1;
                self.front.push_back(entry);
            }
        }
        // Entries with a copy in the spool come before entries without one.
        let at = self.front.partition_point(|entry| entry.spool_end.is_some());
        self.front.get(at).or_else(|| self.rest.front().filter(|entry| entry.place.is_some()))
    }

    /// Notes that the chunk of batch `batch` is in the spool, before record number `end`.
    ///
    /// If the chunk is among the first `hands` entries, which the writer holds, it stays in `front`. Otherwise it moves
    /// to the backlog, and its place in the overflow file is freed. The places of the first `taken` entries, which a
    /// courier has taken, are freed too: only a recoverer reads them again.
    pub fn note_spooled(&mut self, batch: u64, end: u64, hands: usize, taken: usize) -> Spooled {
        if self.backlog.chunks == 0
            && self.front.len() < hands
            && self.rest.front().is_some_and(|entry| entry.batch == batch)
        {
            let entry = self.rest.pop_front().expect("it was looked at");
            self.stored -= 1;
            self.front.push_back(entry);
        }
        if let Ok(at) = self.front.binary_search_by_key(&batch, |entry| entry.batch) {
            let entry = &mut self.front[at];
            entry.spool_end = Some(end);
            take(&mut self.queued, entry.counts);
            add(&mut self.spooled, entry.counts);
            if at < taken && entry.place.take().is_some() {
                entry.heap = None;
                self.overflow_bytes -= entry.bytes as u64;
            }
            return Spooled::AtHand;
        }
        if self.rest.front().is_none_or(|entry| entry.batch != batch) {
            return Spooled::Gone;
        }
        let entry = self.rest.pop_front().expect("it was looked at");
        self.stored -= 1;
        if entry.order != TransitFacts::default() {
            self.orders.insert(batch, entry.order);
        }
        self.overflow_bytes -= entry.bytes as u64;
        take(&mut self.queued, entry.counts);
        add(&mut self.spooled, entry.counts);
        if self.backlog.chunks == 0 {
            self.backlog = Backlog { first_batch: batch, queued_at: entry.queued_at, ..Backlog::default() };
        }
        self.backlog.chunks += 1;
        self.backlog.bytes += entry.bytes as u64;
        Spooled::Away
    }

    /// Moves the oldest chunk of the backlog to `front`.
    pub fn load(&mut self, chunk: Chunk, end: u64) {
        let bytes = chunk.bytes.len();
        let order = self.orders.remove(&chunk.batch).unwrap_or_default();
        self.shrink_backlog(bytes, chunk.batch);
        self.loaded_bytes += bytes;
        self.front.push_back(QueuedChunk {
            batch: chunk.batch,
            counts: chunk.counts,
            bytes,
            lane_bytes: 0,
            queued_at: self.backlog.queued_at,
            heap: Some(Arc::new(chunk)),
            place: None,
            spool_end: Some(end),
            is_loaded: true,
            order,
        });
    }

    fn shrink_backlog(&mut self, bytes: usize, batch: u64) {
        self.backlog.chunks -= 1;
        self.backlog.bytes -= bytes as u64;
        // The next chunk has a higher batch number. The exact number is unknown before the chunk is read.
        self.backlog.first_batch = batch + 1;
    }

    /// Drops the backlog, which is unreadable, and returns the numbers of its records by level class.
    pub fn lose_backlog(&mut self) -> PerLevel {
        let mut lost = self.spooled;
        for entry in self.front.iter().filter(|entry| entry.spool_end.is_some()) {
            take(&mut lost, entry.counts);
        }
        for (total, lost) in self.spooled.iter_mut().zip(lost) {
            *total -= lost;
        }
        self.backlog = Backlog::default();
        self.orders.clear();
        if let Some(next) = self.rest.front_mut() {
            next.order.follows_dropped = true;
        }
        lost
    }

    /// Iterates over all entries except the backlog, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedChunk> {
        self.front.iter().chain(&self.rest)
    }
}
