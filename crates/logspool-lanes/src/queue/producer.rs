//! The calling thread's side of its lane: reserve, fill, publish.
//!
//! From reserve to publish there are only stores. Anything that can run user Python code, allocate or release the
//! interpreter lock happens before. A `Producer` belongs to one thread and one generation of the process (see
//! `generation.rs`). Under another generation it pushes nothing. In a forked child, where the segment is not mapped,
//! its methods do nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use logspool_record::{HEAD_BYTES, Head, advance, flags, tag};
use logspool_sys::barrier;
use logspool_sys::clock;
use logspool_sys::generation;
use logspool_sys::kernel;
use logspool_sys::platform;
use logspool_sys::published::Entered;
use logspool_sys::sleep::sleep_interruptibly;

use super::view::{LaneView, NO_GENERATION, VIEW_VERSION, view_flags};
use crate::lane::cursor::NOT_GROWN;
pub use crate::lane::ring::{ERROR, RESERVED_DIVISOR};
use crate::lane::ring::{RecordOffsets, RingError, WritePosition};
use crate::segment::Segment;
use crate::segment::layout::LaneHead;

/// A record longer than a quarter of its ring is stored in a separate file. This constant is the divisor.
const INLINE_DIVISOR: u64 = 4;

/// Pause between two reads of the collector's wake-up word, on systems without futex. Chosen: a flush waits for the
/// collector for up to this pause. Halving the pause would double the number of wake-ups of an idle program.
const WAKE_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Room for the values of one large record, filled by the next push.
#[derive(Debug)]
pub struct LargeRecord {
    /// Number of the blob.
    pub number: u64,
    /// Address to which the values are written.
    pub place: *mut u8,
    /// Number of bytes at `place`.
    pub bytes: usize,
}

/// The writing end of one lane, used by one thread.
#[derive(Debug)]
#[repr(C)]
pub struct Producer {
    /// The part that headers of other languages read and write too. It is first, so a pointer to the producer is a
    /// pointer to the view.
    pub view: LaneView,
    lane: *const LaneHead,
    /// Where the segment is mapped.
    base: *mut u8,
    sleeping: *const AtomicU32,
    /// The record between [`Self::reserve`] and [`Self::commit`].
    open: Option<OpenRecord>,
    shared: bool,
    /// Whether this thread takes, holds or leaves the lock of its shared lane. A signal handler that finds it set has
    /// interrupted that, and must neither wait for the lock nor change the lane.
    is_inside: AtomicBool,
    /// All ids of this segment are larger than this number.
    first_id: u32,
    /// Whether the last push was refused because of its ids.
    stale_ids: bool,
    /// [`generation::process`] at creation. The segment is mapped in that process only.
    process: u64,
    large: Option<LargeRecord>,
    /// Index of the lane in its segment.
    pub index: usize,
}

/// A record that has its place and is not published yet.
#[derive(Debug, Clone, Copy)]
struct OpenRecord {
    /// Bytes in the ring, a multiple of 8.
    needed: u64,
    /// Level of the record.
    level: u16,
    /// The file with the values, if the record is large.
    large: Option<u64>,
}

/// Why a record could not be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// The process forked or paused; this producer can no longer be used.
    StaleGeneration,
    /// The push interrupted another push of this thread.
    Reentrant,
    /// Another thread holds the shared lane right now.
    Contended,
    /// The ring is full.
    Full,
    /// The record is too long for a ring of this size.
    TooLong,
    /// The record's ids belong to another segment.
    StaleIds,
}

impl From<RingError> for PushError {
    fn from(error: RingError) -> Self {
        match error {
            RingError::Full => Self::Full,
            RingError::Shut => Self::StaleGeneration,
        }
    }
}

