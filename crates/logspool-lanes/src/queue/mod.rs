//! Lanes: one byte ring per logging thread, in memory that outlives the process.
//!
//! Stop on the line: *queue*, between capture and collector.
//! [`cursor`] and [`ring`] are the algorithm without the storage; the models check both. The layout in the segment is
//! `segment::layout::LaneHead`. [`producer`] is the calling thread's side, [`reader`] the side of the collector and the
//! recoverer, [`merge`] the order in which both take records.

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
