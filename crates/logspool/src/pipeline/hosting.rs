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

    fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
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
