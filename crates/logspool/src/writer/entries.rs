//! What waits for one sink, in batch order, wherever it lies.
//!
//! Three parts follow each other: `front`, what the writer has in its hands or is given next; the *backlog*, which lies
//! in the spool and takes no memory; `rest`, what came later. Without a backlog `front` and `rest` are one queue.
//!
//! Invariants: an entry has its chunk on the heap or a place in an overflow file, or both, but for one that a courier has
//! taken and the spool has a copy of; those of `rest` that have a place come before those that have none; nothing of
//! `front` has neither a place nor a copy in the spool while there is a backlog.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use logspool_lanes::segment::layout::LEVEL_CLASSES;

use super::Order;
use crate::chunk::Chunk;
use crate::overflow::Place;
use crate::stats::PerLevel;

/// One chunk that waits.
#[derive(Debug)]
pub struct Entry {
    /// Its batch.
    pub batch: u64,
    /// Its records.
    pub counts: [u32; LEVEL_CLASSES],
    /// Bytes of its lines.
    pub bytes: usize,
    /// When it came, by the monotonic clock.
    pub queued_at: u64,
    /// The chunk.
    pub heap: Option<Arc<Chunk>>,
    /// Where it lies in an overflow file.
    pub place: Option<Place>,
    /// The number behind it in the spool.
    pub spool_end: Option<u64>,
    /// Whether it came back from there.
    pub is_loaded: bool,
    /// What has to be noted before it goes to a sink that numbers its records.
    pub order: Order,
}

/// What lies in the spool alone.
#[derive(Debug, Default, Clone, Copy)]
pub struct Backlog {
    /// Chunks.
    pub chunks: u64,
    /// Bytes of their lines.
    pub bytes: u64,
    /// Batch of the oldest, not of one that was given back since.
    pub first_batch: u64,
    /// When the oldest came; of a chunk that was given back since at the earliest.
    pub queued_at: u64,
}

