//! logspool's core: from a logging call to bytes at a sink, off the hot path.
//!
//! A record's way: [`logspool_record`] (encoded by the caller) -> [`logspool_lanes`] (a lane in shared memory) ->
//! `collector` (batches, one order) -> [`logspool_record::format`] -> `writer` (one thread per sink).
//! Beside it [`recover`] delivers what dead processes left, [`sidecar`] lets several processes share a log file, and
//! [`stats`] counts what becomes of each record.
//!
//! Invariants: each record that was accepted is written, waits, or is counted with a reason; a logging call waits for no
//! sink. No Python, no async runtime, no HTTP here.

mod chunk;
mod collector;
pub mod copies;
mod durable;
mod fallback;
pub mod keeper;
mod lateness;
pub mod meters;
mod nearest;
pub mod openmetrics;
pub mod option;
mod overflow;
pub mod pipeline;
mod pools_page;
pub mod recover;
mod render;
pub mod sidecar;
pub mod sink;
pub mod sinks;
pub mod stats;
mod writer;
