//! logspool's core: from a logging call to bytes at a sink, off the hot path.
//!
//! A record's way: [`record`] (encoded by the caller) -> `queue` (a lane in shared memory) ->
//! `collector` (batches, one order) -> [`mod@format`] -> `writer` (one thread per sink).
//! No Python, no async runtime, no HTTP here.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

mod barrier;
pub mod pool;
mod queue;
mod sync;

#[cfg(not(loom))]
pub mod address;
#[cfg(not(loom))]
mod blob;
#[cfg(not(loom))]
mod chunk;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
mod collector;
#[cfg(not(loom))]
pub mod copies;
#[cfg(not(loom))]
pub mod definition;
#[cfg(not(loom))]
mod durable;
#[cfg(not(loom))]
mod fallback;
#[cfg(not(loom))]
pub mod format;
#[cfg(not(loom))]
mod gate;
#[cfg(not(loom))]
pub mod generation;
#[cfg(not(loom))]
pub mod keeper;
#[cfg(not(loom))]
pub mod kernel;
#[cfg(not(loom))]
mod lateness;
#[cfg(not(loom))]
mod manifest;
#[cfg(not(loom))]
pub mod meters;
#[cfg(not(loom))]
pub mod msgpack;
#[cfg(not(loom))]
pub mod nap;
#[cfg(not(loom))]
mod nearest;
#[cfg(not(loom))]
pub mod openmetrics;
#[cfg(not(loom))]
pub mod option;
#[cfg(not(loom))]
mod overflow;
#[cfg(not(loom))]
pub mod pipeline;
#[cfg(not(loom))]
mod progress;
#[cfg(not(loom))]
pub mod record;
#[cfg(not(loom))]
pub mod recover;
#[cfg(not(loom))]
mod render;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod sidecar;
#[cfg(not(loom))]
pub mod sink;
#[cfg(not(loom))]
pub mod sinks;
#[cfg(not(loom))]
pub mod spool;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
mod writer;
