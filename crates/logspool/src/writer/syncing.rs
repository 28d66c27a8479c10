//! When a sink is synced, and what a sync means for the sink's batches.
//!
//! One sync covers everything written before it. While records wait, they do not get one sync each. The writer checks
//! for a due sync between two chunks and before it sleeps. No batch counts as durable before its sync has returned. If
//! the destination confirms, a batch is durable when it has arrived.

use std::sync::atomic::Ordering;

use logspool_lanes::segment::layout::{LEVEL_CLASSES, Table};
use logspool_sys::clock::monotonic_ns;

use super::outlet::{Outlet, OutletState};
use super::syncs::{SyncRule, Syncs, UnsyncedBatches};
use crate::durable::SyncOutcome;
use crate::meters::WRITE_SECONDS;
use crate::sink::{Sink, SyncError};

/// Maximum number of bytes that are written but not synced. They are kept in memory in case the sync fails.
///
/// Chosen: the time of a sync of this size depends on the disk's bandwidth, not on its latency. Halving it syncs a fast
/// program more often. Doubling it keeps more memory, and calls that wait after a burst wait longer.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// How long a steady flow of records may delay a call that waits for a sync.
///
/// Chosen: a common disk does a few syncs in this time. Halving it makes fewer calls share a sync; doubling it shows in
/// the latency of the calls.
const MAX_NS: u64 = 5_000_000;

/// Delay after a failed sync before the next try, if the sink has kept the unsynced bytes.
///
/// Chosen: writes notice a disk that works again after the same time. Each try writes the kept bytes again.
const RETRY_NS: u64 = 1_000_000_000;

/// A sync that has not returned for this long is reported as a stuck sink. Chosen: it equals the limit for a service
/// that confirms nothing.
const STUCK_NS: u64 = super::UNCONFIRMED_STUCK_NS;

/// The time at which the next sync is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncDue {
    Now,
    At(u64),
    Never,
}

impl Outlet {
    /// Sets the sync rule. Call it before the first chunk.
    pub fn set_syncs(&mut self, syncs: Syncs) {
        if syncs.tracks()
            && let Ok(Some(sink)) = self.sink.get_mut().map(|sink| sink.as_mut())
        {
            sink.keep_unsynced();
        }
        self.syncs = syncs;
    }

    /// Returns when the writer must sync next.
    pub(super) fn sync_due(&self, state: &OutletState, now: u64) -> SyncDue {
        let unsynced = &state.unsynced;
        if state.dead.is_some() {
            return SyncDue::Never;
        }
        if unsynced.requested > unsynced.answered || unsynced.bytes >= MAX_BYTES {
            return SyncDue::Now;
        }
        let retry = (unsynced.retry_at > 0).then_some(unsynced.retry_at);
        let next = match self.syncs.rule {
            _ if unsynced.batches.is_empty() => None,
            rule if rule == SyncRule::Always || self.syncs.has_waiters() => {
                Some(if state.entries.is_empty() { now } else { unsynced.since + MAX_NS })
            }
            SyncRule::Every(interval) => Some(unsynced.since + interval.as_nanos() as u64),
            SyncRule::Asked | SyncRule::Always => None,
        };
        match retry.into_iter().chain(next).min() {
            Some(then) if now >= then => SyncDue::Now,
            Some(then) => SyncDue::At(then),
            None => SyncDue::Never,
        }
    }

    /// Notes that a batch is written but not synced yet.
    pub(super) fn note_unsynced(
        &self,
        state: &mut OutletState,
        batch: u64,
        counts: [u32; LEVEL_CLASSES],
        bytes: usize,
    ) {
        if !self.syncs.tracks() {
            return;
        }
        if self.confirms {
            return self.settle(&[batch], SyncOutcome::Durable);
        }
        let unsynced = &mut state.unsynced;
        if unsynced.batches.is_empty() {
            unsynced.since = monotonic_ns();
        }
        unsynced.batches.push(batch);
        unsynced.bytes += bytes;
        unsynced.counts.iter_mut().zip(counts).for_each(|(total, count)| *total += u64::from(count));
    }

    /// Reports to the waiting calls how some batches of this sink ended.
    pub(super) fn settle(&self, batches: &[u64], outcome: SyncOutcome) {
        if let Some(pending_sync) = &self.syncs.pending_sync {
            pending_sync.settle(Table::Sinks.slot(self.id), batches.iter().copied(), outcome);
        }
    }

    /// Whether the sink is a pipe without a reader. Its records may wait for ever, unless a spool stores them.
    pub(super) fn has_no_reader(&self) -> bool {
        self.bell.is_none() && !self.confirms && self.error_number.load(Ordering::Relaxed) == libc::EPIPE
    }

