//! Admission: a record is queued in its thread's lane, waits for room, or is refused and counted.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::time::Duration;

use logspool_lanes::blob::BlobRefusal;
use logspool_lanes::queue::producer::{ERROR, LaneUse, Producer, PushError, RESERVED_DIVISOR};
use logspool_lanes::queue::view::{LaneView, NO_GENERATION, view_flags};
use logspool_lanes::segment::SHARED_LANES;
use logspool_record::{HEAD_BYTES, Head, advance};
use logspool_sys::generation;
use logspool_sys::platform::thread_id;
use logspool_sys::published::Published;

use super::beginning::current;
use super::door::wait_for_death;
use super::late::drain_late_records;
use super::room::{Refusal, Room, RoomWait, Waiter, refused};
use super::settings::options;
use super::slot::existing;
use super::state::Pipeline;
use crate::copies;
use crate::durable::PendingSync;

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

/// Minimum limit for the bytes of large records. A larger overflow budget raises the limit to its own size, since both
/// serve stalled sinks.
///
/// Chosen: a quarter of the shared memory of a container. With half of this limit, only few threads could log long
/// tracebacks. Twice the limit would leave little room for the other programs of the container.
const MIN_BLOB_BYTES: u64 = 16 * 1024 * 1024;

/// A shared lane grows to this many times the size of a lane of one thread.
///
/// Chosen: the shared lanes then have room for a few records of each of a thousand threads, in 7 MiB.
const SHARED_GROWTH: u64 = 4;
thread_local! {
    /// This thread's producer in [`PLACE`], or null. The variable has no destructor, so reading it is one load.
    static PUSHER: Cell<*mut Pusher> = const { Cell::new(std::ptr::null_mut()) };
    /// Where the producer is. Headers of other languages keep its address, so it stays in place as long as the thread
    /// lives: it has no destructor.
    static PLACE: UnsafeCell<MaybeUninit<Pusher>> = const { UnsafeCell::new(MaybeUninit::uninit()) };
    /// Set while this thread's producer gets another lane. A signal handler that finds it set cannot log.
    static CHANGING: Cell<bool> = const { Cell::new(false) };
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

/// Runs `change`, which gives this thread's producer another lane. `None`: the caller has interrupted such a change.
fn while_changing<R>(change: impl FnOnce() -> Option<R>) -> Option<R> {
    if CHANGING.replace(true) {
        return None;
    }
    let changed = change();
    CHANGING.set(false);
    changed
}

impl Drop for LaneOwner {
    fn drop(&mut self) {
        let pusher = PUSHER.replace(std::ptr::null_mut());
        if pusher.is_null() {
            return;
        }
        // SAFETY: set in `renew`, used by this thread alone. The place stays: a destructor that runs later may look at
        // its view, which then says that there is no lane.
        let producer = unsafe { &mut (*pusher).producer };
        producer.view.generation = NO_GENERATION;
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
    let obstacle = |producer: &mut Producer| {
        let error = producer.push_error(needed_here, level)?;
        (!pipeline.change_lane(producer, needed_here, level)).then_some(error)
    };
    if producer.is_shared() && pipeline.change_to_free_lane(producer) || obstacle(producer).is_none() {
        return Room::Retry;
    }
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

/// This thread's producer, renewed for the current generation. `None` if no lane is available.
fn renew(pipeline: &'static Pipeline) -> Option<NonNull<Pusher>> {
    if CHANGING.get() {
        return None;
    }
    let held = PUSHER.get();
    if !held.is_null() {
        // SAFETY: only this thread has the pointer.
        let producer = unsafe { &mut (*held).producer };
        if producer.view.pipeline == pipeline.number() {
            producer.view.generation = generation::current();
            return NonNull::new(held);
        }
        // The producer belongs to the parent's pipeline, or to a replaced one: its lane is not of this pipeline.
        PUSHER.set(std::ptr::null_mut());
        // SAFETY: only this thread has the pointer.
        unsafe { (*held).producer.view.generation = NO_GENERATION };
    }
    while_changing(|| claim(pipeline))
}

/// Gives this thread, which has no producer, a lane of the pipeline.
fn claim(pipeline: &'static Pipeline) -> Option<NonNull<Pusher>> {
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
        if let Some(index) = self.claim_free_lane() {
            return Some(Producer::new(segment, index, LaneUse::Own, self.number));
        }
        if let Some(index) = segment.take_lane() {
            return Some(Producer::new(segment, index, LaneUse::Own, self.number));
        }
        let thread = thread_id() as usize;
        // If there is no memory for the preferred shared lane, use another one that is open.
        let mut shared = (0..SHARED_LANES).map(|step| (thread + step) % SHARED_LANES);
        let index = shared.find(|index| segment.open_shared_lane(*index))?;
        Some(Producer::new(segment, index, LaneUse::Shared, self.number))
    }

    /// Claims a lane whose thread has ended.
    fn claim_free_lane(&self) -> Option<usize> {
        let used = self.segment.header().lanes.observe() as usize;
        let mut free = (SHARED_LANES..used).filter(|index| self.segment.lane(*index).state.is_free());
        free.find(|index| self.segment.lane(*index).state.try_claim())
    }

    /// Gives a thread whose shared lane is full or locked the lane of a thread that has ended, if there is one.
    fn change_to_free_lane(&self, producer: &mut Producer) -> bool {
        let changed = while_changing(|| {
            let index = self.claim_free_lane()?;
            producer.move_to_own(&self.segment, index);
            Some(())
        });
        changed.is_some()
    }

    /// Gives a thread whose shared lane is full or locked a shared lane with room for a record of `needed` bytes. Returns
    /// false if the producer keeps its lane.
    fn change_lane(&self, producer: &mut Producer, needed: u64, level: u16) -> bool {
        if !producer.is_shared() {
            return false;
        }
        let segment = &self.segment;
        let changed = while_changing(|| {
            let mut others = (1..SHARED_LANES).map(|step| (producer.index + step) % SHARED_LANES);
            let index = others.find(|index| {
                segment.open_shared_lane(*index) && producer.can_move_to(segment, *index, needed, level)
            })?;
            producer.move_to_shared(segment, index);
            Some(())
        });
        changed.is_some()
    }

    fn grow(&self, producer: &mut Producer) -> bool {
        let bound = options().queue_bytes as u64;
        let bytes = bound.next_power_of_two();
        let bytes = if bytes > bound { bytes / 2 } else { bytes };
        if producer.is_shared() {
            self.segment.grow_shared_lane(producer.index, SHARED_GROWTH * bytes);
            return producer.see_growth();
        }
        if !producer.can_grow() || bytes <= producer.ring_bytes() {
            return false;
        }
        match self.segment.take_ring(bytes) {
            Some(offset) => {
                producer.grow(offset, bytes);
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
}
