//! Admission: a record is queued in its thread's lane, waits for room, or is refused and counted.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool_lanes::blob::BlobRefusal;
use logspool_lanes::queue::producer::{ERROR, Producer, PushError, RESERVED_DIVISOR, wake_collector};
use logspool_lanes::queue::view::{LaneView, NO_TURN, view_flags};
use logspool_lanes::segment::SHARED_LANES;
use logspool_lanes::segment::layout::level_class;
use logspool_record::{HEAD_BYTES, Head, advance};
use logspool_sys::clock::monotonic_ns;
use logspool_sys::generation;
use logspool_sys::published::Published;
use logspool_sys::sleep::sleep_interruptibly;

use super::beginning::current;
use super::door::wait_for_death;
use super::late::drain_late_records;
use super::settings::options;
use super::slot::existing;
use super::state::Pipeline;
use crate::copies;
use crate::durable::PendingSync;
use crate::writer::NONE;

/// Why a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Refusal {
    /// The lane stayed full for as long as the record's level may wait.
    QueueFull = 0,
    /// The call interrupted another logging call of the same thread while that call held the lane.
    Reentrant = 1,
    /// No lane could be made: neither tmpfs nor heap had room.
    NoLane = 2,
    /// A large record had no room for its own file, or the limit for large records stayed exhausted while the record's
    /// level may wait.
    NoBlob = 3,
    /// The ids were defined under another [`super::id_epoch`]: by the parent of a forked child, or before the
    /// pipeline was replaced. Define them again.
    StaleIds = 4,
}

/// Outcome of [`push`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Push {
    /// The record is in the queue. If the queue survives the process, so does the record.
    Accepted,
    /// The record was accepted as with `Accepted`, but the logging call must not return before the record is durable.
    /// Release the interpreter lock and call [`super::await_durable`].
    MustWaitForSync,
    /// There is no room, the thread has no lane yet, or the process has forked. Release the interpreter lock, call
    /// [`make_room`] and try again.
    NoRoom,
}

/// Outcome of [`make_room`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Room {
    /// Push again. If there is still no room, handle signals before the next wait.
    Retry,
    /// The record is refused and the refusal is counted. Do not try again.
    Refused(Refusal),
}

/// The kind of thread that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiter {
    /// Any thread.
    Thread,
    /// A thread with a running event loop. It never waits longer than 10 ms.
    EventLoop,
}

/// A wait for room.
#[derive(Debug, Clone, Copy)]
struct RoomWait {
    /// Level of the record; determines the longest wait.
    level: u16,
    /// Kind of thread that waits.
    waiter: Waiter,
    /// Reason to report if the wait ends without room.
    reason: Refusal,
}

/// Progress of the sinks that make large records wait.
#[derive(Debug, Clone, Copy)]
struct SinkProgress {
    /// Number of removed files of large records.
    removed: u64,
    /// Bytes accepted by the sinks that hold back the oldest batch.
    bytes: u64,
    /// Whether the collector, or each of these sinks, is processing a large record and is still within the time that a
    /// healthy one needs for it.
    is_at_large: bool,
}

impl SinkProgress {
    /// Whether the sinks have made progress since `before`.
    fn has_advanced_since(&self, before: &Self) -> bool {
        self.is_at_large || self.removed != before.removed || self.bytes.abs_diff(before.bytes) >= PROGRESS_BYTES
    }
}

/// Sinks that accept fewer bytes than this within a caller's patience count as stalled.
///
/// Chosen: the capacity of a pipe. A healthy disk accepts this many bytes in a tenth of a millisecond. A reader that
/// takes a few lines a second must not keep calls waiting.
const PROGRESS_BYTES: u64 = 64 * 1024;

/// Minimum limit for the bytes of large records. A larger overflow budget raises the limit to its own size, since both
/// serve stalled sinks.
///
/// Chosen: a quarter of the shared memory of a container. With half of this limit, only few threads could log long
/// tracebacks. Twice the limit would leave little room for the other programs of the container.
const MIN_BLOB_BYTES: u64 = 16 * 1024 * 1024;

