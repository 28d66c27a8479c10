//! Lanes: one byte ring per logging thread, in memory that outlives the process.
//!
//! Pipeline stage: *queue*, between capture and collector (see ARCHITECTURE.md). [`cursor`] and [`ring`] are the
//! algorithm without the storage; the models check both modules. The layout in the segment is
//! `segment::layout::LaneHead`. [`producer`] is the side of the thread that logs. [`reader`] is the side of the
//! collector and the recoverer, and [`merge`] the order in which these two take records.

pub mod cursor;
#[cfg(all(loom, test))]
mod models;

#[cfg(not(loom))]
pub mod merge;
#[cfg(not(loom))]
pub mod producer;
#[cfg(not(loom))]
pub mod reader;
pub mod ring;
#[cfg(not(loom))]
pub mod view;