/// Stamps the head and writes it, and that of the filler before it. Returns where the values begin.
///
/// # Safety
///
/// `slot` is the place in `ring` for a record with `value_bytes` bytes of values, with room for a head at its filler.
#[inline(always)]
unsafe fn write_head(ring: *mut u8, slot: RecordOffsets, head: &mut Head, value_bytes: usize) -> *mut u8 {
    head.len = (HEAD_BYTES + value_bytes) as u32;
    head.ticks = clock::ticks();
    // SAFETY: the ring holds `slot` with a head and `value_bytes`, and a head at the filler: the producer took them
    // from it.
    unsafe {
        if let Some((offset, bytes)) = slot.filler {
            let filler = Head { len: bytes as u32, flags: flags::PAD, ..*head };
            ring.add(offset as usize).cast::<Head>().write(filler);
        }
        let place = ring.add(slot.record as usize);
        place.cast::<Head>().write(*head);
        place.add(HEAD_BYTES)
    }
}

/// Bytes of the value that names the file of a large record.
const BLOB_BYTES: usize = 9;

/// Writes the value that names the file of a large record.
///
/// # Safety
///
/// There are [`BLOB_BYTES`] bytes at `values`.
unsafe fn write_blob(values: *mut u8, number: u64) {
    // SAFETY: the record was taken with `BLOB_BYTES` bytes for its values.
    unsafe {
        values.write(tag::BLOB);
        values.add(1).cast::<u64>().write_unaligned(number);
    }
}

/// Who pushes into a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneUse {
    /// One thread.
    Own,
    /// Several threads, one after the other under a lock.
    Shared,
}

impl Producer {
    /// Continues at the position of the lane's last owner. The lane must be claimed and have a ring.
    pub fn new(segment: &Segment, index: usize, lane_use: LaneUse, pipeline: u64) -> Self {
        let shared = lane_use == LaneUse::Shared;
        let lane = segment.lane(index);
        let head = lane.producer.head.load(Ordering::Relaxed);
        let mut producer = Self {
            view: LaneView {
                version: VIEW_VERSION,
                flags: if shared { view_flags::SLOW } else { 0 },
                pipeline,
                generation: generation::current(),
                generation_word: generation::word(),
                head_word: &lane.producer.head,
                busy_word: &lane.window.busy,
                ring: std::ptr::null_mut(),
                place: WritePosition { head, ..WritePosition::default() },
                wake_at: 0,
                clock: clock::kind() as u32,
                thread: platform::thread_id() as u32,
            },
            lane,
            base: segment.at(0),
            sleeping: &segment.header().sleeping,
            open: None,
            shared,
            is_inside: AtomicBool::new(false),
            first_id: segment.first_id(),
            stale_ids: false,
            process: generation::process(),
            large: None,
            index,
        };
        if shared {
            producer.look_at_shared(lane);
        } else {
            producer.look_up_ring();
        }
        producer
    }

    /// The lane. `None`: this is a forked child of the process that made the segment, where it is not mapped.
    #[inline]
    fn lane<'segment>(&self) -> Option<&'segment LaneHead> {
        // SAFETY: a segment stays mapped for as long as its process lives, and in no other one.
        (self.process == generation::process()).then(|| unsafe { &*self.lane })
    }

    /// Selects the ring for the next record.
    fn look_up_ring(&mut self) {
        let Some(lane) = self.lane() else { return };
        let (place, offset) = WritePosition::look_up(lane, self.view.place.head);
        // SAFETY: the offset of a ring of this lane, which is inside the mapping.
        let ring = unsafe { self.base.add(offset as usize) };
        if ring != self.view.ring {
            self.view.ring = ring;
            self.view.wake_at = place.head + place.bytes / 2;
        }
        self.view.place = place;
    }

    /// Takes the lock of a shared lane, and continues where its last writer stopped. Returns false if another thread has
    /// the lock.
    #[cold]
    fn enter(&mut self, lane: &LaneHead) -> bool {
        self.is_inside.store(true, Ordering::Relaxed);
        // A signal handler of this thread sees the stores in their order.
        barrier::light();
        if !lane.producer.shared_lock.try_enter() {
            barrier::light();
            self.is_inside.store(false, Ordering::Relaxed);
            return false;
        }
        // The lock makes the head and the ring of the last writer visible
        // (model: `threads_that_share_a_lane_see_its_growth`).
        self.view.place.head = lane.producer.head.load(Ordering::Relaxed);
        self.look_up_ring();
        true
    }

