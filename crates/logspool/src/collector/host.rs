//! What the collector asks of the pipeline that it belongs to.

use std::sync::{Arc, MutexGuard};

use crate::chunk::Chunk;
use crate::writer::Outlet;

/// The pipeline as its collector sees it.
pub trait CollectorHost {
    /// Locks out snapshots and new definitions while a batch is made: they see no half-made batch.
    fn batching(&self) -> MutexGuard<'_, ()>;

    /// The current outlets, by slot in the sink table.
    fn outlets(&self) -> Vec<Option<Arc<Outlet>>>;

    /// Ticket of the newest flush request.
    fn requested_ticket(&self) -> u64;

    /// Notes that all records queued before the flush with this ticket are written to every sink.
    fn answer_ticket(&self, ticket: u64);

    /// Sets whether every sink is stuck with the overflow full, in which case callers wait only briefly.
    fn set_saturated(&self, saturated: bool);

    /// Records refused because the queue was full, since the pipeline began.
    fn refusals(&self) -> u64;

    /// Has a thread write what an outlet holds. The outlet was marked as one whose thread runs.
    fn start_writer(&self, outlet: Arc<Outlet>);

    /// Starts the thread of the spools if it does not run.
    fn ensure_spooler(&self);

    /// Sends ERROR and above of a chunk that no sink takes to standard error.
    fn fall_back(&self, outlet: &Outlet, chunk: &Chunk);
}
