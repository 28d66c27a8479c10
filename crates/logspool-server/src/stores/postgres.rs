//! Records in PostgreSQL 12 or later: one [`PostgresWriter`], and a [`PostgresReader`] that answers queries beside it.
//!
//! # Tables
//!
//! All tables are in the schema `logspool`, which the writer creates when it connects:
//!
//! - `records`: one row per record, with one partition per day in UTC. It has a BRIN index on the time and a B-tree on
//!   the trace; the administrator may add others.
//! - `streams`: the position up to which each client's stream is stored, so that repeated chunks are not stored again.
//! - `quarantine`: records that the server refuses, with its reason.
//! - `version`: the version of these tables.
//!
//! # Values that come back changed
//!
//! Text comes back unchanged, with every character. PostgreSQL does not store U+0000: it is written as U+0001 U+0001,
//! and U+0001 as U+0001 U+0002. Users who read the tables with their own SQL see these pairs. Process and thread ids
//! from 2^63 on are stored as negative numbers with the same bits. The fields are `jsonb`: keys come back in
//! PostgreSQL's order, the last of two fields with one name is kept, and numbers keep their value but not their form:
//! `1e16` comes back as `10000000000000000`.
//!
//! # Records stored exactly once
//!
//! Chunks with a number are stored exactly once, whatever happens to the connection or the server. For batches without
//! a number, a lost connection hides whether their transaction was committed. They are written again and may be stored
//! twice.

mod connection;
mod copy;
mod location;
mod plan;
mod quarantine;
mod reader;
mod rows;
mod schema;
mod tables;
mod text;
mod tls;
mod writer;

use std::time::Duration;

pub use connection::Address;
pub use location::POSTGRES;
pub use reader::PostgresReader;
pub use writer::PostgresWriter;

/// Settings of a PostgreSQL store.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// Address of the server and the database.
    pub address: Address,
    /// Days before today for which records are kept, by the record's time; `None`: no limit.
    pub retention_days: Option<u32>,
    /// Time limit of a query.
    pub query_timeout: Duration,
}
