//! The spool: checksummed segments on disk that keep batches until their sinks have them.
//!
//! Stop on the line: between *collector* and *writer (sink)*, for records whose sink is stalled or away, and for those
//! that must survive a power cut. One thread owns a [`Spool`] and may block in every call; nothing here is called by
//! the threads that log.
//!
//! A batch is *written* when [`Spool::append`] returns: it survives the process. It is *durable* when [`Spool::sync`]
//! returns: it survives the machine. Consumers, one for each sink, [`read`](Spool::read) in order, [`ack`](Spool::ack)
//! what is delivered, and [`Spool::checkpoint`] makes that durable and gives files back. What a consumer acked and no
//! checkpoint had made durable is read again by the next life; a sink that remembers how far it came says so with an
//! ack before its first read.
//!
//! Rules that the rest of the folder keeps:
//!
//! - A failed fdatasync is final for its file. What is not durable is in memory and goes into a new one.
//! - A segment is given back only after the checkpoint that passes it is durable.
//! - Numbers without records are told to every consumer as a [`Item::Gap`] with its reason; nothing vanishes.
//! - Files are hostile input: every length is checked against a bound before memory is taken, nothing is mapped.
//!
//! The layout stands in `segment.rs`, `frame.rs` and `checkpoint.rs`; `recover.rs` is what a start does; `proof/` is a
//! simulated disk that crashes after every call.

mod checkpoint;
mod consumer;
mod defect;
mod disk;
mod error;
mod frame;
mod id;
mod item;
mod options;
pub mod parts;
pub mod pointer;
#[cfg(test)]
mod proof;
mod real_disk;
mod recover;
mod remains;
mod room;
mod saving;
mod scan;
mod segment;
#[allow(clippy::module_inception)]
mod spool;
mod stats;
mod takeover;
mod view;
mod words;

pub use disk::{Disk, DiskError, Operation};
pub use error::SpoolError;
pub use frame::{HEAD_BYTES as FRAME_HEAD_BYTES, MAX_PAYLOAD_BYTES};
pub use id::Id;
pub use item::{Frame, GapReason, Item};
pub use options::{Options, WhenFull};
pub use real_disk::{RealDisk, RealFile};
pub use segment::HEADER_BYTES as SEGMENT_HEADER_BYTES;
pub use spool::{Batch, Spool};
pub use stats::SpoolStats;
pub use view::{View, ViewedFrame};
