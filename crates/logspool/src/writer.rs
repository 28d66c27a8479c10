//! One thread per sink: takes finished chunks in batch order and writes them, whatever that takes.
//!
//! Stop on the line: *writer (sink)*. An [`Outlet`] is the queue between the collector and one sink.
//! The collector never waits for a sink: what a writer does not take within 20 ms moves to overflow files
//! on tmpfs, also the chunk it is stuck in (the file then holds it under its batch number, and whoever
//! recovers skips batches that the sink's checkpoint has passed).
//!
//! Invariants: entries are in batch order; a batch's lane space may be reused when its entry is written or
//! spilled; counters change under the outlet's lock only, so a snapshot under it is consistent.
//!
//! Atomics outside `queue` and `stats`, because the collector reads them with every turn and must not take
//! the lock for it: `front_batch`, `unspilled_batch`, `writing_since`, `flushed_ticket`, `error_number`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{monotonic_ns, wall_ns};
use crate::definition::{SinkDefinition, SinkPlace};
use crate::meters::{BATCH_RECORDS, ErrorClass, SinkMeters, SinkReading, WRITE_SECONDS};
use crate::overflow::{Budget, Chunk, Overflow, Place};
use crate::segment::Segment;
use crate::segment::layout::{LEVEL_CLASSES, SinkHead, Table};
use crate::sink::{Lines, Sink, SinkError};
use crate::stats::{DropReason, SinkCounts};

/// A writer that has not come back for this long is stuck, and its records move to overflow.
///
/// Specified (ARCHITECTURE.md); a page-cache write takes well under a millisecond.
pub const STUCK_NS: u64 = 20_000_000;

/// A write that takes longer than this while another chunk waits behind it, [`PRESSING_BYTES`] in all, is not
/// waited for.
///
/// Chosen: a healthy write of a batch takes a tenth of it; a lane at 200,000 records a second fills in 15 ms,
/// so callers do not notice. Half would spill on a busy disk, double shows in the longest call of a burst.
const PRESSING_NS: u64 = 500_000;
/// See [`PRESSING_NS`]: half a batch, so that a lane never waits for a second one.
const PRESSING_BYTES: usize = 32 * 1024;

/// Bytes of finished chunks that wait on the heap for one sink.
///
/// Chosen: ten batches; half makes the collector wait for the writer more often, double gains nothing.
const HEAP_BYTES: usize = 1024 * 1024;

/// First and longest pause between two tries of a failed write.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Sinks released so far.
static RELEASED: AtomicU64 = AtomicU64::new(0);

/// Value of the batch words when there is no such entry.
pub const NONE: u64 = u64::MAX;

#[derive(Debug)]
struct Entry {
    batch: u64,
    counts: [u32; LEVEL_CLASSES],
    bytes: usize,
    queued_at: u64,
    heap: Option<Arc<Chunk>>,
    spilled: Option<Place>,
}

#[derive(Debug)]
struct Waiting {
    entries: VecDeque<Entry>,
    unspilled_bytes: usize,
    overflow: Overflow,
    leave: bool,
    dead: bool,
    /// When the writer was last done with an entry.
    finished_at: u64,
    /// The sink was closed; once this flush is answered and nothing is queued, it is released.
    closing: Option<u64>,
    thread_runs: bool,
    spare: Vec<Chunk>,
}

/// The queue of one sink.
pub struct Outlet {
    /// Id in the sink table.
    pub id: u32,
    /// What was opened.
    pub definition: SinkDefinition,
    /// What its descriptor refers to, when others may share it.
    pub place: Option<SinkPlace>,
    /// Whether a later start can write what this process does not.
    pub is_recoverable: bool,
    users: AtomicU32,
    closed: AtomicBool,
    /// When the sink was released, 0 before: a count, not a time.
    released: AtomicU64,
    segment: Arc<Segment>,
    sink: Mutex<Option<Box<dyn Sink>>>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    front_batch: AtomicU64,
    unspilled_batch: AtomicU64,
    writing_since: AtomicU64,
    error_number: AtomicI32,
    notify: AtomicBool,
    begun: AtomicBool,
    meters: SinkMeters,
    /// Newest flush ticket for which everything was written.
    pub flushed_ticket: AtomicU64,
    /// How often the sink has gone over to another file. Kept by shells beyond the outlet.
    pub turns: Arc<AtomicU64>,
}