/// How long a record below WARNING waits while the collector runs. The time in which the collector had no processor does
/// not count.
const ROOM_TIMEOUT: Duration = Duration::from_millis(50);
/// How long such a record waits if every sink is stuck and the overflow is full, or if the collector is known not to
/// run.
const STANDSTILL_TIMEOUT: Duration = Duration::from_millis(1);
/// How much longer a WARNING waits than a record of a lower level.
const WARNING_TIMEOUT: Duration = Duration::from_millis(10);
/// Longest wait on a thread with a running event loop.
const EVENT_LOOP_WAIT: Duration = Duration::from_millis(10);
/// How much of a wait one turn of the collector accounts for, at most. The rest is assumed to be time in which the
/// collector had no processor.
///
/// Chosen: a running collector makes a turn each millisecond or more often.
const TURN_TIME: Duration = Duration::from_micros(2500);
/// How long one caller waits for a collector that makes no turns. After that, callers wait only [`STANDSTILL_TIMEOUT`]
/// until the collector makes a turn again.
///
/// Chosen: on a busy machine a thread waits tens of milliseconds for the processor, and this must not cause refusals in
/// a healthy burst. If the collector has really stopped, only one caller waits this long.
const STARVED_TIMEOUT: Duration = Duration::from_millis(250);
/// A caller that slept this much longer than it wanted was stopped itself, so it looks for room once more before it
/// gives up, within [`STOPPED_LIMIT`].
///
/// Chosen: a pause is at most half a millisecond, and a busy machine adds some milliseconds.
const STOPPED: Duration = Duration::from_millis(20);
const STOPPED_LIMIT: Duration = Duration::from_secs(1);
/// Longest uninterrupted wait. After it the caller handles signals and then continues to wait.
///
/// Chosen: it is longer than any wait of the levels that do not block, so these levels wait in a single slice.
const MAX_WAIT_SLICE: Duration = Duration::from_millis(400);
/// Numeric value of WARNING in Python's logging.
const WARNING: u16 = 30;

thread_local! {
    /// This thread's producer in [`PLACE`], or null. The variable has no destructor, so reading it is one load.
    static PUSHER: Cell<*mut Pusher> = const { Cell::new(std::ptr::null_mut()) };
    /// Where the producer is. Headers of other languages keep its address, so it stays in place as long as the thread
    /// lives: it has no destructor.
    static PLACE: UnsafeCell<MaybeUninit<Pusher>> = const { UnsafeCell::new(MaybeUninit::uninit()) };
    /// Its destructor returns the lane when the thread ends.
    static OWNER: LaneOwner = const { LaneOwner };
}

/// The lane of one thread, and the table in which the thread's calls wait for durability.
#[repr(C)]
struct Pusher {
    producer: Producer,
    /// The table of records that are not durable yet, if calls may have to wait for such records.
    pending_sync: Option<&'static PendingSync>,
}

struct LaneOwner;

impl Drop for LaneOwner {
    fn drop(&mut self) {
        let pusher = PUSHER.replace(std::ptr::null_mut());
        if pusher.is_null() {
            return;
        }
        // SAFETY: set in `renew`, used by this thread alone. The place stays: a destructor that runs later may look at
        // its view, which then says that there is no lane.
        let producer = unsafe { &mut (*pusher).producer };
        producer.view.turn = NO_TURN;
        return_lane(producer);
    }
}

/// Returns the lane of a producer, if its pipeline is still the current one.
fn return_lane(producer: &mut Producer) {
    if let Some(pipeline) = existing()
        && pipeline.number() == producer.view.pipeline
    {
        pipeline.drop_large(producer);
        if !producer.is_shared() {
            pipeline.segment.lane(producer.index).state.hand_over();
        }
    }
}

/// Tries to queue one record. Never waits, makes no system call except a wake-up, and runs no code of the caller except
/// `fill`.
///
/// `value_bytes` is the exact number of bytes that `fill` stores at its pointer; `fill` may do nothing else. This
/// function sets `head.len` and `head.ticks` while the lane is marked as busy. The ids must be of the current
/// [`super::id_epoch`]. For a record with other ids this function returns `NoRoom`, and [`make_room`] refuses the
/// record.
#[inline]
pub fn push(head: Head, value_bytes: usize, fill: impl FnOnce(*mut u8)) -> Push {
    let pusher = PUSHER.get();
    if pusher.is_null() {
        return Push::NoRoom;
    }
    // SAFETY: only this thread has the pointer. A signal handler that interrupts here finds the lane busy or the
    // producer consistent, because the producer's fields change only inside the busy window or before it.
    let Pusher { producer, pending_sync } = unsafe { &mut *pusher };
    if let Some(pending_sync) = pending_sync {
        return push_to_wait(producer, pending_sync, head, value_bytes, fill);
    }
    match producer.push(head, value_bytes, fill) {
        Ok(()) => Push::Accepted,
        Err(_) => Push::NoRoom,
    }
}

