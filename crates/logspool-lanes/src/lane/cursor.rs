//! The positions of one lane and the orderings that make it a queue.
//!
//! A single-producer single-consumer byte ring (Lamport 1983, with cached limits as in FastForward-style queues), grown
//! at most once by a second ring. Positions are bytes since the lane was made; they never wrap and never restart.
//! Position `p` is in the first ring if `p < switch`, otherwise in the second, each time at `(p - start of the ring) &
//! (bytes of the ring - 1)`.
//!
//! | ordering | pairs with | makes visible | model |
//! |---|---|---|---|
//! | `publish_order` `head` store | `observe_order` `head` load | the record's bytes, and `switch` if it was set |
//! `a_popped_record_is_complete`, `the_consumer_sees_a_grown_ring`,
//! `records_of_a_ring_that_wraps_are_whole_and_in_order` |
//! | `release_order` `tail` store | `reuse_order` `tail` load | that the reader is done with the bytes |
//! `ring_space_is_not_reused_early`, `records_of_a_ring_that_wraps_are_whole_and_in_order` |
//! | `hand_over_order` `state` store | `claim_order` `state` exchange | the leaving thread's `head` |
//! `the_next_owner_of_a_lane_continues_after_the_last_record` |
//! | `close_order` `busy` store | `await_order` `busy` load | the `head` of the last record of a window |
//! `no_record_is_pushed_after_the_lane_is_closed` |
//! | fence in `announce_sleep` | fence in `PendingSync::wait_until` | a call that waits, or that the collector sleeps |
//! `a_call_wakes_the_collector_or_is_seen_by_it` |
//!
//! A writer of another language that stores into the lane itself (`view.rs`, `logspool.h`) keeps this list:
//! - it compares the generation of its view with the current one before the window, and again inside it;
//! - `busy` = 1 comes first, then a compiler fence, the second comparison, the look for room, the stores, `head` with
//!   Release, and `busy` = 0 with Release. `busy` is also 0 again, with Release, if it gives up;
//! - the stamp is read inside the window, and filler of fewer than 24 bytes is not written;
//! - a record below ERROR leaves 1/8 of the ring free;
//! - a record above 1/4 of the ring, a shared lane, and a call that waits for durability take the slow path;
//! - between reserve and publish it calls no foreign code, and nothing throws;
//! - it sets `head` of its view to the published position, and calls `wake` for ERROR and above, or from `wake_at` on.
//!
//! A lane that several threads share is locked by `shared_lock` from reserve to publish, and while it grows. Its writers
//! look up its ring inside the lock (`threads_that_share_a_lane_push_one_after_the_other`,
//! `threads_that_share_a_lane_see_its_growth`).
//!
//! Each can be weakened by its name (`LOGSPOOL_WEAKEN`); `make loom` checks that its model then fails.

use logspool_sys::barrier;
use logspool_sys::crossing::full_fence;
use logspool_sys::sync::{AtomicU32, AtomicU64, Ordering, guarded};

/// Release: a thread that sees the new `head` also sees the bytes before that position.
#[inline(always)]
fn publish_order() -> Ordering {
    guarded("publish", Ordering::Release)
}

/// Acquire: see [`publish_order`].
#[inline(always)]
fn observe_order() -> Ordering {
    guarded("observe", Ordering::Acquire)
}

/// Release: a thread that sees the new `tail` may overwrite the bytes before that position.
#[inline(always)]
fn release_order() -> Ordering {
    guarded("release", Ordering::Release)
}

/// Acquire: see [`release_order`].
#[inline(always)]
fn reuse_order() -> Ordering {
    guarded("reuse", Ordering::Acquire)
}

/// Release: the next owner of the lane sees the `head` at which the previous owner stopped.
#[inline(always)]
fn hand_over_order() -> Ordering {
    guarded("hand_over", Ordering::Release)
}

/// Acquire: see [`hand_over_order`].
#[inline(always)]
fn claim_order() -> Ordering {
    guarded("claim", Ordering::Acquire)
}

/// Release: a thread that sees that the window is closed also sees the record published in it.
#[inline(always)]
fn close_order() -> Ordering {
    guarded("close", Ordering::Release)
}

/// Acquire: see [`close_order`].
#[inline(always)]
fn await_order() -> Ordering {
    guarded("await", Ordering::Acquire)
}

/// Value of [`ProducerCursor::switch`] while a lane has only its first ring.
pub const NOT_GROWN: u64 = u64::MAX;

/// The producer's cache line of a lane.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ProducerCursor {
    /// Position after the last published record. Moved by the producer only.
    pub head: AtomicU64,
    /// Position at which the second ring begins, or [`NOT_GROWN`]. The producer sets it once, before it publishes the
    /// first record of the second ring. So a thread that sees a `head` beyond this position also sees the position.
    pub switch: AtomicU64,
    /// Lock of a lane that several threads share; 0 is free. Nobody waits for it while the lane is written: a thread that
    /// finds it taken continues in another lane.
    pub shared_lock: AtomicU32,
}

/// The mark of a lane's window, which is the time in which a push writes its record.
///
/// It has a cache line of its own. Each push loads the mark; if it was next to `head`, which the collector loads, the
/// first push after each round of the collector would wait some 150 ns for the line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Window {
    /// Set between reserve and publish. A call that finds it set has interrupted that window.
    pub busy: AtomicU32,
}

/// The consumer's cache line of a lane.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ConsumerCursor {
    /// Bytes before this position may be overwritten. The collector moves it after every sink has passed them.
    pub tail: AtomicU64,
    /// Position up to which records belong to a batch. `tail <= batched <= head`.
    pub batched: AtomicU64,
}