    /// Reports to waiting calls that no queued record of this sink will become durable, as far as is known.
    pub(super) fn settle_all(&self) {
        if let Some(pending_sync) = &self.syncs.pending_sync {
            pending_sync.forget_sink(Table::Sinks.slot(self.id));
        }
    }

    /// Syncs everything written until now. The writer, which holds the sink, calls it.
    pub(super) fn sync(&self, sink: &mut dyn Sink) {
        let (asked, unsynced) = {
            let mut state = self.lock();
            let asked = state.unsynced.requested;
            let taken = std::mem::take(&mut state.unsynced);
            state.unsynced = UnsyncedBatches {
                requested: taken.requested,
                answered: taken.answered,
                failed: taken.failed,
                is_lost: taken.is_lost,
                is_under_way: true,
                ..UnsyncedBatches::default()
            };
            (asked, taken)
        };
        let start = monotonic_ns();
        self.syncing_since.store(start, Ordering::Relaxed);
        let result = sink.sync();
        self.syncing_since.store(0, Ordering::Relaxed);
        let end = monotonic_ns();
        self.meters.sync_seconds.observe(&WRITE_SECONDS, end.saturating_sub(start) as f64 / 1e9);
        let outcome = if result.is_ok() { SyncOutcome::Durable } else { SyncOutcome::Failed };
        if outcome == SyncOutcome::Failed {
            for (counter, count) in self.meters.not_durable.iter().zip(unsynced.counts) {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
        self.note_synced(result, asked, end);
        self.settle(&unsynced.batches, outcome);
    }

    fn note_synced(&self, result: Result<(), SyncError>, asked: u64, end: u64) {
        let mut state = self.lock();
        // The writer was waiting for the disk and did not hang in a write. So the time of the sync does not count as a
        // stuck write.
        state.finished_at = state.finished_at.max(end);
        let unsynced = &mut state.unsynced;
        unsynced.is_under_way = false;
        match result {
            Ok(()) if !unsynced.is_lost => self.sync_error.store(0, Ordering::Relaxed),
            Ok(()) => {}
            Err(failed) => {
                self.sync_error.store(failed.error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
                unsynced.failed = asked;
                unsynced.is_lost |= failed.is_final;
                unsynced.retry_at = if failed.is_final { 0 } else { end + RETRY_NS };
            }
        }
        unsynced.answered = unsynced.answered.max(asked);
    }

    /// The error of the last sync, if that sync failed and no later one repaired it.
    pub fn sync_error(&self) -> Option<String> {
        match self.sync_error.load(Ordering::Relaxed) {
            0 => None,
            number => Some(std::io::Error::from_raw_os_error(number).to_string()),
        }
    }

    /// Whether a running sync hangs.
    pub(super) fn hangs_in_sync(&self, now: u64) -> bool {
        let since = self.syncing_since.load(Ordering::Relaxed);
        since != 0 && now.saturating_sub(since) > STUCK_NS
    }

    /// Whether there are written records whose sync has not returned.
    pub fn is_unsynced(&self) -> bool {
        let unsynced = &self.lock().unsynced;
        let is_to_come = !unsynced.batches.is_empty() || unsynced.retry_at > 0;
        is_to_come || unsynced.is_under_way || unsynced.requested > unsynced.answered
    }

    /// Requests a sync of everything written until now. Returns the number of the request, for [`Outlet::synced`], and
    /// whether a writer thread must be started. `None` if the sink is closed, or if its destination confirms.
    pub fn request_sync(&self) -> Option<(u64, bool)> {
        if self.confirms || self.is_closed() {
            return None;
        }
        let mut state = self.lock();
        if state.dead.is_some() {
            return None;
        }
        state.unsynced.requested += 1;
        let number = state.unsynced.requested;
        let start = !state.thread_runs && !state.leave;
        state.thread_runs |= start;
        drop(state);
        self.changed.notify_all();
        Some((number, start))
    }

    /// Result of sync request `number`: whether everything is durable. `None` if the request is still open.
    pub fn synced(&self, number: u64) -> Option<bool> {
        let state = self.lock();
        let unsynced = &state.unsynced;
        let gone = state.dead.is_some() || self.is_closed();
        (unsynced.answered >= number || gone).then_some(unsynced.failed < number && unsynced.answered >= number)
    }

    /// Makes an idle writer check whether a new waiting call needs a sync of written records. Returns whether a writer
    /// thread must be started.
    pub fn nudge(&self) -> bool {
        let mut state = self.lock();
        if state.unsynced.batches.is_empty() {
            return false;
        }
        let start = !state.thread_runs && !state.leave;
        state.thread_runs |= start;
        drop(state);
        self.changed.notify_all();
        start
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::io;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::{Duration, Instant};

    use logspool_lanes::segment::Segment;
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::chunk::Chunk;
    use crate::durable::{BatchShare, PendingSync, WaitRule};
    use crate::overflow::Budget;
    use crate::sink::{Lines, SinkError, SyncError};
    use crate::sinks::{NullOptions, SinkOptions};

    /// A sink whose syncs return when the test says so, with the result that the test sets.
    struct Scripted {
        begun: Sender<usize>,
        results: Receiver<Result<(), SyncError>>,
        written: usize,
    }

    impl Sink for Scripted {
        fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
            self.written += 1;
            Ok(lines.bytes.len())
        }

        fn sync(&mut self) -> Result<(), SyncError> {
            self.begun.send(self.written).unwrap();
            self.results.recv_timeout(DEADLINE).unwrap()
        }
    }

    struct Stage {
        outlet: Outlet,
        pending_sync: Arc<PendingSync>,
        begun: Receiver<usize>,
        results: Sender<Result<(), SyncError>>,
    }

    fn failed(is_final: bool) -> Result<(), SyncError> {
        Err(SyncError { error: io::Error::from_raw_os_error(libc::EIO), is_final })
    }

    const DEADLINE: Duration = Duration::from_secs(20);

    /// Makes the writer leave when it is dropped, so also when the test fails.
    struct Leave<'a>(&'a Outlet);

    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.ask_to_leave();
        }
    }