    /// Ends [`Self::enter`].
    #[cold]
    fn leave(&self, lane: &LaneHead) {
        lane.producer.shared_lock.leave();
        barrier::light();
        self.is_inside.store(false, Ordering::Relaxed);
    }

    /// Whether the caller interrupts this thread while it holds the lock of its shared lane.
    pub fn is_inside(&self) -> bool {
        self.is_inside.load(Ordering::Relaxed)
    }

    /// Whether shared lane `index`, which is open, has room for a record of `needed` bytes now, and no other thread
    /// writes it.
    pub fn can_move_to(&self, segment: &Segment, index: usize, needed: u64, level: u16) -> bool {
        let lane = segment.lane(index);
        if !lane.producer.shared_lock.try_enter() {
            return false;
        }
        let (place, _) = WritePosition::look_up(lane, lane.producer.head.load(Ordering::Relaxed));
        lane.producer.shared_lock.leave();
        place.has_room(needed, place.reserved(level)) && needed <= place.bytes / INLINE_DIVISOR
    }

    /// Continues in shared lane `index`, which is open. The records of a thread keep their order, because batches are
    /// ordered by their stamps.
    pub fn move_to_shared(&mut self, segment: &Segment, index: usize) {
        let lane = segment.lane(index);
        self.point_to(lane, index);
        self.look_at_shared(lane);
    }

    /// Looks up the ring of a shared lane without its lock, to know how long a record may be. Each push looks it up again
    /// under the lock.
    ///
    /// It does not wait for the lock: where hundreds of threads yielded their processor in turn, its holder did not get
    /// one for seconds.
    fn look_at_shared(&mut self, lane: &LaneHead) {
        // Acquire: a position in the second ring makes that ring visible.
        self.view.place.head = lane.producer.published();
        self.look_up_ring();
    }

    /// Continues in lane `index`, which this thread has claimed for itself.
    pub fn move_to_own(&mut self, segment: &Segment, index: usize) {
        let lane = segment.lane(index);
        // A signal handler that logs on this thread meanwhile finds a producer of no generation.
        let generation = std::mem::replace(&mut self.view.generation, NO_GENERATION);
        barrier::light();
        self.point_to(lane, index);
        self.shared = false;
        self.view.flags &= !view_flags::SLOW;
        self.view.place.head = lane.producer.head.load(Ordering::Relaxed);
        self.look_up_ring();
        barrier::light();
        self.view.generation = generation;
    }

    fn point_to(&mut self, lane: &LaneHead, index: usize) {
        self.lane = lane;
        self.index = index;
        self.view.head_word = &lane.producer.head;
        self.view.busy_word = &lane.window.busy;
    }

    /// Reads the collector's position. Returns the free bytes; 0 in a forked child.
    #[inline]
    pub fn refresh(&mut self) -> u64 {
        if self.process != generation::process() {
            return 0;
        }
        // SAFETY: this process made the segment, which stays mapped for as long as it lives.
        self.view.place.refresh(unsafe { &*self.lane })
    }

    /// Position after the last record that was pushed.
    #[inline]
    pub fn position(&self) -> u64 {
        self.view.place.head
    }

    /// Whether this producer may still be used.
    #[inline]
    pub fn is_current(&self) -> bool {
        self.view.generation == self.view.generation_word.load(Ordering::Relaxed)
    }

    /// Whether other threads write this lane too.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The reason why a record of `needed` bytes cannot be pushed; `None` if it can be pushed.
    pub fn push_error(&mut self, needed: u64, level: u16) -> Option<PushError> {
        let Some(lane) = self.lane() else { return Some(PushError::StaleGeneration) };
        if self.shared {
            if self.is_inside() {
                return Some(PushError::Reentrant);
            }
            if !self.enter(lane) {
                return Some(PushError::Contended);
            }
            self.leave(lane);
        } else if lane.window.is_open() {
            return Some(PushError::Reentrant);
        }
        self.refresh();
        (!self.view.place.has_room(needed, self.reserved(level))).then_some(PushError::Full)
    }

