//! Two threads that each store a word and then load the other's (Dekker 1965): at least one sees the other's store.
//!
//! [`barrier`](crate::barrier) does this for a side that runs with every record. The pairs in this module are rare on
//! both sides, so each side has a full fence between its store and its load. Without a fence a processor may load
//! before its store is visible, and both threads see the old values. [`RunningFlag`] needs no fence, because both sides
//! exchange the same word. The thread of the later exchange sees everything that the thread of the earlier one did
//! before.
//!
//! | side | stores | loads | weakened by | model |
//! |---|---|---|---|---|
//! | [`RunningFlag::try_start`] | the caller cleared its word | `runs` | `flag_start` | `a_thread_never_misses_its_run` |
//! | [`RunningFlag::stop_unless`] | `runs` | the caller's word | `flag_stop` | `a_thread_never_misses_its_run` |
//! | [`WorkPause::begin_work`] | `works` | `paused_until` | `work_before_look` | `no_work_starts_during_a_pause` |
//! | [`WorkPause::pause_until`] | `paused_until` | `works` | `pause_before_look` | `no_work_starts_during_a_pause` |
//! | [`Shutdown::enter`] | `inside` | `ender` | `enter_before_look` | `a_shutdown_sees_threads_that_entered_before_it` |
//! | [`Shutdown::begin`] | `ender` | `inside` | `end_before_look` | `a_shutdown_sees_threads_that_entered_before_it` |

use crate::published::{Entered, Published};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence, guarded, is_weakened};

/// A full fence between a store of this thread and its next load, named for the models.
#[inline(always)]
pub fn full_fence(name: &str) {
    if !is_weakened(name) {
        fence(Ordering::SeqCst);
    }
}

/// Whether a native thread runs. Other threads ask it to stop and start it again.
#[derive(Debug)]
pub struct RunningFlag(AtomicBool);

impl Default for RunningFlag {
    fn default() -> Self {
        Self::new()
    }
}

impl RunningFlag {
    /// No thread runs.
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether the thread runs. After a `false`, the caller sees everything that the thread did.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.0.observe()
    }

    /// As `is_running`, for a caller that reads nothing that the thread wrote.
    #[inline]
    pub fn is_running_relaxed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Marks the thread as running. Returns true if it did not run: then the caller must start it. Before this call,
    /// clear the word that tells the thread to stop.
    pub fn try_start(&self) -> bool {
        // Release: `stop_unless` sees that the word was cleared. Acquire: this thread sees what the last native thread
        // did.
        !self.0.swap(true, guarded("flag_start", Ordering::AcqRel))
    }

    /// Records that the thread could not be started, or that it ended.
    pub fn end(&self) {
        self.0.leave();
    }

    /// Marks the thread as stopped. Returns true if the thread must continue instead, because `is_to_leave` now returns
    /// false and no other thread was started.
    pub fn stop_unless(&self, is_to_leave: impl FnOnce() -> bool) -> bool {
        // Release: the caller that starts the next thread sees what this thread did. Acquire pairs with the Release in
        // `try_start`.
        self.0.swap(false, guarded("flag_stop", Ordering::AcqRel));
        !is_to_leave() && self.0.try_enter()
    }
}

/// A pause during which no work begins. The caller that begins the pause waits for the work that is already under way.
#[derive(Debug, Default)]
pub struct WorkPause {
    works: AtomicBool,
    /// End of the pause, in nanoseconds on the monotonic clock.
    paused_until: AtomicU64,
}

impl WorkPause {
    /// Marks work as begun. Returns true if the work may continue, because `now` is not in a pause. Call
    /// [`WorkPause::end_work`] in both cases.
    pub fn begin_work(&self, now: u64) -> bool {
        self.works.store(true, Ordering::Relaxed);
        full_fence("work_before_look");
        !self.is_paused_at(now)
    }

    /// Marks the work as done.
    pub fn end_work(&self) {
        self.works.publish(false);
    }

    /// Whether the time `now` is in a pause.
    pub fn is_paused_at(&self, now: u64) -> bool {
        now < self.paused_until.load(Ordering::Relaxed)
    }

    /// Begins a pause. Work that has begun may still be under way: wait until [`WorkPause::is_working`] is false.
    pub fn pause_until(&self, end: u64) {
        self.paused_until.store(end, Ordering::Relaxed);
        full_fence("pause_before_look");
    }

    /// Whether work is under way. After a `false`, the caller sees everything that the work did.
    pub fn is_working(&self) -> bool {
        self.works.observe()
    }
}

/// A shutdown that waits for the threads that have entered. No thread enters after the shutdown has begun.
#[derive(Debug)]
pub struct Shutdown {
    inside: AtomicU32,
    /// Number of the thread that runs the shutdown; 0 before the shutdown.
    ender: AtomicU64,
}

impl Shutdown {
    /// State before the shutdown, with no thread inside.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default, reason = "it is made for a static")]
    pub const fn new() -> Self {
        Self { inside: AtomicU32::new(0), ender: AtomicU64::new(0) }
    }

    /// State before the shutdown, with no thread inside.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { inside: AtomicU32::new(0), ender: AtomicU64::new(0) }
    }

    /// Counts the calling thread as inside. Call [`Shutdown::ender`] after it: if another thread runs the shutdown,
    /// call [`Shutdown::leave`].
    pub fn enter(&self) {
        self.inside.fetch_add(1, Ordering::Relaxed);
        full_fence("enter_before_look");
    }

    /// Stops counting the calling thread as inside.
    pub fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of the thread that runs the shutdown; 0 before the shutdown.
    #[inline]
    pub fn ender(&self) -> u64 {
        self.ender.load(Ordering::Relaxed)
    }

    /// Begins the shutdown. Returns the number of threads that are inside and entered before they could see the
    /// shutdown.
    pub fn begin(&self, ender: u64) -> u32 {
        self.ender.store(ender, Ordering::Relaxed);
        full_fence("end_before_look");
        self.inside.load(Ordering::Relaxed)
    }

    /// In a forked child: resets the state. The threads inside do not exist in the child, and the shutdown is the
    /// parent's.
    pub fn forget(&self) {
        self.inside.store(0, Ordering::Relaxed);
        self.ender.store(0, Ordering::Relaxed);
    }
}
