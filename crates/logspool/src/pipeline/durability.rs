//! Calls that wait until their record is durable, and flushes that wait for all.
//!
//! Durable means synced in the target file, or confirmed by the service; what has no disk behind it is durable when it
//! is written. A call waits for its own record, not for those of other threads.

use std::sync::Arc;
use std::time::Instant;

use super::options::{Durability, Options};
use super::{Pipeline, admission};
use crate::durable::{Undurable, Wait};
use crate::queue::producer::wake_collector;
use crate::writer::{Outlet, SyncRule, Syncs};

/// The waiting calls and the rule for the sinks that the options ask for.
pub(super) fn syncs(options: &Options) -> Syncs {
    let wait = match options.durability {
        Durability::Memory | Durability::Process | Durability::Interval => Wait::Levels,
        Durability::Checkpoint => Wait::Checkpoint(options.checkpoint_every),
        Durability::Sync => Wait::Every,
    };
    let rule = match options.durability {
        Durability::Memory | Durability::Process => SyncRule::Asked,
        Durability::Interval | Durability::Checkpoint => SyncRule::Every(options.sync_interval),
        Durability::Sync => SyncRule::Always,
    };
    let waits = wait != Wait::Levels || !options.durable_levels.is_empty();
    let undurable = waits.then(|| Arc::new(Undurable::new(wait, options.durable_levels.clone())));
    Syncs { rule, undurable }
}

/// Waits as [`super::Push::Undurable`] asks, at most for `durability_timeout`.
///
/// Call it after that push, on the same thread, without holding an interpreter lock. Returns whether the record is
/// durable, or needs not be; where not, the call was counted.
pub fn await_durable(level: u16) -> bool {
    let Some((pipeline, lane, position)) = admission::last_push() else { return true };
    let Some(undurable) = &pipeline.syncs.undurable else { return true };
    let deadline = Instant::now().checked_add(super::life::options().durability_timeout);
    undurable.wait(lane, position, level, deadline, || {
        pipeline.ensure_threads();
        wake_collector(&pipeline.segment.header().sleeping);
    })
}

/// As [`super::flush`], but waits until everything is durable.
///
/// What was counted as not durable, because its sync had failed for good, is not waited for again. Call without an
/// interpreter lock.
pub fn flush_durable(sink: Option<u32>, timeout: Option<std::time::Duration>) -> bool {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let Some(pipeline) = super::life::existing() else { return true };
    if !super::flush(sink, timeout) {
        return false;
    }
    match sink {
        None => pipeline.sync_outlets(&pipeline.outlets().into_iter().flatten().collect::<Vec<_>>(), deadline),
        Some(sink) => pipeline.outlet(sink).is_none_or(|outlet| pipeline.sync_outlets(&[outlet], deadline)),
    }
}

impl Pipeline {
    /// Syncs what is written. Returns whether all of it is durable.
    pub(super) fn sync_outlets(&self, outlets: &[Arc<Outlet>], deadline: Option<Instant>) -> bool {
        let asked: Vec<_> = outlets
            .iter()
            .filter_map(|outlet| {
                let (number, start) = outlet.request_sync()?;
                if start {
                    self.start_writer(outlet.clone());
                }
                Some((outlet, number))
            })
            .collect();
        self.wait(deadline, || asked.iter().all(|(outlet, number)| outlet.synced(*number).is_some()))
            && asked.iter().all(|(outlet, number)| outlet.synced(*number) == Some(true))
    }

    /// Syncs what a mode promises to sync without being asked: before a sink is closed, and at the end.
    pub(super) fn sync_promised(&self, outlets: &[Arc<Outlet>], deadline: Option<Instant>) {
        if self.syncs.tracks() {
            let unsynced: Vec<_> = outlets.iter().filter(|outlet| outlet.is_unsynced()).cloned().collect();
            self.sync_outlets(&unsynced, deadline);
        }
    }

    /// Moves whenever a call begins to wait until its record is durable.
    pub(crate) fn durable_calls(&self) -> u64 {
        self.syncs.undurable.as_ref().map_or(0, |undurable| undurable.calls())
    }

    /// The calls that wait until their record is durable, where some do.
    pub(crate) fn undurable(&self) -> Option<&Undurable> {
        self.syncs.undurable.as_deref()
    }
}
