//! logspool's core: from a logging call to bytes at a sink, off the hot path.
//!
//! The way of a record: [`logspool_record`] (encoded by the caller) -> [`logspool_lanes`] (a lane in shared memory) ->
//! `collector` (ordered batches) -> [`logspool_record::format`] -> `writer` (one thread per sink). In addition,
//! [`recover`] delivers the records that dead processes left. [`sidecar`] lets several processes share a log file, and
//! [`stats`] counts the outcome of each record.
//!
//! Invariants: each accepted record is written, is waiting, or is counted with a reason. A logging call does not wait
//! for a sink. There is no Python, no async runtime and no HTTP here.

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
mod per_level;
pub mod pipeline;
pub mod recover;
mod render;
pub mod sidecar;
pub mod sink;
pub mod sinks;
pub mod stats;
mod writer;
