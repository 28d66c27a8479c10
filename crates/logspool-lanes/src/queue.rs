//! Lanes in use: one byte ring per logging thread, in memory that outlives the process.
//!
//! Pipeline stage: *queue*, between capture and collector (see ARCHITECTURE.md). [`crate::lane`] is the algorithm without
//! the storage. [`producer`] is the side of the thread that logs. [`reader`] is the side of the collector and the
//! recoverer, and [`merge`] the order in which these two take records.

pub mod merge;
pub mod producer;
pub mod reader;
pub mod view;