/// Works as [`push`], in a process whose calls may wait until their record is durable.
#[inline(never)]
fn push_to_wait(
    producer: &mut Producer,
    pending_sync: &PendingSync,
    head: Head,
    value_bytes: usize,
    fill: impl FnOnce(*mut u8),
) -> Push {
    pending_sync.begin();
    match producer.push(head, value_bytes, fill) {
        Ok(()) if pending_sync.must_wait(head.level) => Push::MustWaitForSync,
        Ok(()) => Push::Accepted,
        Err(_) => {
            pending_sync.uncount();
            Push::NoRoom
        }
    }
}

/// The pipeline and lane of this thread's last push, and the position after the record.
pub(super) fn last_push() -> Option<(&'static Pipeline, usize, u64)> {
    let pusher = PUSHER.get();
    if pusher.is_null() {
        return None;
    }
    // SAFETY: only this thread has the pointer.
    let producer = unsafe { &(*pusher).producer };
    let pipeline = existing().filter(|pipeline| pipeline.number() == producer.view.pipeline)?;
    Some((pipeline, producer.index, producer.position()))
}

/// Prepares the next [`push`] after a push found no room. It claims or grows the lane, starts a new pipeline after a
/// fork, and waits for room.
///
/// May block as long as the level allows; call it without an interpreter lock. `waited` is the time that this record
/// has waited; the caller keeps it between retries.
pub fn make_room(level: u16, value_bytes: usize, waiter: Waiter, waited: &mut Duration) -> Room {
    let Some((pipeline, mut pusher)) = renewed() else {
        let Some(pipeline) = existing() else { return refused_without_queue(level) };
        return refused(pipeline, level, Refusal::NoLane);
    };
    // SAFETY: owned by this thread alone, and no code below reads `PUSHER`.
    let producer = unsafe { &mut pusher.as_mut().producer };
    if producer.take_stale_ids() {
        return refused(pipeline, level, Refusal::StaleIds);
    }
    let needed = advance(HEAD_BYTES + value_bytes) as u64;
    let grown = |producer: &mut Producer| pipeline.grow(producer);
    let mut needed_here = needed;
    if needed > producer.max_inline() && !(grown(producer) && needed <= producer.max_inline()) {
        // A large record: its lane entry is only a reference to a file.
        needed_here = advance(HEAD_BYTES + 9) as u64;
        match pipeline.make_large(producer, value_bytes, level) {
            Ok(()) => {}
            Err(BlobRefusal::TooLarge) => return refused(pipeline, level, Refusal::NoBlob),
            Err(BlobRefusal::Retry) => {
                let limit = pipeline.blob_limit(level);
                let has_room = || pipeline.blobs.has_room(&pipeline.segment, value_bytes, limit);
                let full = || (!has_room()).then_some(PushError::Full);
                let wait = RoomWait { level, waiter, reason: Refusal::NoBlob };
                return pipeline.wait_for_room(producer, wait, waited, |_| full());
            }
        }
    }
    match producer.push_error(needed_here, level) {
        None => return Room::Retry,
        Some(PushError::Reentrant) => return refused(pipeline, level, Refusal::Reentrant),
        Some(PushError::Full) if grown(producer) => return Room::Retry,
        Some(_) => {}
    }
    let obstacle = |producer: &mut Producer| producer.push_error(needed_here, level);
    let wait = RoomWait { level, waiter, reason: Refusal::QueueFull };
    let room = pipeline.wait_for_room(producer, wait, waited, obstacle);
    if room != Room::Retry {
        pipeline.drop_large(producer);
    }
    room
}

/// Counts a record whose caller stopped waiting for room.
pub fn refuse(level: u16, reason: Refusal) {
    let Some(pipeline) = current() else {
        let _ = refused_without_queue(level);
        return;
    };
    if let Some(mut pusher) = NonNull::new(PUSHER.get()) {
        // SAFETY: only this thread has the pointer.
        let producer = unsafe { &mut pusher.as_mut().producer };
        if producer.view.pipeline == pipeline.number() {
            pipeline.drop_large(producer);
        }
    }
    let _ = refused(pipeline, level, reason);
}

/// Counts a record of a call that interrupts another call of its thread. Async-signal-safe.
pub fn count_interrupting(level: u16) {
    if let Some(pipeline) = existing() {
        let _ = refused(pipeline, level, Refusal::Reentrant);
    }
}

