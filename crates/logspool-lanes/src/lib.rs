//! The queue: lanes in a segment of shared memory, and what a batch of their records is.
//!
//! Stop on the line: *queue*, between capture and collector. [`queue`] is the algorithm and its two sides, [`segment`]
//! the mapping and its layout, [`manifest`] which records make up which batch, [`blob`] the values that no lane takes.
//!
//! Invariants: what is in a segment is readable after the death of its process, whenever that comes; a push only stores.
//! This layer starts no thread and formats nothing.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

#[cfg(not(loom))]
pub mod blob;
#[cfg(not(loom))]
pub mod manifest;
pub mod queue;
#[cfg(not(loom))]
pub mod segment;
