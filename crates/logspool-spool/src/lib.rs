//! The spool: checksummed segments on disk that keep batches until their sinks have delivered them.
//!
//! Pipeline stage: between *collector* and *writer (sink)* (see ARCHITECTURE.md). It keeps records whose sink is
//! stalled or unreachable, and records that must survive a power cut. One thread owns a [`Spool`] and may block in
//! every call. Threads that log never call into this crate.
//!
//! A batch is *written* when [`Spool::append`] returns: it survives the process. It is *durable* when [`Spool::sync`]
//! returns: it survives a crash of the machine. Each sink is a consumer: it [`read`](Spool::read)s records in order and
//! [`ack`](Spool::ack)s those it has delivered. [`Spool::checkpoint`] makes the acks durable and frees files. If a
//! record's ack was not in a durable checkpoint, the next life of the stream reads the record again. A sink that
//! remembers its own position acks up to that position before its first read.
//!
//! Rules that the rest of the crate keeps:
//!
//! - A failed fdatasync is final for its file. Frames that are not durable are also in memory and go into a new file.
//! - A segment is freed only after the checkpoint that passes it is durable.
//! - Each consumer gets numbers without records as an [`Item::Gap`] with its reason; no record vanishes uncounted.
//! - Files are hostile input: every length is checked against a bound before memory is allocated, and no file is
//!   mapped.
//!
//! `spool_segment.rs`, `frame.rs` and `checkpoint.rs` describe the layout on disk. `recover.rs` opens a spool. `proof/` tests
//! the spool on a simulated disk that crashes after every call.

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
mod room;
mod saving;
mod scan;
#[allow(clippy::module_inception)]
mod spool;
mod spool_segment;
mod stats;
mod takeover;
mod undeliverable;
mod view;
mod words;

pub use disk::{Disk, DiskError, Operation};
pub use error::SpoolError;
pub use frame::MAX_PAYLOAD_BYTES;
pub use id::Id;
pub use item::{Frame, GapReason, Item};
pub use options::{Options, WhenFull};
pub use real_disk::{RealDisk, RealFile};
pub use spool::{Batch, Spool};
pub use stats::SpoolStats;
pub use view::{View, ViewedFrame};
