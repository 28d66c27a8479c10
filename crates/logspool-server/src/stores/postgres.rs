//! Records in PostgreSQL 12 or later: one [`Writer`], and a [`Reader`] that answers beside it.
//!
//! # Tables
//!
//! All lie in the schema `logspool`, made by the writer when it connects:
//!
//! - `records`: a row for each record, with a partition for each day in UTC. It has a BRIN index on the time and a
//!   B-tree on the trace; others are up to whoever runs the server.
//! - `streams`: how far each client's stream is stored, so that what is sent again is not stored again.
//! - `quarantine`: records that the server refuses, with its reason.
//! - `version`: of these tables.
//!
//! # What comes back as it was
//!
//! All text, with every character. PostgreSQL does not take U+0000: it is kept as U+0001 U+0001, and U+0001 as U+0001
//! U+0002, which is what those see who read the tables with SQL of their own. Process and thread ids from 2^63 on are
//! negative numbers with the same bits there. The fields are `jsonb`: their keys come back in an order of its own, of
//! two fields with one name the last is kept, and of a number its value, not its form: `1e16` comes back as
//! `10000000000000000`.
//!
//! # What is stored once
//!
//! Chunks with a number are stored exactly once, whatever happens to the connection or the server. For batches without
//! one nothing tells after a lost connection whether their transaction was committed: they are written again, and may
//! be stored twice.

mod connection;
mod copy;
mod plan;
mod reader;
mod rows;
mod schema;
mod sift;
mod tables;
mod text;
mod tls;
mod writer;

use std::time::Duration;

pub use connection::Address;
pub use reader::Reader;
pub use writer::Writer;

/// How a store in PostgreSQL is used.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it is.
    pub address: Address,
    /// How many days before today records are kept, by their own time; `None`: for ever.
    pub retention_days: Option<u32>,
    /// How long a query may take.
    pub query_timeout: Duration,
}
