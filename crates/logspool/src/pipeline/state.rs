//! What the pipeline of a process image consists of, and questions that its fields answer alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use logspool_lanes::blob::Blobs;
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::Table;
use logspool_sys::crossing::Runs;
use logspool_sys::progress;
use logspool_sys::published::{Counted, Published};

use super::idle_writer::IdleWriter;
use super::options::Fallback;
use super::routes::Routes;
use super::settings;
use super::spooler::Spooler;
use super::watcher::Watcher;
use crate::chunk::Chunk;
use crate::collector::Collector;
use crate::lateness::Lateness;
use crate::meters::WaitMeters;
use crate::overflow::Budget;
use crate::stats::QueuePlace;
use crate::writer::{Outlet, Syncs};

/// Where the queue is, and why not at a better place.
#[derive(Debug)]
pub(super) struct Chosen {
    /// Where the queue is.
    pub place: QueuePlace,
    /// Why it is not at a better place; empty for the best place, and if the user chose it.
    pub reason: String,
}

/// Segment, outlets and threads of one process image.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) segment: Arc<Segment>,
    pub(super) place: Chosen,
    pub(super) budget: Arc<Budget>,
    pub(super) blobs: Blobs,
    pub(super) outlets: Mutex<Vec<Option<Arc<Outlet>>>>,
    pub(super) routes: Mutex<Routes>,
    pub(super) collector: Mutex<Option<Box<Collector>>>,
    pub(super) collector_runs: Runs,
    pub(super) leave: AtomicBool,
    pub(super) batching: Mutex<()>,
    pub(super) requested: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) saturated: AtomicBool,
    /// Set by a caller that saw the collector make no turn for `STARVED_PATIENCE`.
    pub(super) standstill: AtomicBool,
    pub(super) refusals: AtomicU64,
    /// Set when the queued ERROR records were shown on standard error at the end of the process.
    pub(super) fallen_back: AtomicBool,
    /// Whether the segment had files and they were removed.
    pub(super) removed: AtomicBool,
    /// Whether another pipeline has replaced this one.
    pub(super) is_past: AtomicBool,
    /// The pipeline that was replaced before this one. Keeps it reachable, so that leak checkers do not report it.
    pub(super) before: OnceLock<&'static Pipeline>,
    /// Time already spent on drains that timed out.
    pub(super) lateness: Lateness,
    pub(super) waits: WaitMeters,
    /// Spools for the records of stalled sinks, if the user chose a folder.
    pub(super) spooler: Option<Spooler>,
    /// Delivers the records of dead processes while this one lives.
    pub(super) watcher: Watcher,
    /// The writer thread that waits for its next sink, if any.
    pub(super) idle_writer: Arc<IdleWriter>,
    /// When sinks are synced, and the calls that wait for a sync.
    pub(super) syncs: Syncs,
    pub(super) number: u64,
    /// Id of the process that made the pipeline.
    pub(super) process: u32,
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

    /// Number of outlets that have records to write.
    pub(crate) fn outlets_at_work(&self) -> usize {
        self.outlets().iter().flatten().filter(|outlet| outlet.head_accepted() > 0).count()
    }

    /// Ticket of the newest flush request.
    pub(crate) fn requested_ticket(&self) -> u64 {
        // Pairs with `advance_both_ways` in `request`: records pushed before the request are visible after this load.
        self.requested.observe()
    }

    /// Notes that all records queued before the flush with this ticket are written to every sink.
    pub(crate) fn answer_ticket(&self, ticket: u64) {
        self.answered.raise(ticket);
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
        if settings::options().fallback == Fallback::Stderr {
            crate::fallback::emit(outlet, chunk);
        }
    }

    /// Number under which the ids of this pipeline are defined.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether this is the pipeline of the parent, made before the fork.
    pub(super) fn is_parents(&self) -> bool {
        self.process != std::process::id()
    }
}
