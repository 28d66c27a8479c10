//! Records in SQLite: a folder with one database per day.
//!
//! ```text
//! logs/lock                 locked by the service that writes
//! logs/catalog.sqlite       the list of files, with the time that each covers
//! logs/2026-11-21.sqlite    the records received on that day, sealed: never written again
//! logs/2026-11-22.sqlite    today's records, with the marks of all streams
//! logs/2026-11-22.index     words, traces and loggers of its records, made after the commit
//! ```
//!
//! - A record is in the file of the day on which it was received, whatever the time of the record. So a transaction
//!   writes to one file and its commit is atomic. The time range of a file is the time range of its records.
//! - A new day's file is created in one transaction, with the marks of all streams of the last 7 days. From then on only
//!   this newest file is written.
//! - An index lags behind its file. Records after the end of the index are searched without the index. Records that the
//!   index finds are checked against the whole query. So answers do not depend on the index. A lost or damaged index is
//!   rebuilt.

mod catalog;
mod counts;
mod damage;
mod database;
mod day_file;
mod failure;
mod folder;
mod index;
mod indexer;
mod insert;
mod last;
mod location;
mod merge;
mod plan;
mod read_file;
mod read_only;
mod reader;
mod recent;
mod reconcile;
mod retention;
mod sources;
mod store;
mod transaction;
mod wal;

use std::fmt;
use std::sync::Arc;

use super::private::Readers;
use crate::clock;

pub use location::SQLITE;
pub use reader::{SqliteReader, SqliteStats};
pub use retention::SqliteRetention;
pub use store::SqliteStore;
pub use wal::damaged_logs;

/// Settings of a SQLite store.
#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// Limits on age and size.
    pub retention: SqliteRetention,
    /// Read access to the folder.
    pub readers: Readers,
    /// Whether indexes are made.
    pub indexing: Indexing,
    /// The clock that gives the current day.
    pub clock: StoreClock,
}

/// Whether indexes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexing {
    /// A separate thread builds the indexes, a second or more after the commit. Indexes take a fifth to a third of the
    /// records' disk space. While many records arrive, the thread takes most of one processor's time.
    #[default]
    Background,
    /// No indexes are built. Queries by words, traces and loggers read all records of their time range.
    Off,
}

/// A clock that returns the time in nanoseconds since 1970.
#[derive(Clone)]
pub struct StoreClock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl StoreClock {
    /// A clock that calls `now`.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn now_ns(&self) -> i64 {
        (self.0)()
    }
}

impl Default for StoreClock {
    /// The system's clock.
    fn default() -> Self {
        Self::new(clock::now_ns)
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Clock")
    }
}