/// Whether an outlet can take another chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capacity {
    /// Yes.
    Free,
    /// Not at the moment; its writer is at work.
    Busy,
    /// No: its writer is stuck and the overflow budget is used up.
    Saturated,
}

impl Outlet {
    /// An outlet for an open sink.
    pub fn new(
        id: u32,
        definition: SinkDefinition,
        place: Option<SinkPlace>,
        sink: Box<dyn Sink>,
        segment: Arc<Segment>,
        budget: Arc<Budget>,
    ) -> Self {
        let overflow = Overflow::new(segment.clone(), budget, id);
        Self {
            id,
            definition,
            place,
            is_recoverable: false,
            users: AtomicU32::new(1),
            closed: AtomicBool::new(false),
            released: AtomicU64::new(0),
            segment,
            sink: Mutex::new(Some(sink)),
            waiting: Mutex::new(Waiting {
                entries: VecDeque::new(),
                unspilled_bytes: 0,
                overflow,
                leave: false,
                dead: false,
                finished_at: 0,
                closing: None,
                thread_runs: false,
                spare: Vec::new(),
            }),
            changed: Condvar::new(),
            front_batch: AtomicU64::new(NONE),
            unspilled_batch: AtomicU64::new(NONE),
            writing_since: AtomicU64::new(0),
            error_number: AtomicI32::new(0),
            notify: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            meters: SinkMeters::default(),
            flushed_ticket: AtomicU64::new(0),
            turns: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A writer that panicked left counters and queue as they are between two statements of this file.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self) -> &SinkHead {
        self.segment.sink(Table::Sinks.slot(self.id))
    }

    /// Lets another handler write here. `false`: the sink is being closed, open another one.
    pub fn add_user(&self) -> bool {
        let added =
            self.users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| (users > 0).then_some(users + 1));
        added.is_ok()
    }

