//! The process's one line from lanes to sinks, as the shells (Python, C) see it.
//!
//! Everything a shell may call is here; `push` and `make_room` are the hot path, the rest is configuration,
//! barriers and ends. The pipeline (segment, outlets, threads) begins with the first definition or record,
//! and anew in a forked child, which never touches anything of its parent's: no lock of the parent is
//! waited for, nothing of it is freed.

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
    /// Set by a caller that found the collector without a turn for too long.
    standstill: AtomicBool,
    refusals: AtomicU64,
    /// Set once the end of the process showed what was left.
    fallen_back: AtomicBool,
    /// The files of its segment were removed, where it had some.
    removed: AtomicBool,
    /// Another one has taken its place.
    is_past: AtomicBool,
    /// The one that was put aside before this one: what can be reached is no leak to those who look for leaks.
    before: OnceLock<&'static Pipeline>,
    /// Of drains.
    lateness: Lateness,
    waits: WaitMeters,
    /// Where stalled sinks leave records on disk, if the user chose a folder.
    spooler: Option<Spooler>,
    /// Delivers what dead relatives left.
    watcher: Watcher,
    /// A writer thread that waits for a sink.
    idle_writer: Arc<writers::IdleWriter>,
    /// What makes records durable.
    syncs: Syncs,
    number: u64,
    /// Process that it was made in.
    process: u32,
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
        if life::options().fallback == Fallback::Stderr {
            crate::fallback::emit(outlet, chunk);
        }
    }
}
