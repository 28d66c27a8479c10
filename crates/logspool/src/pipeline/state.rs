//! The fields of a pipeline, and the methods that need none of the later modules.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use logspool_lanes::blob::Blobs;
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::Table;
use logspool_sys::crossing::RunningFlag;

use super::idle_writer::IdleWriter;
use super::options::Fallback;
use super::route_table::Routes;
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

/// The chosen place of the queue, and why a better place was not used.
#[derive(Debug)]
pub(super) struct ChosenPlace {
    /// Where the queue is.
    pub place: QueuePlace,
    /// Why the queue is not at a better place. Empty if it is at the best place, or if the user chose the place.
    pub reason: String,
}

/// Segment, outlets and threads of one process image.
#[derive(Debug)]
pub struct Pipeline {
    pub(super) segment: Arc<Segment>,
    pub(super) place: ChosenPlace,
    pub(super) budget: Arc<Budget>,
    pub(super) blobs: Arc<Blobs>,
    pub(super) outlets: Mutex<Vec<Option<Arc<Outlet>>>>,
    pub(super) routes: Mutex<Routes>,
    /// The formats by their encoded definition.
    pub(super) formats: Mutex<HashMap<Vec<u8>, u32>>,
    pub(super) collector: Mutex<Option<Box<Collector>>>,
    pub(super) collector_runs: RunningFlag,
    pub(super) leave: AtomicBool,
    pub(super) batching: Mutex<()>,
    pub(super) requested: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) saturated: AtomicBool,
    /// Set by a caller that saw the collector make no turn for `STARVED_TIMEOUT`.
    pub(super) standstill: AtomicBool,
    /// Number of calls that wait for room now.
    pub(super) waiting: AtomicU32,
    pub(super) refusals: AtomicU64,
    /// How many of the refusals a message of the collector has told.
    pub(super) refusals_told: AtomicU64,
    /// Set when the queued records of ERROR and above were shown on standard error at the end of the process.
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
    /// Delivers the records of dead processes while this process lives.
    pub(super) watcher: Watcher,
    /// The writer thread that waits for its next sink, if any.
    pub(super) idle_writer: Arc<IdleWriter>,
    /// The rule for when sinks are synced, and the table of calls that wait for a sync.
    pub(super) syncs: Syncs,
    pub(super) number: u64,
    /// Id of the process that made the pipeline.
    pub(super) process: u32,
}

impl Pipeline {
    /// Locks the making of batches. A snapshot taken under this lock sees no half-made batch.
    pub(crate) fn batching(&self) -> MutexGuard<'_, ()> {
        self.batching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current outlets, by slot in the sink table.
    pub(crate) fn outlets(&self) -> Vec<Option<Arc<Outlet>>> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The outlet that writes the records of a sink. Returns `None` if there is no such sink, or if another sink has its
    /// slot.
    pub(crate) fn outlet(&self, sink: u32) -> Option<Arc<Outlet>> {
        let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        let own = outlets.get(Table::Sinks.slot(sink)).and_then(Option::as_ref).filter(|outlet| outlet.id == sink);
        own.or_else(|| outlets.iter().flatten().find(|outlet| outlet.member(sink).is_some())).cloned()
    }

    /// Shows on standard error the records of ERROR and above that an outlet could not write in time.
    pub(crate) fn fall_back_queued(&self, outlet: &Outlet) {
        outlet.show_queued(|chunk| self.fall_back(outlet, chunk));
    }

    /// Shows on standard error the records of ERROR and above of a chunk that cannot be written.
    pub(crate) fn fall_back(&self, outlet: &Outlet, chunk: &Chunk) {
        if settings::options().fallback == Fallback::Stderr {
            crate::fallback::emit(&outlet.traits, &outlet.definition, chunk);
        }
    }

    /// The number under which the ids of this pipeline are defined.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether this pipeline was made by a parent process before the fork.
    pub(super) fn belongs_to_parent(&self) -> bool {
        self.process != std::process::id()
    }
}
