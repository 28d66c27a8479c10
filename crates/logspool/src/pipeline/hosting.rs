//! Implements [`CollectorHost`], the interface that the collector uses, for the pipeline.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use logspool_sys::progress;
use logspool_sys::published::{Counted, Published};

use super::state::Pipeline;
use crate::chunk::Chunk;
use crate::collector::CollectorHost;
use crate::writer::Outlet;

impl CollectorHost for Pipeline {
    fn batching(&self) -> MutexGuard<'_, ()> {
        self.batching()
    }

    fn outlets(&self) -> Vec<Option<Arc<Outlet>>> {
        self.outlets()
    }

    fn requested_ticket(&self) -> u64 {
        // Pairs with `advance_both_ways` in `request`: records pushed before the request are visible after this load.
        self.requested.observe()
    }

    fn answer_ticket(&self, ticket: u64) {
        self.answered.raise(ticket);
        progress::note();
    }

    fn set_saturated(&self, saturated: bool) {
        if self.saturated.load(Ordering::Relaxed) != saturated {
            self.saturated.store(saturated, Ordering::Relaxed);
        }
    }

    fn untold_refusals(&self) -> u64 {
        let told = self.refusals_told.load(Ordering::Relaxed);
        self.refusals.load(Ordering::Relaxed).saturating_sub(told)
    }

    fn note_told(&self, refusals: u64) {
        self.refusals_told.fetch_add(refusals, Ordering::Relaxed);
    }

    fn depth(&self) -> (u64, u64) {
        let (used, limit) = (self.budget.used(), self.budget.limit());
        let Some(spooler) = self.spooler.as_ref().filter(|_| used > 0) else { return (used, limit) };
        // A spool takes the records over, so the overflow is often half full while there is room. The fullest spool
        // counts; one that takes no records gives no room.
        let outlets = self.outlets();
        let spools = outlets.iter().flatten().map(|outlet| outlet.spool_bytes(spooler.home.max_bytes));
        let (spooled, room) = spools.max_by_key(|(bytes, _)| *bytes).unwrap_or_default();
        (used + spooled, limit + room)
    }

    fn start_writer(&self, outlet: Arc<Outlet>) {
        self.start_writer(outlet);
    }

    fn ensure_spooler(&self) {
        self.ensure_spooler();
    }

    fn fall_back(&self, outlet: &Outlet, chunk: &Chunk) {
        self.fall_back(outlet, chunk);
    }
}