    fn stage(rule: SyncRule, wait: WaitRule) -> Stage {
        let (begins, begun) = channel();
        let (results, ends) = channel();
        let definition = NullOptions {}.define(Descriptor::Open);
        let sink = Box::new(Scripted { begun: begins, results: ends, written: 0 });
        let segment = Arc::new(Segment::in_memory(None).unwrap());
        let mut outlet = Outlet::new(1, definition, None, sink, segment, Arc::new(Budget::new(0)));
        let pending_sync = Arc::new(PendingSync::new(wait, Vec::new()));
        outlet.set_syncs(Syncs { rule, pending_sync: Some(pending_sync.clone()) });
        Stage { outlet, pending_sync, begun, results }
    }

    impl Stage {
        fn push(&self, batch: u64) {
            let (from, to) = (8 * (batch - 1), 8 * batch);
            self.pending_sync.add_batch(batch, [BatchShare { lane: 0, from, to, records: 1, sinks: 0b10 }].into_iter());
            let mut chunk = Chunk { batch, bytes: b"a line\n".to_vec(), ..Chunk::default() };
            chunk.marks.push(crate::sink::Mark { end: 7, level: 20, class: 2, member: 0, seconds: 0 });
            chunk.counts[2] = 1;
            self.outlet.push(chunk, 0, 0);
        }

        /// Checks whether a call that waits for the record of `batch` would return, and whether the record is then
        /// durable.
        fn look(&self, batch: u64) -> bool {
            let deadline = Some(Instant::now() + Duration::from_millis(1));
            self.pending_sync.wait_until(0, 8 * batch, 20, deadline, || {}) == Some(true)
        }

        fn wait(&self, batch: u64) -> bool {
            let look_after = || {
                let _ = self.outlet.nudge();
            };
            self.pending_sync.wait_until(0, 8 * batch, 20, Some(Instant::now() + DEADLINE), look_after) == Some(true)
        }

        fn runs<T>(&self, test: impl FnOnce() -> T) -> T {
            let outlet = &self.outlet;
            std::thread::scope(|scope| {
                scope.spawn(|| outlet.run(|| (), || Duration::MAX));
                let _leave = Leave(outlet);
                test()
            })
        }
    }

    #[test]
    fn nothing_is_durable_before_its_sync_returns_and_waiting_records_share_the_next_sync() {
        let stage = stage(SyncRule::Always, WaitRule::Every);
        stage.push(1);
        stage.runs(|| {
            assert_eq!(1, stage.begun.recv_timeout(DEADLINE).unwrap());
            assert!(!stage.look(1), "it is written, and its sync is under way");
            assert!(stage.outlet.is_unsynced(), "an end would wait for it");
            for batch in 2..=5 {
                stage.push(batch);
            }
            stage.results.send(Ok(())).unwrap();
            assert!(stage.wait(1));

            let mut written = stage.begun.recv_timeout(DEADLINE).unwrap();
            assert!(!stage.look(2), "they were written behind the first sync");
            stage.results.send(Ok(())).unwrap();
            // One sync covers the records 2 to 5. It may take more if this thread or the writer gets no processor time
            // for long.
            while written < 5 {
                written = stage.begun.recv_timeout(DEADLINE).unwrap();
                stage.results.send(Ok(())).unwrap();
            }
            (2..=5).for_each(|batch| assert!(stage.wait(batch)));
        });
        let syncs = stage.outlet.reading().sync_seconds.count;
        assert!((2..5).contains(&syncs), "{syncs} syncs");
        assert_eq!([0; LEVEL_CLASSES], stage.outlet.reading().not_durable);
    }

