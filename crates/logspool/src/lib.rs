//! logspool's core: from a logging call to bytes at a sink, off the hot path.
//!
//! A record's way: [`logspool_record`] (encoded by the caller) -> [`logspool_lanes`] (a lane in shared memory) ->
//! `collector` (batches, one order) -> [`logspool_record::format`] -> `writer` (one thread per sink).
//! Beside it [`recover`] delivers what dead processes left, [`sidecar`] lets several processes share a log file, and
//! [`stats`] counts what becomes of each record.
//!
//! Invariants: each record that was accepted is written, waits, or is counted with a reason; a logging call waits for no
//! sink. No Python, no async runtime, no HTTP here.
//!
//! Under `--cfg loom` only the parts with models are compiled.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

#[cfg(not(loom))]
mod chunk;
#[cfg(not(loom))]
mod collector;
#[cfg(not(loom))]
pub mod copies;
mod durable;
#[cfg(not(loom))]
mod fallback;
#[cfg(not(loom))]
pub mod keeper;
#[cfg(not(loom))]
mod lateness;
#[cfg(not(loom))]
pub mod meters;
#[cfg(not(loom))]
pub mod openmetrics;
#[cfg(not(loom))]
mod overflow;
#[cfg(not(loom))]
pub mod pipeline;
#[cfg(not(loom))]
mod pools_page;
#[cfg(not(loom))]
pub mod recover;
#[cfg(not(loom))]
mod render;
#[cfg(not(loom))]
pub mod sidecar;
#[cfg(not(loom))]
pub mod sink;
#[cfg(not(loom))]
pub mod sinks;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
mod writer;

/// The models need only the places of sidecars.
#[cfg(loom)]
pub mod sidecar {
    pub mod place;
}
/// The models need only the counters of a level.
#[cfg(loom)]
mod stats {
    use logspool_lanes::segment::layout::LEVEL_CLASSES;
    use logspool_sys::sync::{AtomicU64, Ordering};

    pub type PerLevel = [u64; LEVEL_CLASSES];

    pub fn read(words: &[AtomicU64; LEVEL_CLASSES]) -> PerLevel {
        std::array::from_fn(|class| words[class].load(Ordering::Relaxed))
    }
}
#[cfg(all(test, loom))]
mod models;