/// Counts a refused record when this copy has no queue: another copy of the library has the queue of the process, or
/// there is no memory for a queue.
fn refused_without_queue(level: u16) -> Room {
    copies::count_refusal(level);
    Room::Refused(Refusal::NoLane)
}

fn refused(pipeline: &Pipeline, level: u16, reason: Refusal) -> Room {
    let header = pipeline.segment.header();
    let counters = header.refused.get(reason as usize).unwrap_or(&header.stale_ids);
    counters[level_class(level)].fetch_add(1, Ordering::Relaxed);
    Room::Refused(reason)
}

/// This thread's producer, renewed for the current generation. `None` if no lane is available.
fn renew(pipeline: &'static Pipeline) -> Option<NonNull<Pusher>> {
    let held = PUSHER.get();
    if !held.is_null() {
        // SAFETY: only this thread has the pointer.
        let producer = unsafe { &mut (*held).producer };
        if producer.view.pipeline == pipeline.number() {
            producer.view.turn = generation::current();
            return NonNull::new(held);
        }
        // The producer belongs to the parent's pipeline, or to a replaced one: its lane is not of this pipeline.
        PUSHER.set(std::ptr::null_mut());
        // SAFETY: only this thread has the pointer.
        unsafe { (*held).producer.view.turn = NO_TURN };
    }
    let mut producer = pipeline.claim_lane()?;
    let pending_sync = pipeline.syncs.pending_sync.as_deref();
    if pending_sync.is_some() {
        producer.view.flags |= view_flags::SLOW;
    }
    let pusher = PLACE.with(|place| place.get().cast::<Pusher>());
    // SAFETY: the place is this thread's, and nothing in a former producer needs a destructor.
    unsafe { pusher.write(Pusher { producer, pending_sync }) };
    PUSHER.set(pusher);
    // Registers the destructor. Registration fails at the very end of a thread, and the lane then stays claimed.
    let _ = OWNER.try_with(|_| ());
    NonNull::new(pusher)
}

/// Reserves room for a record in the calling thread's lane. Returns where its `value_bytes` bytes of values are stored;
/// `None` means the same as [`Push::NoRoom`]. Afterwards [`commit`] or [`abandon`] must be called; until then the thread
/// may only store the values.
pub fn reserve(head: Head, value_bytes: usize) -> Option<*mut u8> {
    // SAFETY: only this thread has the pointer.
    let pusher = unsafe { PUSHER.get().as_mut() }?;
    if let Some(pending_sync) = pusher.pending_sync {
        pending_sync.begin();
    }
    let place = pusher.producer.reserve(head, value_bytes);
    if let (Err(_), Some(pending_sync)) = (&place, pusher.pending_sync) {
        pending_sync.uncount();
    }
    place.ok()
}

/// Publishes the record of [`reserve`]. `None`: this thread has not reserved room.
pub fn commit() -> Option<Push> {
    // SAFETY: only this thread has the pointer.
    let pusher = unsafe { PUSHER.get().as_mut() }?;
    let level = pusher.producer.commit()?;
    let must_wait = pusher.pending_sync.is_some_and(|pending_sync| pending_sync.must_wait(level));
    Some(if must_wait { Push::MustWaitForSync } else { Push::Accepted })
}

/// Gives up the record of [`reserve`]. Returns whether there was one.
pub fn abandon() -> bool {
    // SAFETY: only this thread has the pointer.
    let Some(pusher) = (unsafe { PUSHER.get().as_mut() }) else { return false };
    let (was_open, large) = pusher.producer.abandon();
    if was_open && let Some(pending_sync) = pusher.pending_sync {
        pending_sync.uncount();
    }
    if let (Some(number), Some(pipeline)) = (large, existing())
        && pipeline.number() == pusher.producer.view.pipeline
    {
        pipeline.blobs.remove(&pipeline.segment, number);
    }
    was_open
}

/// Whether this thread has called [`reserve`], and neither [`commit`] nor [`abandon`].
pub fn is_interrupting() -> bool {
    // SAFETY: only this thread has the pointer.
    unsafe { PUSHER.get().as_ref() }.is_some_and(|pusher| pusher.producer.has_open_record())
}