    #[test]
    fn records_whose_sync_failed_permanently_are_counted_and_block_no_call() {
        let stage = stage(SyncRule::Always, WaitRule::Every);
        stage.push(1);
        stage.runs(|| {
            stage.begun.recv_timeout(DEADLINE).unwrap();
            stage.results.send(failed(true)).unwrap();
            assert!(!stage.wait(1));
            stage.push(2);
            stage.begun.recv_timeout(DEADLINE).unwrap();
            stage.results.send(Ok(())).unwrap();
            assert!(stage.wait(2), "the next one is not touched by it");
        });

        assert_eq!([0, 0, 1, 0, 0, 0], stage.outlet.reading().not_durable);
        assert_eq!(2, stage.outlet.counts().written[2], "both are written");
        assert!(stage.outlet.sync_error().is_some(), "no later sync says that the first is on the disk");
    }

    #[test]
    fn a_failed_sync_is_retried_until_it_succeeds_even_if_nothing_is_written() {
        let stage = stage(SyncRule::Asked, WaitRule::Checkpoint(1));
        stage.push(1);
        stage.pending_sync.begin();
        stage.runs(|| {
            for _ in 0..2 {
                stage.results.send(failed(false)).unwrap();
            }
            assert!(!stage.wait(1), "no call is kept state for a disk that fails");
            assert!(stage.outlet.sync_error().is_some() && stage.outlet.is_unsynced());
            for _ in 0..2 {
                stage.begun.recv_timeout(DEADLINE).unwrap();
            }
            stage.results.send(Ok(())).unwrap();
            let end = Instant::now() + DEADLINE;
            while stage.outlet.is_unsynced() && Instant::now() < end {
                std::thread::yield_now();
            }
            assert!(!stage.outlet.is_unsynced());
        });

        assert_eq!(None, stage.outlet.sync_error());
        assert_eq!([0, 0, 1, 0, 0, 0], stage.outlet.reading().not_durable, "that it was late stays counted");
    }

    #[test]
    fn an_idle_writer_syncs_its_writes_when_a_call_starts_to_wait() {
        let stage = stage(SyncRule::Asked, WaitRule::Checkpoint(1));
        stage.push(1);
        stage.pending_sync.begin();
        stage.runs(|| {
            let written = Instant::now() + DEADLINE;
            while stage.outlet.counts().written[2] == 0 && Instant::now() < written {
                std::thread::yield_now();
            }
            assert!(stage.begun.try_recv().is_err(), "nobody has asked");
            stage.results.send(Ok(())).unwrap();
            assert!(stage.wait(1));
        });
    }

    #[test]
    fn a_requested_sync_is_answered_with_its_outcome() {
        let stage = stage(SyncRule::Asked, WaitRule::Checkpoint(100));
        stage.push(1);
        stage.runs(|| {
            let mut results = VecDeque::from([failed(true), Ok(())]);
            for expected in [false, true] {
                let (number, _) = stage.outlet.request_sync().unwrap();
                stage.begun.recv_timeout(DEADLINE).unwrap();
                assert_eq!(None, stage.outlet.synced(number));
                stage.results.send(results.pop_front().unwrap()).unwrap();
                let end = Instant::now() + DEADLINE;
                while stage.outlet.synced(number).is_none() && Instant::now() < end {
                    std::thread::yield_now();
                }
                assert_eq!(Some(expected), stage.outlet.synced(number));
            }
        });
    }

    #[test]
    fn a_retired_sink_is_synced_before_it_is_closed() {
        let stage = stage(SyncRule::Every(Duration::from_secs(3600)), WaitRule::Levels);
        stage.push(1);
        stage.outlet.close_when_written(7);
        stage.outlet.answer(7);
        stage.results.send(Ok(())).unwrap();
        stage.outlet.run(|| (), || Duration::MAX);

        assert_eq!(1, stage.begun.try_recv().unwrap());
        assert!(stage.wait(1));
        assert!(stage.outlet.is_closed());
    }
}
