//! The interface through which the collector uses its pipeline.

use std::sync::{Arc, MutexGuard};

use crate::chunk::Chunk;
use crate::writer::Outlet;

/// A pipeline, as seen by its collector.
pub trait CollectorHost {
    /// Locks out snapshots and new definitions while a batch is made, so that they see no half-made batch.
    fn batching(&self) -> MutexGuard<'_, ()>;

    /// The current outlets, by slot in the sink table.
    fn outlets(&self) -> Vec<Option<Arc<Outlet>>>;

    /// Ticket of the newest flush request.
    fn requested_ticket(&self) -> u64;

    /// Notes that all records queued before the flush with this ticket are written to every sink.
    fn answer_ticket(&self, ticket: u64);

    /// Sets whether every sink is stuck and the overflow is full. While this is set, callers wait only briefly.
    fn set_saturated(&self, saturated: bool);

    /// Records refused because the queue was full, of which no message has told yet.
    fn untold_refusals(&self) -> u64;

    /// Notes that a message tells of so many refusals.
    fn note_told(&self, refusals: u64);

    /// Bytes that wait for outputs, in the overflow and in the fullest spool, and their limit.
    fn depth(&self) -> (u64, u64);

    /// Starts a thread that writes the records of an outlet. The outlet must be marked as running.
    fn start_writer(&self, outlet: Arc<Outlet>);

    /// Starts the spool thread if it does not run.
    fn ensure_spooler(&self);

    /// Shows on standard error the records of ERROR and above of a chunk that no sink accepts.
    fn fall_back(&self, outlet: &Outlet, chunk: &Chunk);
}