/// The calling thread's view of its lane, valid in the current generation. Begins the pipeline if there is none; may
/// wait while the process ends. `None`: there is no lane.
pub fn lane_view() -> Option<NonNull<LaneView>> {
    let (_, mut pusher) = renewed()?;
    // SAFETY: only this thread has the pointer.
    Some(NonNull::from(unsafe { &mut pusher.as_mut().producer.view }))
}

/// Wakes the collector after a record that the header of another language has written.
pub fn wake_after(level: u16) {
    // SAFETY: only this thread has the pointer.
    if let Some(pusher) = unsafe { PUSHER.get().as_mut() } {
        pusher.producer.wake_after(level);
    }
}

/// The pipeline and this thread's producer, renewed for the current generation. `None`: there is no queue or no lane.
fn renewed() -> Option<(&'static Pipeline, NonNull<Pusher>)> {
    loop {
        let pipeline = current()?;
        pipeline.ensure_threads();
        let pusher = renew(pipeline)?;
        // This must come after `renew`: a producer that took over the generation of a dying process must not push in
        // that generation. Pairs with `publish` in `generation::advance`.
        generation::observed();
        wait_for_death();
        drain_late_records();
        // If the pipeline was replaced in the meantime, repeat with the new pipeline.
        if existing().is_some_and(|current| std::ptr::eq(current, pipeline)) {
            return Some((pipeline, pusher));
        }
    }
}

impl Pipeline {
    /// Claims a lane for the calling thread, or a shared lane if no other is available.
    fn claim_lane(&self) -> Option<Producer> {
        let segment = &self.segment;
        let used = segment.header().lanes.observe() as usize;
        for index in SHARED_LANES..used {
            if segment.lane(index).state.try_claim() {
                return Some(Producer::new(segment, index, false, self.number));
            }
        }
        if let Some(index) = segment.take_lane() {
            return Some(Producer::new(segment, index, false, self.number));
        }
        // SAFETY: gettid has no preconditions.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as usize;
        // If there is no memory for the preferred shared lane, use another one that is open.
        let mut shared = (0..SHARED_LANES).map(|step| (thread + step) % SHARED_LANES);
        let index = shared.find(|index| segment.open_shared_lane(*index))?;
        Some(Producer::new(segment, index, true, self.number))
    }

    fn grow(&self, producer: &mut Producer) -> bool {
        let bound = options().queue_bytes as u64;
        let bytes = bound.next_power_of_two();
        let bytes = if bytes > bound { bytes / 2 } else { bytes };
        if producer.is_shared() || !producer.can_grow() || bytes <= producer.ring_bytes() {
            return false;
        }
        match self.segment.take_ring(bytes) {
            Some(offset) => {
                producer.grow(&self.segment, offset, bytes);
                true
            }
            None => false,
        }
    }

    /// Maximum bytes of large records that a record of this level may bring the total to. As in a lane, a part is
    /// reserved for ERROR and above.
    fn blob_limit(&self, level: u16) -> u64 {
        let limit = self.budget.limit().max(MIN_BLOB_BYTES);
        if level < ERROR { limit - limit / RESERVED_DIVISOR } else { limit }
    }

    fn make_large(&self, producer: &mut Producer, value_bytes: usize, level: u16) -> Result<(), BlobRefusal> {
        if let Some(large) = producer.take_large() {
            if large.bytes == value_bytes {
                producer.set_large(large);
                return Ok(());
            }
            self.blobs.remove(&self.segment, large.number);
        }
        let made = self.blobs.make(&self.segment, value_bytes, self.blob_limit(level));
        if let Some(warning) = self.blobs.take_warning() {
            crate::fallback::report(&warning);
        }
        producer.set_large(made?);
        Ok(())
    }

    /// Removes the file of a large record that was not pushed.
    fn drop_large(&self, producer: &mut Producer) {
        if let Some(large) = producer.take_large() {
            self.blobs.remove(&self.segment, large.number);
        }
    }

    /// Total time that a record of `level` may wait. `base` is the wait of a record below WARNING.
    fn patience(&self, level: u16, waiter: Waiter, base: Duration) -> Duration {
        let blocks = match &options().blocking_levels {
            Some(levels) => levels.contains(&level),
            None => level >= ERROR,
        };
        let patience = if blocks {
            options().blocking_timeout.0.max(base)
        } else if level >= WARNING {
            base + WARNING_TIMEOUT
        } else {
            base
        };
        if waiter == Waiter::EventLoop { patience.min(EVENT_LOOP_WAIT) } else { patience }
    }

