//! The sync rule of sinks, and the records written to a sink since its last sync.

use std::sync::Arc;
use std::time::Duration;

use logspool_lanes::segment::layout::LEVEL_CLASSES;

use crate::durable::PendingSync;

/// When a sink is synced without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncRule {
    /// Only when a call waits for it.
    Asked,
    /// In addition, this long after the oldest unsynced write.
    Every(Duration),
    /// Whenever its queue has become empty.
    Always,
}

/// How sinks are made durable; the same for all sinks of a process.
#[derive(Debug, Clone)]
pub struct Syncs {
    /// When to sync without a request.
    pub rule: SyncRule,
    /// Calls that wait for durability, if the options allow such waits.
    pub pending_sync: Option<Arc<PendingSync>>,
}

impl Syncs {
    /// Whether batches are tracked until they are synced.
    pub fn tracks(&self) -> bool {
        self.rule != SyncRule::Asked || self.pending_sync.is_some()
    }

    /// Whether calls are waiting.
    pub fn has_waiters(&self) -> bool {
        self.pending_sync.as_ref().is_some_and(|pending_sync| pending_sync.has_waiters())
    }
}

/// Records written to a sink since its last sync.
#[derive(Debug, Default)]
pub(super) struct UnsyncedBatches {
    pub(super) batches: Vec<u64>,
    pub(super) counts: [u64; LEVEL_CLASSES],
    pub(super) bytes: usize,
    /// When the oldest of them was written.
    pub(super) since: u64,
    /// Numbers of the newest requested sync, the newest answered one, and the newest failed one.
    pub(super) requested: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// When a failed sync is retried; 0 if there is nothing to retry.
    pub(super) retry_at: u64,
    /// Whether a sync has failed whose data is lost, so that no later sync repairs it.
    pub(super) is_lost: bool,
    /// Whether a sync is under way.
    pub(super) is_under_way: bool,
}
