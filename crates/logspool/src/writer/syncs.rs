//! The sync rule of sinks, and the records written to a sink since its last sync.

use std::sync::Arc;
use std::time::Duration;

use logspool_lanes::segment::layout::LEVEL_CLASSES;

use crate::durable::PendingSync;

/// When a sink is synced although no call requested a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncRule {
    /// Never. A sink is then synced only when a call waits for it.
    Asked,
    /// This long after the oldest unsynced write, and when a call waits for it.
    Every(Duration),
    /// Whenever the queue of the sink has become empty.
    Always,
}

/// How sinks are made durable. All sinks of a process share these settings.
#[derive(Debug, Clone)]
pub struct Syncs {
    /// When to sync although no call requested it.
    pub rule: SyncRule,
    /// The calls that wait for durability. `None` if the options allow no such calls.
    pub pending_sync: Option<Arc<PendingSync>>,
}

impl Syncs {
    /// Whether batches are tracked until they are synced.
    pub fn tracks(&self) -> bool {
        self.rule != SyncRule::Asked || self.pending_sync.is_some()
    }

    /// Whether calls are waiting for durability.
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
    /// Time at which the oldest unsynced record was written.
    pub(super) since: u64,
    /// `requested`, `answered`, `failed`: numbers of the newest requested sync, the newest answered one, and the newest
    /// failed one.
    pub(super) requested: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// Time at which a failed sync is retried; 0 if there is nothing to retry.
    pub(super) retry_at: u64,
    /// Whether a sync has failed and its data is lost, so that no later sync can repair it.
    pub(super) is_lost: bool,
    /// Whether a sync is running.
    pub(super) is_under_way: bool,
}
