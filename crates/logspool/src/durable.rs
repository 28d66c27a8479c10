//! Tracks the accepted records that are not durable yet, and the calls that wait for them.
//!
//! Pipeline stage: durability (see ARCHITECTURE.md). Before a sink gets a batch, the collector enters the batch in this
//! table, split into one share for each lane. Each share lists the sinks of the lane's records. A sink removes itself
//! from the shares of a batch when it has synced the batch, or when its destination has confirmed the batch. A share is
//! durable when no sink is left in it. Shares of different lanes are independent: a thread that logs to a healthy file
//! does not wait for the stalled pipe of another thread.
//!
//! If the options let no call wait for durability, the process has no such table.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the two counters of the `checkpoint`
//! mode, which every call of that mode reads, and the two counters by which callers wake the collector and the writers.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::{LEVEL_CLASSES, MAX_LANES, MAX_SINKS, level_class};

use logspool_sys::crossing::full_fence;
use logspool_sys::sync::{AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError, guarded};

use crate::per_level::{self, PerLevel};

/// Release: a caller that sees a record as settled also sees that the push of that record has begun. So the caller
/// never counts too few records that are not durable (model: `a_checkpoint_never_counts_too_few_records`).
#[inline(always)]
fn settle_order() -> Ordering {
    guarded("settled_is_shown", Ordering::Release)
}

/// Acquire: pairs with the release of [`settle_order`], which gives the reason.
#[inline(always)]
fn credit_order() -> Ordering {
    guarded("settled_is_seen", Ordering::Acquire)
}

/// Release: a thread that sees the call in `calls` also sees it in `waiting` (model: `a_counted_call_waits`).
#[inline(always)]
fn call_order() -> Ordering {
    guarded("call_is_counted", Ordering::Release)
}

/// Acquire: pairs with the release of [`call_order`], which gives the reason.
#[inline(always)]
fn calls_order() -> Ordering {
    guarded("calls_are_seen", Ordering::Acquire)
}

/// A set of sinks, with one bit for each slot of the sink table.
pub type Sinks = u128;

const _: () = assert!(MAX_SINKS <= Sinks::BITS as usize);

/// Number of failed shares that are remembered for calls that have not checked their outcome yet.
///
/// Chosen: a call checks its outcome as soon as its thread runs. An outcome would be forgotten too early only if far
/// more threads than there are lanes were late.
const MAX_FAILED_SHARES: usize = 4 * MAX_LANES;

/// How often a waiting call restarts the native threads, which end when another thread forks.
const RESTART_INTERVAL: Duration = Duration::from_millis(50);

/// Which calls wait for durability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitRule {
    /// Only calls of the levels in `durable_levels` wait.
    Levels,
    /// A call waits if it would leave this number of accepted records of the process not durable.
    Checkpoint(u64),
    /// All calls.
    Every,
}

/// The records of one lane in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchShare {
    /// Index of the lane.
    pub lane: usize,
    /// Position of the first record.
    pub from: u64,
    /// Position after the last record.
    pub to: u64,
    /// Number of records.
    pub records: u32,
    /// The sinks in which the records are not durable yet.
    pub sinks: Sinks,
}

/// Outcome of a batch at one sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncOutcome {
    /// The batch is durable at the sink.
    Durable,
    /// The batch was dropped, or its sync failed.
    Failed,
}

#[derive(Debug, Clone, Copy)]
struct PendingBatch {
    share: BatchShare,
    failed: bool,
}

#[derive(Debug, Default)]
struct PendingSyncState {
    /// For each lane: the position up to which the lane is batched.
    batched: Vec<u64>,
    /// For each lane: the shares that are not settled, by the position after their last record.
    pending: Vec<BTreeMap<u64, PendingBatch>>,
    /// Lane and end position of the shares of each unsettled batch.
    batches: BTreeMap<u64, Vec<(usize, u64)>>,
    /// Lane, first and end position of shares that were settled without being durable.
    failed: VecDeque<(usize, u64, u64)>,
}