/// States of a lane, in [`LaneState::word`]. State 0: the lane has no ring yet and cannot be claimed.
pub mod state {
    /// One thread writes it.
    pub const OWNED: u32 = 1;
    /// Several threads write it under `shared_lock`.
    pub const SHARED: u32 = 2;
    /// No thread owns it; it may still hold records.
    pub const FREE: u32 = 3;
}

/// Ownership of a lane.
#[derive(Debug)]
#[repr(C)]
pub struct LaneState {
    /// The lane's state, one of the constants in [`state`].
    pub word: AtomicU32,
    /// Number of owners, past and present; breaks ties in the order of a batch.
    pub incarnation: AtomicU32,
}

impl LaneState {
    /// Claims a free lane. Returns whether the caller owns it now.
    pub fn try_claim(&self) -> bool {
        // Acquire pairs with the Release in `hand_over`: the new owner continues at the old one's `head`
        // (model: `the_next_owner_of_a_lane_continues_after_the_last_record`).
        let claimed = self.word.compare_exchange(state::FREE, state::OWNED, claim_order(), Ordering::Relaxed).is_ok();
        if claimed {
            self.incarnation.fetch_add(1, Ordering::Relaxed);
        }
        claimed
    }

    /// Whether a claim may succeed now. Costs less than the claim of a lane that is not free.
    pub fn is_free(&self) -> bool {
        self.word.load(Ordering::Relaxed) == state::FREE
    }

    /// Makes the caller the owner of a new lane that has its ring.
    pub fn make_owned(&self) {
        self.incarnation.store(1, Ordering::Relaxed);
        self.word.store(state::OWNED, hand_over_order());
    }

    /// Gives the lane up for another owner; its records stay.
    pub fn hand_over(&self) {
        self.word.store(state::FREE, hand_over_order());
    }
}

impl ProducerCursor {
    /// The cursor of a lane that begins at position 0 and has one ring.
    pub fn new() -> Self {
        Self { head: AtomicU64::new(0), switch: AtomicU64::new(NOT_GROWN), shared_lock: AtomicU32::new(0) }
    }

    /// Makes everything written before position `head` visible to the consumer.
    #[inline]
    pub fn publish(&self, head: u64) {
        // Release pairs with the Acquire in `published`: whoever sees this position sees the bytes before it.
        // Relaxed would hand out a record before its bytes arrive (model: `a_popped_record_is_complete`).
        self.head.store(head, publish_order());
    }

    /// Position after the last complete record. Load it before `switch`.
    #[inline]
    pub fn published(&self) -> u64 {
        self.head.load(observe_order())
    }

    /// Makes the second ring begin at the current head. The next `publish` makes this position visible to the consumer.
    #[inline]
    pub fn grow_at(&self, head: u64) {
        // Relaxed: the next `publish` orders this store, and no thread reaches a position beyond `head` without that
        // `publish` (model: `the_consumer_sees_a_grown_ring`).
        self.switch.store(head, Ordering::Relaxed);
    }

    /// Start of the second ring. The value is valid for every position below a head that was loaded with `published`
    /// before.
    #[inline]
    pub fn switch(&self) -> u64 {
        self.switch.load(Ordering::Relaxed)
    }
}

impl Window {
    /// A window that is not open.
    pub fn new() -> Self {
        Self { busy: AtomicU32::new(0) }
    }

    /// Whether a push is between reserve and publish: this thread's own push, which a signal handler interrupted, or a
    /// push of another thread that shares the lane.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.busy.load(Ordering::Relaxed) != 0
    }

    /// Opens the window. If `may` returns false after the window was opened, closes it again. Returns the result of
    /// `may`.
    ///
    /// A thread that wants to end all pushes makes `may` return false, passes `barrier::heavy`, and waits until no
    /// window is open ([`Self::is_closed`]). After that no further record is published (model:
    /// `no_record_is_pushed_after_the_lane_is_closed`).
    #[inline]
    pub fn open(&self, may: impl FnOnce() -> bool) -> bool {
        self.busy.store(1, Ordering::Relaxed);
        barrier::light();
        let may = may();
        if !may {
            self.close();
        }
        may
    }

    /// Closes the window. The record is then published, or the push wrote none.
    #[inline]
    pub fn close(&self) {
        // Release pairs with the Acquire in `is_closed`.
        self.busy.store(0, close_order());
    }

    /// Whether the window is not open; the records of earlier windows are published.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.busy.load(await_order()) == 0
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for ProducerCursor {
    fn default() -> Self {
        Self::new()
    }
}

impl ConsumerCursor {
    /// A consumer at position 0.
    pub fn new() -> Self {
        Self { tail: AtomicU64::new(0), batched: AtomicU64::new(0) }
    }

    /// Returns the space before `tail` to the producer.
    #[inline]
    pub fn release(&self, tail: u64) {
        // Release pairs with the Acquire in `released`: the reads of these bytes come before their reuse
        // (model: `ring_space_is_not_reused_early`).
        self.tail.store(tail, release_order());
    }

    /// Position before which the producer may overwrite bytes.
    #[inline]
    pub fn released(&self) -> u64 {
        self.tail.load(reuse_order())
    }
}

impl Default for ConsumerCursor {
    fn default() -> Self {
        Self::new()
    }
}

/// Announces that the collector is about to sleep. The collector must check for requests after this call. A thread that
/// makes a request, passes a fence and then finds no sleeping collector knows that the collector sees the request.
pub fn announce_sleep(sleeping: &AtomicU32) {
    sleeping.store(1, Ordering::Relaxed);
    full_fence("sleep_before_look");
}