    /// Bytes of the ring that must stay free after a record of this level is pushed.
    #[inline]
    fn reserved(&self, level: u16) -> u64 {
        self.view.place.reserved(level)
    }

    /// Whether the lane still has only its first ring.
    pub fn can_grow(&self) -> bool {
        self.view.place.start == 0 && self.lane().is_some_and(|lane| lane.producer.switch() == NOT_GROWN)
    }

    /// Continues in a second ring of `bytes` at `offset`.
    pub fn grow(&mut self, offset: u64, bytes: u64) {
        let Some(lane) = self.lane() else { return };
        self.view.place.grow(lane, offset, bytes);
        self.look_up_ring();
    }

    /// Looks at the ring of a shared lane again. Returns whether the lane has grown since the last look.
    pub fn see_growth(&mut self) -> bool {
        let Some(lane) = self.lane() else { return false };
        let before = self.view.ring;
        if self.is_inside() || !self.enter(lane) {
            return false;
        }
        self.leave(lane);
        self.view.ring != before
    }

    /// Maximum number of bytes of a record that is stored in the ring.
    #[inline]
    pub fn max_inline(&self) -> u64 {
        self.view.place.bytes / INLINE_DIVISOR
    }

    /// Bytes of the ring.
    pub fn ring_bytes(&self) -> u64 {
        self.view.place.bytes
    }

    /// Sets the place to which the next push writes its values.
    pub fn set_large(&mut self, large: LargeRecord) {
        self.large = Some(large);
    }

    /// Whether the last push was refused because of its ids. Resets the flag.
    pub fn take_stale_ids(&mut self) -> bool {
        std::mem::take(&mut self.stale_ids)
    }

    /// The large record that was prepared and not pushed.
    pub fn take_large(&mut self) -> Option<LargeRecord> {
        self.large.take()
    }

