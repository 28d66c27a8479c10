//! Bytes of senders to records: pure functions, without sockets, threads or stores.
//!
//! [`decoders`] has one file for each format. A decoder returns a [`record::Record`] that borrows from the bytes, and
//! [`batch`] keeps many of them in one block of memory.

#![forbid(unsafe_code)]

pub mod batch;
pub mod decoders;
pub mod record;
pub mod value;
