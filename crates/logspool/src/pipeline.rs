//! The pipeline of the process, from lanes to sinks, as the language bindings see it.
//!
//! It is the whole interface for a binding: `push` and `make_room` are the hot path, the rest is configuration,
//! barriers and shutdown. The pipeline (segment, outlets, threads) begins with the first definition or record. A forked
//! child begins a new one and never touches the parent's: it waits for no lock of the parent, and frees no memory of
//! it.

mod admission;
mod crash;
mod door;
mod durability;
mod flushing;
mod life;
mod options;
mod outlets;
mod place;
mod recovery;
mod refused;
mod relief;
mod routes;
mod signals;
mod spooling;
mod watch;
mod writers;

pub use admission::{Push, Refusal, Room, Waiter, make_room, push, refuse};
pub use crash::{install_crash_drain, remove_crash_drain};
pub use door::{end, go_on, settle};
pub use durability::{DurableWait, SyncWait, await_durable, flush_durable};
pub use flushing::Flush;
pub use life::{
    after_fork_in_child, after_fork_in_parent, before_fork, configure, drain, empty, flush, flush_local, generation,
    is_running, watch_after_fork,
};
pub use options::{Durability, Fallback, Options, OptionsError, QUEUE_BYTES};
pub use outlets::{close_sink, define_format, define_route, define_site, open_sink, retire_sink, snapshot, turns};
pub use place::LEAST_FREE_BYTES;
pub use recovery::{
    RecoveryCounts, opened_anew, orphans, program_begins, recover, recover_targets, recovery_counts, sidecars,
};
pub use refused::show_refused;
pub use signals::install_signal_drain;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use logspool_lanes::blob::Blobs;
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::Table;
use logspool_sys::progress;

use crate::chunk::Chunk;
use crate::collector::Collector;
use crate::lateness::Lateness;
use crate::meters::WaitMeters;
use crate::overflow::Budget;
use crate::writer::{Outlet, Syncs};
use routes::Routes;
use spooling::Spooler;
use watch::Watcher;

/// Segment, outlets and threads of one process image.
#[derive(Debug)]
pub struct Pipeline {
    segment: Arc<Segment>,
    place: place::Chosen,
    budget: Arc<Budget>,
    blobs: Blobs,
    outlets: Mutex<Vec<Option<Arc<Outlet>>>>,
    routes: Mutex<Routes>,
    collector: Mutex<Option<Box<Collector>>>,
    collector_runs: AtomicBool,
    leave: AtomicBool,
    batching: Mutex<()>,
    requested: AtomicU64,
    answered: AtomicU64,
    saturated: AtomicBool,
    /// Set by a caller that saw the collector make no turn for `STARVED_PATIENCE`.
    standstill: AtomicBool,
    refusals: AtomicU64,
    /// Set when the queued ERROR records were shown on standard error at the end of the process.
    fallen_back: AtomicBool,
    /// Whether the segment had files and they were removed.
    removed: AtomicBool,
    /// Whether another pipeline has replaced this one.
    is_past: AtomicBool,
    /// The pipeline that was replaced before this one. Keeps it reachable, so that leak checkers do not report it.
    before: OnceLock<&'static Pipeline>,
    /// Time already spent on drains that timed out.
    lateness: Lateness,
    waits: WaitMeters,
    /// Spools for the records of stalled sinks, if the user chose a folder.
    spooler: Option<Spooler>,
    /// Delivers the records of dead processes while this one lives.
    watcher: Watcher,
    /// The writer thread that waits for its next sink, if any.
    idle_writer: Arc<writers::IdleWriter>,
    /// When sinks are synced, and the calls that wait for a sync.
    syncs: Syncs,
    number: u64,
    /// Id of the process that made the pipeline.
    process: u32,
}

impl Pipeline {
    /// Held while a batch is made, so that a snapshot under it sees no half-made batch.
    pub(crate) fn batching(&self) -> MutexGuard<'_, ()> {
        self.batching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files of large records.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The current outlets, by slot in the sink table.
    pub(crate) fn outlets(&self) -> Vec<Option<Arc<Outlet>>> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The outlet of a sink. `None` if there is no such sink, or if another one has its slot.
    pub(crate) fn outlet(&self, sink: u32) -> Option<Arc<Outlet>> {
        let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        outlets.get(Table::Sinks.slot(sink))?.clone().filter(|outlet| outlet.id == sink)
    }

    /// Number of outlets that have ever got records.
    pub(crate) fn outlets_at_work(&self) -> usize {
        self.outlets().iter().flatten().filter(|outlet| outlet.head_accepted() > 0).count()
    }

    /// Ticket of the newest flush request.
    pub(crate) fn requested_ticket(&self) -> u64 {
        // Acquire pairs with the Release in `request`: records pushed before the request are visible after this load.
        self.requested.load(Ordering::Acquire)
    }

    /// Notes that all records queued before the flush with this ticket are written to every sink.
    pub(crate) fn answer_ticket(&self, ticket: u64) {
        self.answered.fetch_max(ticket, Ordering::Release);
        progress::note();
    }

    /// Sets whether every sink is stuck with the overflow full, in which case callers wait only briefly.
    pub(crate) fn set_saturated(&self, saturated: bool) {
        if self.saturated.load(Ordering::Relaxed) != saturated {
            self.saturated.store(saturated, Ordering::Relaxed);
        }
    }

    /// Records refused for lack of room since the pipeline began.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Shows the ERROR records and above that an outlet could not write in time on standard error.
    pub(crate) fn fall_back_queued(&self, outlet: &Outlet) {
        outlet.show_queued(|chunk| self.fall_back(outlet, chunk));
    }

    /// Shows the ERROR records and above of a chunk that cannot be written on standard error.
    pub(crate) fn fall_back(&self, outlet: &Outlet, chunk: &Chunk) {
        if life::options().fallback == Fallback::Stderr {
            crate::fallback::emit(outlet, chunk);
        }
    }
}
