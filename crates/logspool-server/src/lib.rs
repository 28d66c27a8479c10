//! logspool's service: records from many processes, stored in bulk, found again.
//!
//! A record's way: bytes of a peer -> [`decoders`] (pure functions, one file for each protocol) -> [`record::Record`].

#![forbid(unsafe_code)]

pub mod decoders;
pub mod record;
pub mod value;
