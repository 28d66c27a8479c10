//! Calls that wait until their own record is durable, and flushes that wait until all records are.
//!
//! Durable means synced in the target file, or confirmed by the service. For a sink without a disk, a written record is
//! durable. A call does not wait for the records of other threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use logspool_lanes::queue::producer::wake_collector;

use super::admission;
use super::settings::options;
use super::slot::existing;
use super::state::Pipeline;
use super::waiting::deadline;
use crate::durable::PendingSync;
use crate::writer::Outlet;

/// Waits until the record of a push that returned [`super::Push::MustWaitForSync`] is durable, at most for
/// `durability_timeout`.
///
/// Call it after that push, on the same thread, without an interpreter lock. Returns whether the record is durable or
/// need not be durable. If this returns false, the call is counted as not durable.
pub fn await_durable(level: u16) -> bool {
    DurableWait::begin(level).is_none_or(|wait| wait.wait_slice(Duration::MAX) == Some(true))
}

/// The wait of [`await_durable`] in slices, for language bindings that must check for signals between the slices.
#[derive(Debug)]
pub struct DurableWait {
    pipeline: &'static Pipeline,
    pending_sync: &'static PendingSync,
    lane: usize,
    position: u64,
    level: u16,
    deadline: Option<Instant>,
}

impl DurableWait {
    /// Begins to wait for the record that this thread pushed last. Returns `None` if that record need not be durable.
    pub fn begin(level: u16) -> Option<Self> {
        let (pipeline, lane, position) = admission::last_push()?;
        let pending_sync = pipeline.pending_sync()?;
        let deadline = deadline(Some(options().durability_timeout));
        Some(Self { pipeline, pending_sync, lane, position, level, deadline })
    }

    /// Waits at most for `share`. Returns whether the record is durable, or `None` if that is not known yet and there
    /// is time left.
    ///
    /// After a `Some` the wait is over, and a record that is not durable has been counted. Call it without an
    /// interpreter lock.
    pub fn wait_slice(&self, share: Duration) -> Option<bool> {
        if self.pipeline.belongs_to_parent() {
            return Some(true);
        }
        let until = [deadline(Some(share)), self.deadline].into_iter().flatten().min();
        let durable = self.pending_sync.wait_until(self.lane, self.position, self.level, until, || {
            self.pipeline.ensure_threads();
            wake_collector(&self.pipeline.segment.header().sleeping);
        });
        if durable.is_none() && self.deadline.is_none_or(|deadline| Instant::now() < deadline) {
            return None;
        }
        if durable != Some(true) {
            self.count_not_durable();
        }
        Some(durable == Some(true))
    }

    /// Counts the call as one that returned although its record was not durable.
    pub fn count_not_durable(&self) {
        self.pending_sync.count_not_durable(self.level);
    }
}

/// Works as [`super::flush`], but waits until all records queued before the call are durable.
///
/// Records whose sync failed were already counted as not durable. The records of these that the sink has kept are
/// synced once more; this call does not wait for the others. Call it without an interpreter lock.
pub fn flush_durable(sink: Option<u32>, timeout: Option<Duration>) -> bool {
    let deadline = deadline(timeout);
    super::flush(sink, timeout)
        && SyncWait::begin(sink).is_none_or(|sync| sync.wait_until(deadline) && sync.succeeded())
}

/// Second half of [`flush_durable`]: requests syncs of the written records and waits for them in slices.
#[derive(Debug)]
pub struct SyncWait {
    pipeline: &'static Pipeline,
    /// The outlets, each with the number of its requested sync.
    asked: Vec<(Arc<Outlet>, u64)>,
}

impl SyncWait {
    /// Requests a sync of one sink, or of all sinks if `sink` is `None`. Returns `None` if there is no such sink or no
    /// pipeline.
    pub fn begin(sink: Option<u32>) -> Option<Self> {
        let pipeline = existing()?;
        let outlets: Vec<_> = match sink {
            None => pipeline.outlets().into_iter().flatten().collect(),
            Some(sink) => vec![pipeline.outlet(sink)?],
        };
        Some(pipeline.request_sync(&outlets))
    }

    /// Waits at most for `share`. Returns whether every requested sync has succeeded or failed. Call it without an
    /// interpreter lock.
    pub fn wait(&self, share: Duration) -> bool {
        self.wait_until(deadline(Some(share)))
    }

    /// Whether all syncs succeeded. Call it after `wait` returned true.
    pub fn succeeded(&self) -> bool {
        let is_durable = |(outlet, number): &(Arc<Outlet>, u64)| outlet.synced(*number) == Some(true);
        self.pipeline.belongs_to_parent() || self.asked.iter().all(is_durable)
    }

    fn wait_until(&self, deadline: Option<Instant>) -> bool {
        let has_outcome = |(outlet, number): &(Arc<Outlet>, u64)| outlet.synced(*number).is_some();
        self.pipeline.wait(deadline, || !self.pipeline.is_current() || self.asked.iter().all(has_outcome))
    }
}

impl Pipeline {
    fn request_sync(&'static self, outlets: &[Arc<Outlet>]) -> SyncWait {
        let ask = |outlet: &Arc<Outlet>| {
            let (number, start) = outlet.request_sync()?;
            if start {
                self.start_writer(outlet.clone());
            }
            Some((outlet.clone(), number))
        };
        SyncWait { pipeline: self, asked: outlets.iter().filter_map(ask).collect() }
    }

    /// If the durability mode promises syncs, syncs these outlets. Called before a sink is closed and at the end of the
    /// process.
    pub(super) fn sync_promised(&'static self, outlets: &[Arc<Outlet>], deadline: Option<Instant>) {
        if self.syncs.tracks() {
            let unsynced: Vec<_> = outlets.iter().filter(|outlet| outlet.is_unsynced()).cloned().collect();
            self.request_sync(&unsynced).wait_until(deadline);
        }
    }

    /// The table of calls that wait for durability, if the options allow such waits.
    pub(crate) fn pending_sync(&self) -> Option<&PendingSync> {
        self.syncs.pending_sync.as_deref()
    }
}
