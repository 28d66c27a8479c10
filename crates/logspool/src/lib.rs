//! logspool's core: carries records from a logging call to the bytes at a sink, off the hot path.
//!
//! The path of a record: [`logspool_record`] (encoded by the caller) -> [`logspool_lanes`] (a lane in shared memory) ->
//! `collector` (ordered batches) -> [`logspool_record::format`] -> `writer` (one thread per sink). In addition,
//! [`recover`] delivers the records that dead processes left. [`sidecar`] lets several processes share a log file, and
//! [`stats`] counts the outcome of each record.
//!
//! Invariants: each accepted record is written, is waiting, or is counted with a reason. A logging call does not wait
//! for a sink. There is no Python and no async runtime here.
//!
//! Under `--cfg loom` only the modules that have loom models are compiled.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

#[cfg(not(loom))]
mod broken_pipe;
#[cfg(not(loom))]
mod chunk;
#[cfg(not(loom))]
mod collector;
#[cfg(not(loom))]
pub mod copies;
#[cfg(not(loom))]
pub mod descriptor_capture;
mod durable;
#[cfg(not(loom))]
mod fallback;
#[cfg(not(loom))]
pub mod front;
#[cfg(not(loom))]
pub mod keeper;
#[cfg(not(loom))]
mod lateness;
#[cfg(not(loom))]
pub mod meters;
#[cfg(not(loom))]
pub mod nearest;
#[cfg(not(loom))]
pub mod openmetrics;
#[cfg(not(loom))]
pub mod option;
#[cfg(not(loom))]
mod overflow;
mod per_level;
#[cfg(not(loom))]
pub mod pipeline;
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
#[cfg(all(feature = "tls", not(loom)))]
pub mod tls;
#[cfg(not(loom))]
mod writer;

/// The models need only the places of sidecars.
#[cfg(loom)]
pub mod sidecar {
    pub mod handler_place;
}
#[cfg(all(test, loom))]
mod models;