    /// Counts a refused record in the lane.
    pub fn count_refusal(&self, reason: usize, level_class: usize) {
        if let Some(lane) = self.lane() {
            lane.refused[reason][level_class].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes one record, or returns why it cannot be written.
    ///
    /// `fill` gets the address of exactly `value_bytes` bytes, and may only store to them.
    ///
    /// # Errors
    ///
    /// The [`PushError`]. `fill` was not called in that case.
    #[inline]
    pub fn push(&mut self, head: Head, value_bytes: usize, fill: impl FnOnce(*mut u8)) -> Result<(), PushError> {
        self.check_ids(head)?;
        if advance(HEAD_BYTES + value_bytes) as u64 > self.max_inline() {
            return self.push_large(head, value_bytes, fill);
        }
        self.push_inline(head, value_bytes, fill)
    }

    /// Opens the window of a record and writes its head, as [`Self::push`] does. Returns where the caller stores its
    /// `value_bytes` bytes of values. [`Self::commit`] or [`Self::abandon`] ends the window; until then the caller may
    /// only store.
    ///
    /// A lane that several threads share stays locked until then.
    ///
    /// # Errors
    ///
    /// The [`PushError`]. No window is open in that case.
    pub fn reserve(&mut self, mut head: Head, value_bytes: usize) -> Result<*mut u8, PushError> {
        if self.open.is_some() {
            return Err(PushError::Reentrant);
        }
        self.check_ids(head)?;
        if advance(HEAD_BYTES + value_bytes) as u64 <= self.max_inline() {
            let (_, needed, values) = self.open_record(&mut head, value_bytes)?;
            self.open = Some(OpenRecord { needed, level: head.level, large: None });
            return Ok(values);
        }
        let large = self.large.take_if(|large| large.bytes == value_bytes).ok_or(PushError::TooLong)?;
        head.flags |= flags::BLOB;
        match self.open_record(&mut head, BLOB_BYTES) {
            Ok((_, needed, values)) => {
                // SAFETY: `open_record` reserved `BLOB_BYTES`.
                unsafe { write_blob(values, large.number) };
                self.open = Some(OpenRecord { needed, level: head.level, large: Some(large.number) });
                Ok(large.place)
            }
            Err(error) => {
                self.large = Some(large);
                Err(error)
            }
        }
    }

    /// Publishes the record of [`Self::reserve`]. Returns its level; `None`: no record is open.
    pub fn commit(&mut self) -> Option<u16> {
        let open = self.open.take()?;
        if let Some(lane) = self.lane() {
            self.publish(lane, open.needed, open.level);
        }
        Some(open.level)
    }

    /// Closes the window of [`Self::reserve`] without a record. Returns whether a window was open, and the number of its
    /// large record's file, if it has one.
    pub fn abandon(&mut self) -> (bool, Option<u64>) {
        let Some(open) = self.open.take() else { return (false, None) };
        if let Some(lane) = self.lane() {
            lane.window.close();
            self.unlock(lane);
        }
        (true, open.large)
    }

    /// Whether a record is open: [`Self::reserve`] was called, and neither [`Self::commit`] nor [`Self::abandon`].
    pub fn has_open_record(&self) -> bool {
        self.open.is_some()
    }

    /// As the end of a push of this level: wakes the collector if it should look at the lane now.
    pub fn wake_after(&mut self, level: u16) {
        if self.is_current() {
            self.wake(level);
        }
    }

    /// Checks that the generation is current and that the ids belong to this segment.
    #[inline(always)]
    fn check_ids(&mut self, head: Head) -> Result<(), PushError> {
        if !self.is_current() {
            return Err(PushError::StaleGeneration);
        }
        // A record without a site has site 0. The subtraction wraps it to a number above all ids of the segment.
        if head.route.min(head.site.wrapping_sub(1)) < self.first_id {
            self.stale_ids = true;
            return Err(PushError::StaleIds);
        }
        Ok(())
    }

    #[cold]
    fn push_large(&mut self, mut head: Head, value_bytes: usize, fill: impl FnOnce(*mut u8)) -> Result<(), PushError> {
        let large = self.large.take_if(|large| large.bytes == value_bytes).ok_or(PushError::TooLong)?;
        let (number, place) = (large.number, large.place);
        head.flags |= flags::BLOB;
        let pushed = self.push_inline(head, BLOB_BYTES, |values| {
            fill(place);
            // SAFETY: `push_inline` reserved `BLOB_BYTES`.
            unsafe { write_blob(values, number) };
        });
        if pushed.is_err() {
            self.large = Some(large);
        }
        pushed
    }

    #[inline]
    fn push_inline(&mut self, mut head: Head, value_bytes: usize, fill: impl FnOnce(*mut u8)) -> Result<(), PushError> {
        let (lane, needed, values) = self.open_record(&mut head, value_bytes)?;
        fill(values);
        self.publish(lane, needed, head.level);
        Ok(())
    }

    /// Opens the window of a record and writes its head; locks a lane that several threads share. Call it only if
    /// [`Self::check_ids`] found no error. Returns the lane, the record's bytes in the ring, and where the values begin.
    #[inline(always)]
    fn open_record<'segment>(
        &mut self,
        head: &mut Head,
        value_bytes: usize,
    ) -> Result<(&'segment LaneHead, u64, *mut u8), PushError> {
        // SAFETY: the generation is current, so the segment is mapped.
        let lane = unsafe { &*self.lane };
        if self.shared {
            if self.is_inside() {
                return Err(PushError::Reentrant);
            }
            if !self.enter(lane) {
                return Err(PushError::Contended);
            }
        } else if lane.window.is_open() {
            return Err(PushError::Reentrant);
        }
        let needed = advance(HEAD_BYTES + value_bytes) as u64;
        let (generation, generation_word, reserved) =
            (self.view.generation, self.view.generation_word, self.reserved(head.level));
        let is_current = || generation == generation_word.load(Ordering::Relaxed);
        match self.view.place.reserve(lane, needed, reserved, is_current) {
            // SAFETY: `slot` is the place of a record of this length.
            Ok(slot) => Ok((lane, needed, unsafe { write_head(self.view.ring, slot, head, value_bytes) })),
            Err(error) => {
                self.unlock(lane);
                Err(error.into())
            }
        }
    }

    /// Publishes the record of [`Self::open_record`].
    #[inline(always)]
    fn publish(&mut self, lane: &LaneHead, needed: u64, level: u16) {
        self.view.place.commit(lane, needed);
        self.unlock(lane);
        if level >= ERROR || self.view.place.head >= self.view.wake_at {
            self.wake(level);
        }
    }

    #[inline(always)]
    fn unlock(&self, lane: &LaneHead) {
        if self.shared {
            self.leave(lane);
        }
    }

    /// Wakes the collector if it sleeps and this lane is half full or the record is an error.
    #[cold]
    fn wake(&mut self, level: u16) {
        if self.view.place.head >= self.view.wake_at {
            self.refresh();
            let WritePosition { head, bytes, limit, .. } = self.view.place;
            // In a shared lane the collector may have released later records of other threads by now.
            let used = bytes.saturating_sub(limit - head);
            // Chosen: the next check follows after another eighth of the ring. So a burst does not load the collector's
            // cache line for every record.
            self.view.wake_at = head + if used >= bytes / 2 { bytes / 8 } else { bytes / 2 - used };
            if used < bytes / 2 && level < ERROR {
                return;
            }
        }
        // SAFETY: the generation is current, so the segment is mapped.
        wake_collector(unsafe { &*self.sleeping });
    }
}

/// Wakes the collector if it sleeps. If it does not sleep, the call costs one load.
///
/// There is no fence between a publish and this load, so a wake-up can be missed. The collector then finds the record
/// when its own timeout (at most 5 ms) is over.
#[inline]
pub fn wake_collector(sleeping: &AtomicU32) {
    if sleeping.load(Ordering::Relaxed) == 1 && sleeping.swap(0, Ordering::Relaxed) == 1 {
        // SAFETY: the word is valid for the call.
        unsafe { platform::futex_wake(sleeping.as_ptr(), 1) };
    }
}

/// Sleeps until woken or until `nanoseconds` have passed. The caller has set `sleeping` to 1.
///
/// The segment is shared memory, but only threads of this process sleep on the word and wake each other. So the futex
/// operation is the private one, which costs the kernel less. On systems without futex the word is polled.
pub fn sleep_until_woken(sleeping: &AtomicU32, nanoseconds: u64) {
    if kernel::has_futex() {
        // SAFETY: the word is valid for the call.
        unsafe { platform::futex_wait(sleeping.as_ptr(), 1, Some(Duration::from_nanos(nanoseconds))) };
    } else {
        let end = clock::monotonic_ns() + nanoseconds;
        while sleeping.load(Ordering::Relaxed) == 1 && clock::monotonic_ns() < end {
            sleep_interruptibly(WAKE_POLL_INTERVAL);
        }
    }
    sleeping.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no fork")]
    fn a_forked_child_can_call_every_method_of_a_producer_of_its_parent() {
        let segment = Segment::in_memory(None).unwrap();
        let offset = segment.take_ring(4096).unwrap();
        segment.lane(0).set_first_ring(offset, 4096);
        let mut producer = Producer::new(&segment, 0, LaneUse::Own, 1);
        assert!(producer.refresh() > 0 && producer.can_grow() && producer.push_error(100, 20).is_none());

        // SAFETY: the child does nothing but system calls, loads and stores, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            producer.count_refusal(0, 0);
            producer.grow(offset, 4096);
            let head = Head { len: 0, site: 0, route: 1, level: 20, flags: 0, ticks: 0 };
            let is_void = producer.refresh() == 0
                && !producer.can_grow()
                && producer.push_error(100, 20) == Some(PushError::StaleGeneration)
                && producer.push(head, 0, |_| ()) == Err(PushError::StaleGeneration);
            // SAFETY: no preconditions.
            unsafe { libc::_exit(i32::from(!is_void)) };
        }
        let mut status = -1;
        // SAFETY: a child of ours and a local.
        unsafe { libc::waitpid(child, &mut status, 0) };

        assert_eq!(0, status, "a signal, or a wrong answer");
    }
}