/// What became of a chunk that was put into the spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spooled {
    /// It is in the backlog.
    Away,
    /// The writer has it in its hands; the copy in the spool is for whoever recovers.
    AtHand,
    /// It was written or given up meanwhile.
    Gone,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Entries {
    front: VecDeque<Entry>,
    backlog: Backlog,
    /// Of chunks of the backlog, by batch, where there is something to note.
    orders: BTreeMap<u64, Order>,
    rest: VecDeque<Entry>,
    /// So many of `rest`, from its beginning, have a place.
    stored: usize,
    /// Bytes of `rest` without a place.
    heap_bytes: usize,
    /// Bytes of `front` that came back from the spool.
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
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.front.is_empty() && self.backlog.chunks == 0 && self.rest.is_empty()
    }

    /// Chunks that wait.
    pub fn len(&self) -> u64 {
        (self.front.len() + self.rest.len()) as u64 + self.backlog.chunks
    }

    /// The oldest, where it is at hand.
    pub fn first(&self) -> Option<&Entry> {
        self.get(0)
    }

    /// The entry that so many others are in front of, where it is at hand.
    pub fn get(&self, position: usize) -> Option<&Entry> {
        match self.front.get(position) {
            None if self.backlog.chunks == 0 => self.rest.get(position - self.front.len()),
            entry => entry,
        }
    }

    /// As [`Entries::get`].
    pub fn get_mut(&mut self, position: usize) -> Option<&mut Entry> {
        let before = self.front.len();
        match self.front.get_mut(position) {
            None if self.backlog.chunks == 0 => self.rest.get_mut(position - before),
            entry => entry,
        }
    }

    /// Batch of the oldest chunk.
    pub fn first_batch(&self) -> Option<u64> {
        let backlog = (self.backlog.chunks > 0).then_some(self.backlog.first_batch);
        let front = self.front.front().map(|entry| entry.batch);
        front.or(backlog).or_else(|| self.rest.front().map(|entry| entry.batch))
    }

    /// When the oldest chunk came.
    pub fn oldest(&self) -> Option<u64> {
        let backlog = (self.backlog.chunks > 0).then_some(self.backlog.queued_at);
        let front = self.front.front().map(|entry| entry.queued_at);
        front.or(backlog).or_else(|| self.rest.front().map(|entry| entry.queued_at))
    }

    /// The oldest chunk that only lanes and heap hold.
    pub fn unstored(&self) -> Option<&Entry> {
        self.rest.get(self.stored)
    }

    /// Whether chunks that lie elsewhere come before the oldest that only lanes and heap hold.
    pub fn follows_stored(&self) -> bool {
        self.stored > 0 || self.backlog.chunks > 0 || !self.front.is_empty()
    }

    /// When the oldest chunk came that lies in an overflow file and not in the spool. 0: there is none; 1: there is
    /// none, but some lie in the spool.
    pub fn overflowing_since(&self) -> u64 {
        let overflows = |entry: &&Entry| entry.place.is_some() && entry.spool_end.is_none();
        let at = self.front.partition_point(|entry| entry.spool_end.is_some());
        let oldest = self.front.get(at).filter(overflows).or_else(|| self.rest.front().filter(overflows));
        let spools = self.backlog.chunks > 0 || at > 0;
        oldest.map_or(u64::from(spools), |entry| entry.queued_at.max(2))
    }

    /// Bytes of chunks that only lanes and heap hold.
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// Bytes that lie in overflow files.
    pub fn overflow_bytes(&self) -> u64 {
        self.overflow_bytes
    }

    /// Records on the heap or in overflow files alone.
    pub fn queued(&self) -> PerLevel {
        self.queued
    }

    /// Records in the spool.
    pub fn spooled(&self) -> PerLevel {
        self.spooled
    }

    /// What lies in the spool alone.
    pub fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// Bytes that came back from the spool and wait.
    pub fn loaded_bytes(&self) -> usize {
        self.loaded_bytes
    }

    /// Adds the newest.
    pub fn push(&mut self, entry: Entry) {
        add(&mut self.queued, entry.counts);
        self.heap_bytes += entry.bytes;
        self.rest.push_back(entry);
    }

    /// Gives the chunks without a place to `store`, oldest first, until it has none for one. The first of all keeps
    /// its chunk on the heap: the writer may have it in its hands.
    pub fn store(&mut self, mut store: impl FnMut(&Chunk) -> Option<Place>) {
        let is_first_at_hand = self.front.is_empty() && self.backlog.chunks == 0;
        while let Some(entry) = self.rest.get_mut(self.stored) {
            let chunk = entry.heap.as_ref().expect("an entry without a place has its chunk on the heap");
            let Some(place) = store(chunk) else { return };
            entry.place = Some(place);
            self.heap_bytes -= entry.bytes;
            self.overflow_bytes += entry.bytes as u64;
            if self.stored > 0 || !is_first_at_hand {
                entry.heap = None;
            }
            self.stored += 1;
        }
    }

    /// Takes the oldest off, where it is at hand.
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = match self.front.pop_front() {
            None if self.backlog.chunks == 0 => self.pop_rest()?,
            None => return None,
            Some(entry) => entry,
        };
        self.forget(&entry);
        Some(entry)
    }

    /// Takes off the entry that so many others are in front of, where it is at hand.
    pub fn remove(&mut self, position: usize) -> Option<Entry> {
        let entry = if position < self.front.len() {
            self.front.remove(position)?
        } else if self.backlog.chunks == 0 {
            let position = position - self.front.len();
            let entry = self.rest.remove(position)?;
            if position < self.stored {
                self.stored -= 1;
            } else {
                self.heap_bytes -= entry.bytes;
            }
            entry
        } else {
            return None;
        };
        self.forget(&entry);
        Some(entry)
    }

    fn pop_rest(&mut self) -> Option<Entry> {
        let entry = self.rest.pop_front()?;
        match self.stored {
            0 => self.heap_bytes -= entry.bytes,
            _ => self.stored -= 1,
        }
        Some(entry)
    }

    fn forget(&mut self, entry: &Entry) {
        take(if entry.spool_end.is_some() { &mut self.spooled } else { &mut self.queued }, entry.counts);
        if entry.place.is_some() {
            self.overflow_bytes -= entry.bytes as u64;
        }
        if entry.is_loaded {
            self.loaded_bytes -= entry.bytes;
        }
    }

    /// The oldest chunk that lies in an overflow file and not in the spool, and whether it stays at hand: the first
    /// `hands` of all are in the writer's.
    pub fn next_to_spool(&mut self, hands: usize) -> Option<&Entry> {
        if self.backlog.chunks == 0 {
            while self.front.len() < hands && self.stored > 0 {
                let entry = self.rest.pop_front().expect("some are stored");
                self.stored -= 1;
                self.front.push_back(entry);
            }
        }
        // What the spool has comes first.
        let at = self.front.partition_point(|entry| entry.spool_end.is_some());
        self.front.get(at).or_else(|| self.rest.front().filter(|entry| entry.place.is_some()))
    }

    /// Notes that the chunk of a batch lies in the spool, in front of number `end`. One that the writer has in its hands,
    /// as one of the first `hands` of all, stays at hand; any other is in the backlog from here on, and its place in the
    /// overflow file is free. So is that of the first `taken`, which a courier has: only a recoverer reads them again.
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
        if entry.order != Order::default() {
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

    /// Takes the oldest chunk of the backlog back.
    pub fn load(&mut self, chunk: Chunk, end: u64) {
        let bytes = chunk.bytes.len();
        let order = self.orders.remove(&chunk.batch).unwrap_or_default();
        self.shrink_backlog(bytes, chunk.batch);
        self.loaded_bytes += bytes;
        self.front.push_back(Entry {
            batch: chunk.batch,
            counts: chunk.counts,
            bytes,
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
        // The next one has a higher number; which, nobody knows before it is read.
        self.backlog.first_batch = batch + 1;
    }

    /// Gives up the backlog, which nobody can read, and returns its records.
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

    /// Everything at hand, oldest first; what lies in the spool alone is left out.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.front.iter().chain(&self.rest)
    }
}
