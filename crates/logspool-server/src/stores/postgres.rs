//! Records in PostgreSQL 12 or later. A [`PostgresWriter`] writes them, and a [`PostgresReader`] answers queries at the
//! same time.
//!
//! # Tables
//!
//! All tables are in the schema `logspool`, which the writer creates when it connects:
//!
//! - `records`: one row per record, with one partition per day in UTC. It has a BRIN index on the time and a B-tree
//!   index on the trace id. The administrator may add other indexes.
//! - `streams`: the mark of each client's stream, so that repeated chunks are not stored again. `gaps` has the numbers
//!   up to `last` that are missing, such as `1-100,150-150`.
//! - `quarantine`: records that the server refused, with the server's reason.
//! - `version`: the version of these tables.
//!
//! # Values that come back changed
//!
//! Text comes back unchanged, with every character. PostgreSQL cannot store U+0000, so U+0000 is written as U+0001
//! U+0001, and U+0001 as U+0001 U+0002. Users who read the tables with their own SQL see these pairs. Process and
//! thread ids from 2^63 on are stored as negative numbers with the same bits. The fields are `jsonb`, which changes
//! three things. Keys come back in PostgreSQL's order. Of two fields with the same name, the last one is kept. Numbers
//! keep their value but not their form: `1e16` comes back as `10000000000000000`.
//!
//! # Records stored exactly once
//!
//! Numbered chunks are stored exactly once, whatever happens to the connection or the server. Batches without a number
//! may be stored twice: after a lost connection it is unknown whether their transaction was committed, so they are
//! written again.

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
    /// Number of days before today whose records are kept. The time of a record decides. `None`: no limit.
    pub retention_days: Option<u32>,
    /// Time limit of a query.
    pub query_timeout: Duration,
}