    /// Ends what `add_user` or the opening began. Returns whether this was the last user.
    pub fn remove_user(&self) -> bool {
        let removed = self.users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |users| users.checked_sub(1));
        removed == Ok(1)
    }

    /// Batch of the oldest chunk not yet written, or [`NONE`].
    pub fn front_batch(&self) -> u64 {
        self.front_batch.load(Ordering::Acquire)
    }

    /// Batch of the oldest chunk that only lanes and heap hold, or [`NONE`].
    pub fn unspilled_batch(&self) -> u64 {
        self.unspilled_batch.load(Ordering::Acquire)
    }

    /// Asks the writer to wake the collector when it has written something.
    pub fn set_notify(&self, notify: bool) {
        self.notify.store(notify, Ordering::Relaxed);
    }

    /// The error of the last write, if it failed.
    pub fn error(&self) -> Option<std::io::Error> {
        match self.error_number.load(Ordering::Relaxed) {
            0 => None,
            number => Some(std::io::Error::from_raw_os_error(number)),
        }
    }

    /// Whether the writer has not come back for too long or fails.
    pub fn is_stuck(&self, now: u64) -> bool {
        self.writes_longer_than(STUCK_NS, now)
    }

    fn writes_longer_than(&self, nanoseconds: u64, now: u64) -> bool {
        let since = self.writing_since.load(Ordering::Relaxed);
        since != 0 && now.saturating_sub(since) > nanoseconds
    }

    fn publish_fronts(&self, waiting: &Waiting) {
        let front = waiting.entries.front().map_or(NONE, |entry| entry.batch);
        let unspilled = waiting.entries.iter().find(|entry| entry.spilled.is_none()).map_or(NONE, |entry| entry.batch);
        // Release: the collector frees lane space by these; the chunk's bytes were read or stored before.
        self.front_batch.store(front, Ordering::Release);
        self.unspilled_batch.store(unspilled, Ordering::Release);
    }

    /// A chunk to fill, with buffers that were used before where there are some.
    pub fn spare_chunk(&self) -> Chunk {
        self.lock().spare.pop().unwrap_or_default()
    }

    /// Queues a chunk. Returns whether a writer thread must be started.
    pub fn push(&self, chunk: Chunk, now: u64) -> bool {
        let mut waiting = self.lock();
        count(&self.head().accepted, chunk.counts);
        // A record that was on its way when its sink was closed: stock logging would have raised there.
        if waiting.dead || self.is_closed() {
            self.count_dropped(DropReason::SinkClosed, chunk.counts);
            return false;
        }
        self.meters.batch_records.observe(&BATCH_RECORDS, chunk.marks.len() as f64);
        let bytes = chunk.bytes.len();
        waiting.unspilled_bytes += bytes;
        waiting.entries.push_back(Entry {
            batch: chunk.batch,
            counts: chunk.counts,
            bytes,
            queued_at: now,
            heap: Some(Arc::new(chunk)),
            spilled: None,
        });
        self.publish_fronts(&waiting);
        let start = !waiting.thread_runs;
        waiting.thread_runs = true;
        drop(waiting);
        self.changed.notify_one();
        start
    }

    /// Counts a batch's records for this sink as dropped without queueing them.
    pub fn drop_chunk(&self, chunk: &Chunk, reason: DropReason) {
        let _waiting = self.lock();
        count(&self.head().accepted, chunk.counts);
        self.count_dropped(reason, chunk.counts);
    }

    fn count_dropped(&self, reason: DropReason, counts: [u32; LEVEL_CLASSES]) {
        count(&self.head().dropped[reason as usize], counts);
    }

    /// Moves what the writer does not take to overflow files, and says whether there is room for more.
    pub fn relieve(&self, now: u64) -> Capacity {
        if self.unspilled_batch() == NONE {
            return Capacity::Free;
        }
        let mut waiting = self.lock();
        let oldest = waiting.entries.iter().find(|entry| entry.spilled.is_none()).map_or(now, |entry| entry.queued_at);
        let full = waiting.unspilled_bytes >= HEAP_BYTES;
        let pressing = waiting.entries.len() > 1
            && waiting.unspilled_bytes >= PRESSING_BYTES
            && self.writes_longer_than(PRESSING_NS, now);
        // Neither done with anything nor new for so long: it hangs in its write, or the system does not let it run.
        let stands = now.saturating_sub(oldest.max(waiting.finished_at)) > STUCK_NS;
        let late = full && now.saturating_sub(oldest) > STUCK_NS;
        if !(pressing || stands || late) {
            return if full { Capacity::Busy } else { Capacity::Free };
        }
        let Waiting { entries, overflow, unspilled_bytes, .. } = &mut *waiting;
        for (position, entry) in entries.iter_mut().enumerate() {
            if entry.spilled.is_some() {
                continue;
            }
            let chunk = entry.heap.as_ref().expect("an entry lies on the heap or is spilled");
            match overflow.append(chunk) {
                Ok(place) => {
                    entry.spilled = Some(place);
                    *unspilled_bytes -= entry.bytes;
                    self.head().overflowed_batch.store(entry.batch, Ordering::Relaxed);
                    // The first entry may be in the writer's hands; the others are read back later.
                    if position > 0 {
                        entry.heap = None;
                    }
                }
                Err(_) => break,
            }
        }
        self.publish_fronts(&waiting);
        if waiting.unspilled_bytes >= HEAP_BYTES || waiting.entries.iter().any(|entry| entry.spilled.is_none()) {
            Capacity::Saturated
        } else {
            Capacity::Free
        }
    }

    /// Counters and queue at one moment.
    pub fn counts(&self) -> SinkCounts {
        let waiting = self.lock();
        let mut queued = [0; LEVEL_CLASSES];
        let mut overflow_bytes = 0;
        for entry in &waiting.entries {
            for (total, count) in queued.iter_mut().zip(entry.counts) {
                *total += u64::from(count);
            }
            if entry.spilled.is_some() {
                overflow_bytes += entry.bytes as u64;
            }
        }
        SinkCounts::read(self.head(), queued, overflow_bytes)
    }

    /// What an operator watches.
    pub fn reading(&self) -> SinkReading {
        let oldest = self.lock().entries.front().map_or(0, |entry| monotonic_ns().saturating_sub(entry.queued_at));
        self.meters.read(oldest as f64 / 1e9)
    }

    /// Asks the writer thread to leave, with the chunk in its hands put back.
    pub fn ask_to_leave(&self) {
        self.lock().leave = true;
        self.changed.notify_all();
    }

    /// The writer thread could not be started.
    pub fn has_no_thread(&self) {
        self.lock().thread_runs = false;
    }

    /// Whether chunks wait and no writer thread runs although it may: then one must be started.
    pub fn wants_thread(&self) -> bool {
        let mut waiting = self.lock();
        let wants = !waiting.thread_runs && !waiting.leave && self.has_work(&waiting);
        waiting.thread_runs |= wants;
        wants
    }

    /// Whether a writer thread runs.
    pub fn thread_runs(&self) -> bool {
        self.lock().thread_runs
    }

    /// Lets a writer thread run again after `ask_to_leave`. Returns whether one must be started.
    pub fn resume(&self) -> bool {
        let mut waiting = self.lock();
        waiting.leave = false;
        let start = !waiting.thread_runs && self.has_work(&waiting);
        waiting.thread_runs |= start;
        start
    }

    fn has_work(&self, waiting: &Waiting) -> bool {
        !waiting.entries.is_empty() || self.is_done(waiting) && !self.is_closed()
    }

    /// Records that ever went to this sink.
    pub fn head_accepted(&self) -> u64 {
        self.head().accepted.iter().map(|counter| counter.load(Ordering::Relaxed)).sum()
    }

    /// Whether the sink was released.
    ///
    /// Its head does not tell: that belongs to the next sink in this place.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Closes it, once. Call it before the place is given away.
    fn note_closed(&self) {
        if !self.closed.swap(true, Ordering::Relaxed) {
            self.head().closed.store(1, Ordering::Relaxed);
        }
    }

    /// Shows what is still queued to `show`, chunk by chunk.
    pub fn show_queued(&self, show: impl Fn(&Chunk)) {
        let waiting = self.lock();
        for entry in &waiting.entries {
            match (&entry.heap, &entry.spilled) {
                (Some(chunk), _) => show(chunk),
                (None, Some(place)) => {
                    if let Ok(chunk) = place.read(entry.batch, entry.counts) {
                        show(&chunk);
                    }
                }
                (None, None) => {}
            }
        }
    }

    /// Gives up everything that is still queued and counts it.
    pub fn abandon(&self, reason: DropReason) {
        let mut waiting = self.lock();
        waiting.dead = true;
        while let Some(entry) = waiting.entries.pop_front() {
            self.count_dropped(reason, entry.counts);
        }
        waiting.unspilled_bytes = 0;
        waiting.overflow.finish();
        self.publish_fronts(&waiting);
        drop(waiting);
        self.changed.notify_all();
    }

    /// Closes the sink itself, once its writer has left.
    ///
    /// What still comes is counted as dropped.
    pub fn release(&self) {
        self.note_closed();
        // Between the last flush and this: nothing may stay queued without a writer.
        self.abandon(DropReason::SinkClosed);
        if let Ok(mut sink) = self.sink.try_lock() {
            *sink = None;
        }
        self.note_release();
    }

    /// Lets the writer go on, and release the sink once flush `ticket` is answered and everything is written.
    pub fn close_when_written(&self, ticket: u64) {
        self.lock().closing = Some(ticket);
    }

    /// Whether the sink was closed and its writer still has something to write.
    pub fn is_closing(&self) -> bool {
        self.lock().closing.is_some() && !self.is_closed()
    }

    /// Notes that everything before flush `ticket` is written. Returns whether a writer must be started, which
    /// releases a sink that was closed.
    pub fn answer(&self, ticket: u64) -> bool {
        let mut waiting = self.lock();
        // Release pairs with the Acquire of the waiting caller: the writes came before.
        self.flushed_ticket.fetch_max(ticket, Ordering::Release);
        if !self.is_done(&waiting) || self.is_closed() {
            return false;
        }
        let start = !waiting.thread_runs;
        waiting.thread_runs = true;
        drop(waiting);
        self.changed.notify_all();
        start
    }

    /// Whether the sink was closed and nothing is left to write.
    fn is_done(&self, waiting: &Waiting) -> bool {
        let is_answered = |ticket| self.flushed_ticket.load(Ordering::Relaxed) >= ticket;
        waiting.entries.is_empty() && waiting.closing.is_some_and(is_answered)
    }

    fn note_release(&self) {
        self.released.store(RELEASED.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// When the sink was closed, in the order of closing. `None`: it was not, or something of it is still at work.
    pub fn closed_at(&self) -> Option<u64> {
        let released = self.released.load(Ordering::Relaxed);
        let waiting = self.lock();
        (released != 0 && waiting.entries.is_empty() && !waiting.thread_runs).then_some(released)
    }

    /// Whether this is the first time that a writer begins here.
    pub fn begins(&self) -> bool {
        !self.begun.swap(true, Ordering::Relaxed)
    }

    /// The writer thread: runs until asked to leave, or until the sink is gone.
    pub fn run(&self) {
        let mut sink_slot = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((chunk, written)) = self.next_chunk() {
            let Some(sink) = sink_slot.as_mut() else {
                self.abandon(DropReason::SinkClosed);
                continue;
            };
            self.write_chunk(sink.as_mut(), &chunk, written);
        }
        let waiting = self.lock();
        if self.is_done(&waiting) && !self.is_closed() {
            // Under the lock: what comes from here on is counted as dropped, as after `release`.
            self.note_closed();
            drop(waiting);
            *sink_slot = None;
            self.note_release();
        }
    }

    /// Waits for the oldest chunk. `None`: the thread is to leave, and is already counted as gone.
    fn next_chunk(&self) -> Option<(Arc<Chunk>, usize)> {
        let mut waiting = self.lock();
        loop {
            if waiting.leave || self.is_done(&waiting) {
                waiting.thread_runs = false;
                return None;
            }
            if let Some(entry) = waiting.entries.front() {
                let written = self.head().offset.load(Ordering::Relaxed) as usize;
                if let Some(chunk) = &entry.heap {
                    return Some((chunk.clone(), written));
                }
                let (place, batch, counts) = (entry.spilled.clone(), entry.batch, entry.counts);
                drop(waiting);
                let chunk = place.map(|place| place.read(batch, counts));
                if let Some(Ok(chunk)) = chunk {
                    return Some((Arc::new(chunk), written));
                }
                // tmpfs does not fail to read back what it took; should it, the records are counted.
                self.finish(0, Some(DropReason::Unreadable));
                waiting = self.lock();
                continue;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn write_chunk(&self, sink: &mut dyn Sink, chunk: &Chunk, mut written: usize) {
        // Before the first byte: a recoverer continues at `offset` in this batch's chunk and in no other.
        self.head().writing.store(chunk.batch, Ordering::Relaxed);
        let mut pause = FIRST_PAUSE;
        while written < chunk.bytes.len() {
            let first = chunk.marks.partition_point(|mark| mark.end as usize <= written);
            let lines = Lines { bytes: &chunk.bytes[written..], marks: &chunk.marks[first..], before: written };
            if self.writing_since.load(Ordering::Relaxed) == 0 {
                self.writing_since.store(monotonic_ns(), Ordering::Relaxed);
            }
            match sink.write(lines) {
                Ok(count) => {
                    written += count;
                    self.turns.store(sink.turns(), Ordering::Relaxed);
                    let since = self.writing_since.swap(0, Ordering::Relaxed);
                    let seconds = monotonic_ns().saturating_sub(since) as f64 / 1e9;
                    self.meters.write_seconds.observe(&WRITE_SECONDS, seconds);
                    self.meters.last_write_ns.store(wall_ns() as u64, Ordering::Relaxed);
                    self.error_number.store(0, Ordering::Relaxed);
                    self.head().offset.store(written as u64, Ordering::Relaxed);
                    self.head().bytes_written.fetch_add(count as u64, Ordering::Relaxed);
                    pause = FIRST_PAUSE;
                }
                Err(error) if error.io_error().kind() == std::io::ErrorKind::Interrupted => {}
                Err(SinkError::Retry(error)) => {
                    let waits = error.kind() == std::io::ErrorKind::WouldBlock;
                    if !waits {
                        self.note(&error);
                    }
                    if !self.pause(if waits { Duration::ZERO } else { pause }) {
                        return;
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(SinkError::Reject(error)) => {
                    self.note(&error);
                    return self.finish(written, Some(DropReason::Rejected));
                }
                Err(SinkError::Fatal(error)) => {
                    self.note(&error);
                    self.finish(written, Some(DropReason::SinkClosed));
                    return self.abandon(DropReason::SinkClosed);
                }
            }
        }
        self.finish(written, None);
    }

    fn note(&self, error: &std::io::Error) {
        self.meters.errors[ErrorClass::of(error) as usize].fetch_add(1, Ordering::Relaxed);
        self.error_number.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
        self.head().errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits between two tries. Returns false when the thread is to leave or the queue was given up.
    fn pause(&self, pause: Duration) -> bool {
        let waiting = self.lock();
        if waiting.leave || waiting.dead {
            return false;
        }
        if !pause.is_zero() {
            let (waiting, _) = self.changed.wait_timeout(waiting, pause).unwrap_or_else(PoisonError::into_inner);
            return !waiting.leave && !waiting.dead;
        }
        true
    }

    /// Takes the oldest entry off the queue: `written` of its bytes are out, the rest is dropped for `reason`.
    fn finish(&self, written: usize, reason: Option<DropReason>) {
        let mut waiting = self.lock();
        self.writing_since.store(0, Ordering::Relaxed);
        let Some(entry) = waiting.entries.pop_front() else { return };
        waiting.finished_at = monotonic_ns();
        let head = self.head();
        match (reason, &entry.heap) {
            (None, _) => count(&head.written, entry.counts),
            (Some(reason), Some(chunk)) => {
                for mark in &chunk.marks {
                    let class = mark.class as usize;
                    let counter =
                        if mark.end as usize <= written { &head.written } else { &head.dropped[reason as usize] };
                    counter[class].fetch_add(1, Ordering::Relaxed);
                }
            }
            (Some(reason), None) => self.count_dropped(reason, entry.counts),
        }
        head.offset.store(0, Ordering::Relaxed);
        // Release: a recoverer that reads this batch finds the counters of it too.
        head.batch.store(entry.batch, Ordering::Release);
        if entry.spilled.is_none() {
            waiting.unspilled_bytes -= entry.bytes;
        }
        if let Some(mut chunk) = entry.heap.and_then(Arc::into_inner) {
            chunk.bytes.clear();
            chunk.marks.clear();
            chunk.counts = Default::default();
            // Chosen: two spare buffers are all that a collector and a writer at work can use.
            if waiting.spare.len() < 2 {
                waiting.spare.push(chunk);
            }
        }
        if waiting.entries.iter().all(|entry| entry.spilled.is_none()) {
            waiting.overflow.finish();
        }
        self.publish_fronts(&waiting);
        drop(waiting);
        if self.notify.load(Ordering::Relaxed) {
            crate::queue::producer::wake_collector(&self.segment.header().sleeping);
        }
    }
}

/// Adds the records of a chunk to a sink's counters.
fn count(counters: &[AtomicU64; LEVEL_CLASSES], counts: [u32; LEVEL_CLASSES]) {
    for (counter, count) in counters.iter().zip(counts) {
        counter.fetch_add(u64::from(count), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outlet").field("id", &self.id).field("definition", &self.definition).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Descriptor, SinkKind};

    fn outlet() -> Outlet {
        let definition = SinkDefinition { kind: SinkKind::Null, descriptor: Descriptor::Open };
        let sink = crate::sinks::open(&definition).unwrap();
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0)))
    }

    fn chunk(batch: u64) -> Chunk {
        let mut chunk = Chunk { batch, bytes: b"a line\n".to_vec(), ..Chunk::default() };
        chunk.marks.push(crate::sink::Mark { end: 7, level: 20, class: 2, seconds: 0 });
        chunk.counts[2] = 1;
        chunk
    }

    #[test]
    fn a_closed_sink_is_released_once_its_flush_is_answered_and_everything_is_written() {
        let outlet = outlet();
        assert!(outlet.push(chunk(1), 0));
        outlet.close_when_written(7);
        assert!(!outlet.answer(7), "a chunk is not written yet");
        outlet.run();

        assert!(outlet.is_closed() && outlet.closed_at().is_some());
        assert_eq!(1, outlet.counts().written[2]);
    }

    #[test]
    fn a_closed_sink_without_a_writer_gets_one_that_releases_it() {
        let outlet = outlet();
        outlet.close_when_written(7);
        assert!(!outlet.answer(6));
        assert!(outlet.is_closing());

        assert!(outlet.answer(7));
        outlet.run();
        assert!(!outlet.is_closing() && outlet.closed_at().is_some());
    }

    #[test]
    fn a_thread_that_could_not_be_started_is_started_with_the_next_chunk_or_flush() {
        let outlet = outlet();
        assert!(outlet.push(chunk(1), 0));
        assert!(!outlet.push(chunk(2), 0));
        outlet.has_no_thread();

        assert!(outlet.push(chunk(3), 0));
        outlet.has_no_thread();
        assert!(outlet.wants_thread());
        assert!(!outlet.wants_thread());
        // Lets `run` return once everything is written.
        outlet.close_when_written(7);
        assert!(!outlet.answer(7));
        outlet.run();

        assert_eq!(3, outlet.counts().written[2]);
        assert!(!outlet.wants_thread());
    }
}
