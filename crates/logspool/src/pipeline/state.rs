//! What the pipeline of a process image consists of, and questions that its fields answer alone.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use logspool_lanes::blob::Blobs;
use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::Table;
use logspool_sys::progress;

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
    /// Where it is.
    pub place: QueuePlace,
    /// Why; empty for the best place, and where the user chose.
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
    pub(super) collector_runs: AtomicBool,
    pub(super) leave: AtomicBool,
    pub(super) batching: Mutex<()>,
    pub(super) requested: AtomicU64,
    pub(super) answered: AtomicU64,
    pub(super) saturated: AtomicBool,
    /// Set by a caller that found the collector without a turn for too long.
    pub(super) standstill: AtomicBool,
    pub(super) refusals: AtomicU64,
    /// Set once the end of the process showed what was left.
    pub(super) fallen_back: AtomicBool,
    /// The files of its segment were removed, where it had some.
    pub(super) removed: AtomicBool,
    /// Another one has taken its place.
    pub(super) is_past: AtomicBool,
    /// The one that was put aside before this one: what can be reached is no leak to those who look for leaks.
    pub(super) before: OnceLock<&'static Pipeline>,
    /// Of drains.
    pub(super) lateness: Lateness,
    pub(super) waits: WaitMeters,
    /// Where stalled sinks leave records on disk, if the user chose a folder.
    pub(super) spooler: Option<Spooler>,
    /// Delivers what dead relatives left.
    pub(super) watcher: Watcher,
    /// A writer thread that waits for a sink.
    pub(super) idle_writer: Arc<IdleWriter>,
    /// What makes records durable.
    pub(super) syncs: Syncs,
    pub(super) number: u64,
    /// Process that it was made in.
    pub(super) process: u32,
}

impl Pipeline {
    /// Held while a batch is made: a snapshot under it sees no half-made batch.
    pub(crate) fn batching(&self) -> MutexGuard<'_, ()> {
        self.batching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Large records.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// The outlets now, by place in the table of sinks.
    pub(crate) fn outlets(&self) -> Vec<Option<Arc<Outlet>>> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The outlet of a sink. `None`: there is no such sink, or another one in its place.
    pub(crate) fn outlet(&self, sink: u32) -> Option<Arc<Outlet>> {
        let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        outlets.get(Table::Sinks.slot(sink))?.clone().filter(|outlet| outlet.id == sink)
    }

    /// Outlets that have something to write.
    pub(crate) fn outlets_at_work(&self) -> usize {
        self.outlets().iter().flatten().filter(|outlet| outlet.head_accepted() > 0).count()
    }

    /// Newest flush that was asked for.
    pub(crate) fn requested_ticket(&self) -> u64 {
        // Acquire pairs with the Release in `flush`: what was pushed before the request is seen after it.
        self.requested.load(Ordering::Acquire)
    }

    /// Everything before a flush is written everywhere.
    pub(crate) fn answer_ticket(&self, ticket: u64) {
        self.answered.fetch_max(ticket, Ordering::Release);
        progress::note();
    }

    /// Tells callers whether waiting makes sense.
    pub(crate) fn set_saturated(&self, saturated: bool) {
        if self.saturated.load(Ordering::Relaxed) != saturated {
            self.saturated.store(saturated, Ordering::Relaxed);
        }
    }

    /// Records refused for want of room, ever.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Sends ERROR and above of what an outlet could not write in time to standard error.
    pub(crate) fn fall_back_queued(&self, outlet: &Outlet) {
        outlet.show_queued(|chunk| self.fall_back(outlet, chunk));
    }

    /// Sends ERROR and above of a chunk that nothing takes to standard error.
    pub(crate) fn fall_back(&self, outlet: &Outlet, chunk: &Chunk) {
        if settings::options().fallback == Fallback::Stderr {
            crate::fallback::emit(outlet, chunk);
        }
    }

    /// Number that ids of this pipeline were made under.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it is that of the process that this one was forked from.
    pub(super) fn is_parents(&self) -> bool {
        self.process != std::process::id()
    }
}