    /// How long a record below WARNING waits, given the number of turns that the collector has made during the wait and
    /// the part of the wait in which it ran.
    fn base_patience(&self, turns: u64, served: Duration) -> Duration {
        if turns > 0 {
            self.standstill.store(false, Ordering::Relaxed);
        }
        if self.saturated.load(Ordering::Relaxed) || self.standstill.load(Ordering::Relaxed) {
            STANDSTILL_TIMEOUT
        } else if served < ROOM_TIMEOUT {
            STARVED_TIMEOUT
        } else {
            ROOM_TIMEOUT
        }
    }

    /// Progress of the sinks that hold back the oldest batch.
    fn progress(&self) -> SinkProgress {
        let now = monotonic_ns();
        let outlets = self.outlets();
        let outlets = || outlets.iter().flatten();
        let oldest = outlets().map(|outlet| outlet.unspilled_batch()).min().unwrap_or(NONE);
        let last = || outlets().filter(|outlet| outlet.unspilled_batch() == oldest);
        SinkProgress {
            removed: self.blobs.removed(),
            bytes: last().map(|outlet| outlet.bytes_taken()).sum(),
            is_at_large: self.blobs.is_formatted(now)
                || oldest != NONE && last().all(|outlet| outlet.is_at_large_chunk(now)),
        }
    }

    /// Waits until `obstacle` returns `None` or the record's patience ends, and adds the time to the meters.
    fn wait_for_room(
        &self,
        producer: &mut Producer,
        wait: RoomWait,
        waited: &mut Duration,
        obstacle: impl Fn(&mut Producer) -> Option<PushError>,
    ) -> Room {
        let is_first = waited.is_zero();
        let start = Instant::now();
        let room = self.wait_while(producer, wait, waited, obstacle);
        self.waits.calls.fetch_add(u64::from(is_first), Ordering::Relaxed);
        self.waits.nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        room
    }

    fn wait_while(
        &self,
        producer: &mut Producer,
        wait: RoomWait,
        waited: &mut Duration,
        obstacle: impl Fn(&mut Producer) -> Option<PushError>,
    ) -> Room {
        let header = self.segment.header();
        let start = Instant::now();
        let (mut before, mut counted_from) = (*waited, start);
        let mut progress = None;
        let mut pause = Duration::from_micros(20);
        let first_turn = header.heartbeat.load(Ordering::Relaxed);
        let (mut served, mut seen_turns, mut looked_at) = (Duration::ZERO, 0, start);
        loop {
            wake_collector(&header.sleeping);
            sleep_interruptibly(pause);
            pause = (pause * 2).min(Duration::from_micros(500));
            *waited = before + counted_from.elapsed();
            if generation::current() != producer.view.turn {
                // Another thread is forking. The pause is not caused by the sinks; the push is retried after it.
                return Room::Retry;
            }
            match obstacle(producer) {
                None => return Room::Retry,
                Some(PushError::Contended) => continue,
                Some(_) => {}
            }
            if wait.reason == Refusal::NoBlob && wait.waiter == Waiter::Thread {
                let now = self.progress();
                let before_it = progress.get_or_insert(now);
                if now.has_advanced_since(before_it) {
                    *before_it = now;
                    // The sinks make progress, so the patience starts again. It starts at one nanosecond, since zero
                    // means that the call has not waited yet.
                    (before, counted_from) = (Duration::from_nanos(1), Instant::now());
                    (*waited, served) = (before, Duration::ZERO);
                }
            }
            let turns = header.heartbeat.load(Ordering::Relaxed) - first_turn;
            let new_turns = u32::try_from(turns - seen_turns).unwrap_or(u32::MAX);
            let pause_taken = looked_at.elapsed();
            served += pause_taken.min(TURN_TIME.saturating_mul(new_turns));
            (seen_turns, looked_at) = (turns, Instant::now());
            if pause_taken >= STOPPED && wait.waiter == Waiter::Thread && *waited < STOPPED_LIMIT {
                continue;
            }
            let share = start.elapsed();
            if *waited >= self.patience(wait.level, wait.waiter, self.base_patience(turns, served)) {
                if turns == 0 && share >= STARVED_TIMEOUT {
                    self.standstill.store(true, Ordering::Relaxed);
                }
                producer.count_refusal(wait.reason as usize, level_class(wait.level));
                self.refusals.fetch_add(1, Ordering::Relaxed);
                return Room::Refused(wait.reason);
            }
            if share >= MAX_WAIT_SLICE {
                return Room::Retry;
            }
        }
    }
}
