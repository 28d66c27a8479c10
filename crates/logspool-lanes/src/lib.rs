//! The queue: lanes in a segment of shared memory, and the batches of their records.
//!
//! Pipeline stage: *queue*, between capture and collector (see ARCHITECTURE.md). [`lane`] is the algorithm,
//! [`segment`] the mapping with its layout, and [`queue`] has the two sides of a lane. [`manifest`] stores which records
//! belong to each batch, and [`blob`] holds values that are too large for a lane.
//!
//! Invariants: a segment can be read after the death of its process, even if the process died during a store. A push
//! only stores. This layer starts no thread and formats nothing.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

#[cfg(not(loom))]
pub mod blob;
pub mod lane;
#[cfg(not(loom))]
pub mod manifest;
#[cfg(not(loom))]
pub mod queue;
#[cfg(not(loom))]
pub mod segment;
/// The models need only the layout of a segment.
#[cfg(loom)]
pub mod segment {
    pub mod layout;
}