/// The table of records that are not durable yet, see the module documentation.
#[derive(Debug)]
pub struct PendingSync {
    wait: WaitRule,
    levels: Vec<u16>,
    /// Number of records whose push has begun. Refused records are subtracted again.
    begun: AtomicU64,
    /// Number of records that are durable or dropped.
    settled: AtomicU64,
    /// Number of calls that wait now.
    waiting: AtomicU32,
    /// Number of calls that have ever begun to wait.
    calls: AtomicU64,
    /// Number of calls that returned although their record was not durable.
    not_durable: [AtomicU64; LEVEL_CLASSES],
    state: Mutex<PendingSyncState>,
    changed: Condvar,
}

impl PendingSync {
    /// A table without records. Calls of `levels` wait for their own record, in addition to the calls that `wait`
    /// selects.
    pub fn new(wait: WaitRule, levels: Vec<u16>) -> Self {
        Self {
            wait,
            levels,
            begun: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            calls: AtomicU64::new(0),
            not_durable: Default::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingSyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a record. Call it before the push, so that a record is counted before it can become durable.
    pub fn begin(&self) {
        // Relaxed: all additions to `begun` have one order, and a thread sees its own addition. The ring makes the
        // addition visible to the settling thread.
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back the count of [`Self::begin`]. Call it after a push that found no room.
    pub fn uncount(&self) {
        self.begun.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a call must wait after its record was pushed. Never blocks.
    pub fn must_wait(&self, level: u16) -> bool {
        self.waits_for_itself(level) || !self.has_credit()
    }

    fn waits_for_itself(&self, level: u16) -> bool {
        self.wait == WaitRule::Every || self.levels.contains(&level)
    }

    /// Whether the number of records that are not durable is less than `every` of [`WaitRule::Checkpoint`]. Always true
    /// in the other modes.
    fn has_credit(&self) -> bool {
        let WaitRule::Checkpoint(every) = self.wait else { return true };
        // The order of these two loads matters: records settled between them make the difference too large, never too
        // small.
        let settled = self.settled.load(credit_order());
        self.begun.load(Ordering::Relaxed).saturating_sub(settled) < every
    }

    /// Whether a call is waiting, so that sinks must sync.
    pub fn has_waiters(&self) -> bool {
        // Relaxed: a writer that reads 0 goes to sleep under the lock of its queue. The collector sees the call in
        // `calls`, and takes the same lock to wake the writer.
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Increases whenever a call begins to wait.
    pub fn calls(&self) -> u64 {
        self.calls.load(calls_order())
    }

    /// Number of calls that returned although their record was not durable, per level class.
    pub fn not_durable(&self) -> PerLevel {
        per_level::read(&self.not_durable)
    }

    /// Enters a batch in the table. Call it before any sink gets the batch.
    pub fn add_batch(&self, batch: u64, shares: impl Iterator<Item = BatchShare>) {
        let mut state = self.lock();
        let PendingSyncState { batched, pending, batches, .. } = &mut *state;
        let mut ends = Vec::new();
        let mut settled = 0;
        for share in shares {
            if batched.len() <= share.lane {
                batched.resize(share.lane + 1, 0);
                pending.resize_with(share.lane + 1, BTreeMap::new);
            }
            batched[share.lane] = share.to;
            if share.sinks == 0 {
                settled += u64::from(share.records);
                continue;
            }
            pending[share.lane].insert(share.to, PendingBatch { share, failed: false });
            ends.push((share.lane, share.to));
        }
        if !ends.is_empty() {
            batches.insert(batch, ends);
        }
        self.settled.fetch_add(settled, settle_order());
        if settled > 0 {
            self.changed.notify_all();
        }
    }

    /// Reports the outcome of these batches at the sink in slot `slot`.
    pub fn settle(&self, slot: usize, batches: impl Iterator<Item = u64>, outcome: SyncOutcome) {
        let mut state = self.lock();
        for batch in batches {
            self.settle_one(&mut state, slot, batch, outcome);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Reports that the sink in slot `slot` will make no more batches durable.
    pub fn forget_sink(&self, slot: usize) {
        let batches: Vec<u64> = self.lock().batches.keys().copied().collect();
        self.settle(slot, batches.into_iter(), SyncOutcome::Failed);
    }

    fn settle_one(&self, state: &mut PendingSyncState, slot: usize, batch: u64, outcome: SyncOutcome) {
        let PendingSyncState { pending, batches, failed, .. } = state;
        let Some(ends) = batches.get_mut(&batch) else { return };
        let bit: Sinks = 1 << slot;
        let mut settled = 0;
        ends.retain(|(lane, to)| {
            let Some(found) = pending[*lane].get_mut(to) else { return false };
            if found.share.sinks & bit == 0 {
                return true;
            }
            found.share.sinks &= !bit;
            found.failed |= outcome == SyncOutcome::Failed;
            if found.share.sinks != 0 {
                return true;
            }
            settled += u64::from(found.share.records);
            if found.failed {
                failed.push_back((*lane, found.share.from, *to));
                if failed.len() > MAX_FAILED_SHARES {
                    failed.pop_front();
                }
            }
            pending[*lane].remove(to);
            false
        });
        if ends.is_empty() {
            batches.remove(&batch);
        }
        self.settled.fetch_add(settled, settle_order());
    }

    /// Waits until the record that ends at `position` of a lane is durable, or until the mode lets its call return.
    ///
    /// `look_after` wakes the collector and the writers; it is called at once and then repeatedly. Returns whether the
    /// record is durable or need not be durable, or `None` at the deadline. The caller must count records that are not
    /// durable.
    pub fn wait_until(
        &self,
        lane: usize,
        position: u64,
        level: u16,
        deadline: Option<Instant>,
        look_after: impl Fn(),
    ) -> Option<bool> {
        let for_itself = self.waits_for_itself(level);
        let returns = |state: &PendingSyncState| {
            let own = state.outcome(lane, position);
            if own.is_none() && !for_itself && self.has_credit() { Some(SyncOutcome::Durable) } else { own }
        };
        // Change these counters before taking the lock and checking `state`. So a writer that settles the record
        // meanwhile is not missed.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.calls.fetch_add(1, call_order());
        // Orders the changes of the counters before `look_after` checks whether the collector sleeps. The collector
        // checks `calls` before it sleeps.
        full_fence("call_before_look");
        look_after();
        let mut state = self.lock();
        let outcome = loop {
            if let Some(outcome) = returns(&state) {
                break Some(outcome);
            }
            let left = deadline.map_or(RESTART_INTERVAL, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break None;
            }
            let (guard, timeout) =
                self.changed.wait_timeout(state, left.min(RESTART_INTERVAL)).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if timeout.timed_out() {
                drop(state);
                look_after();
                state = self.lock();
            }
        };
        drop(state);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        outcome.map(|outcome| outcome == SyncOutcome::Durable)
    }

    /// Counts a call that returns although its record is not durable.
    pub fn count_not_durable(&self, level: u16) {
        self.not_durable[level_class(level)].fetch_add(1, Ordering::Relaxed);
    }
}

impl PendingSyncState {
    /// Outcome of the record that ends at `position` of a lane. `None` if the outcome is not known yet.
    fn outcome(&self, lane: usize, position: u64) -> Option<SyncOutcome> {
        if self.batched.get(lane).is_none_or(|batched| *batched < position) {
            return None;
        }
        let covers = |from: u64, to: u64| from < position && position <= to;
        if let Some((to, found)) = self.pending[lane].range(position..).next()
            && covers(found.share.from, *to)
        {
            return None;
        }
        let failed = self.failed.iter().any(|(other, from, to)| *other == lane && covers(*from, *to));
        Some(if failed { SyncOutcome::Failed } else { SyncOutcome::Durable })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn share(lane: usize, from: u64, to: u64, sinks: Sinks) -> BatchShare {
        BatchShare { lane, from, to, records: 1, sinks }
    }

    fn outcome(pending_sync: &PendingSync, lane: usize, position: u64) -> Option<SyncOutcome> {
        pending_sync.lock().outcome(lane, position)
    }

    #[test]
    fn a_share_is_durable_when_each_of_its_sinks_has_synced_it() {
        let pending_sync = PendingSync::new(WaitRule::Every, Vec::new());
        assert_eq!(None, outcome(&pending_sync, 0, 8), "not batched yet");
        pending_sync.add_batch(1, [share(0, 0, 8, 0b11), share(1, 0, 16, 0b10)].into_iter());
        assert_eq!(None, outcome(&pending_sync, 0, 8));
        pending_sync.settle(1, [1].into_iter(), SyncOutcome::Durable);

        assert_eq!(None, outcome(&pending_sync, 0, 8), "the other sink has it still");
        assert_eq!(Some(SyncOutcome::Durable), outcome(&pending_sync, 1, 16));
        pending_sync.settle(0, [1].into_iter(), SyncOutcome::Durable);
        assert_eq!(Some(SyncOutcome::Durable), outcome(&pending_sync, 0, 8));
        assert!(pending_sync.lock().batches.is_empty());
    }

    #[test]
    fn a_later_batch_of_another_lane_does_not_wait_for_an_earlier_one() {
        let pending_sync = PendingSync::new(WaitRule::Every, Vec::new());
        pending_sync.add_batch(1, [share(0, 0, 8, 0b1)].into_iter());
        pending_sync.add_batch(2, [share(1, 0, 8, 0b10)].into_iter());
        pending_sync.settle(1, [2].into_iter(), SyncOutcome::Durable);

        assert_eq!(None, outcome(&pending_sync, 0, 8));
        assert_eq!(Some(SyncOutcome::Durable), outcome(&pending_sync, 1, 8));
    }

    #[test]
    fn a_record_that_one_sink_could_not_sync_is_not_durable() {
        let pending_sync = PendingSync::new(WaitRule::Every, Vec::new());
        pending_sync.add_batch(1, [share(0, 0, 8, 0b11)].into_iter());
        pending_sync.add_batch(2, [share(0, 8, 16, 0b11)].into_iter());
        pending_sync.settle(0, [1].into_iter(), SyncOutcome::Failed);
        pending_sync.settle(0, [2].into_iter(), SyncOutcome::Durable);
        pending_sync.settle(1, [1, 2].into_iter(), SyncOutcome::Durable);

        assert_eq!(Some(SyncOutcome::Failed), outcome(&pending_sync, 0, 8));
        assert_eq!(Some(SyncOutcome::Durable), outcome(&pending_sync, 0, 16));
        assert_eq!(Some(false), pending_sync.wait_until(0, 8, 20, Some(Instant::now() + SOON), || {}));
        assert_eq!(Some(true), pending_sync.wait_until(0, 16, 20, Some(Instant::now() + SOON), || {}));
    }

    #[test]
    fn a_removed_sink_blocks_no_call() {
        let pending_sync = PendingSync::new(WaitRule::Every, Vec::new());
        pending_sync.add_batch(1, [share(0, 0, 8, 0b100)].into_iter());
        pending_sync.add_batch(2, [share(1, 0, 8, 0b1)].into_iter());
        pending_sync.forget_sink(2);

        assert_eq!(Some(SyncOutcome::Failed), outcome(&pending_sync, 0, 8));
        assert_eq!(None, outcome(&pending_sync, 1, 8));
    }

    #[test]
    fn a_checkpoint_waits_at_the_record_that_would_exceed_the_limit() {
        let pending_sync = PendingSync::new(WaitRule::Checkpoint(3), vec![50]);
        pending_sync.begin();
        pending_sync.begin();
        assert!(!pending_sync.must_wait(20));
        assert!(pending_sync.must_wait(50), "its level asks for it");
        pending_sync.begin();
        assert!(pending_sync.must_wait(20));
        pending_sync.uncount();
        assert!(!pending_sync.must_wait(20));
        pending_sync.begin();

        pending_sync.add_batch(1, [share(0, 0, 8, 1)].into_iter());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| pending_sync.wait_until(1, 24, 20, Some(Instant::now() + SOON), || {}));
            while !pending_sync.has_waiters() {
                std::thread::yield_now();
            }
            // This settles the record of another lane, so the waiting call can return only because of the credit.
            pending_sync.settle(0, [1].into_iter(), SyncOutcome::Durable);
            assert_eq!(Some(true), waits.join().unwrap());
        });
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_the_call_is_counted_by_its_level() {
        let pending_sync = PendingSync::new(WaitRule::Every, Vec::new());
        pending_sync.add_batch(1, [share(0, 0, 8, 1)].into_iter());

        assert_eq!(None, pending_sync.wait_until(0, 8, 40, Some(Instant::now() + Duration::from_millis(1)), || {}));
        pending_sync.count_not_durable(40);
        assert_eq!([0, 0, 0, 0, 1, 0], pending_sync.not_durable());
        assert!(!pending_sync.has_waiters());
    }
}
