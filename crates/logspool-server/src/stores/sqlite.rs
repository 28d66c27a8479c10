//! Records in SQLite: a folder with one database per day.
//!
//! ```text
//! logs/lock                 locked by the service that writes
//! logs/catalog.sqlite       the list of files, with the time that each covers
//! logs/2026-11-21.sqlite    the records received on that day, sealed: never written again
//! logs/2026-11-22.sqlite    today's records, with the watermarks of all streams
//! logs/2026-11-22.index     words, traces and loggers of its records, made after the commit
//! ```
//!
//! - A record is in the file of the day on which it was received, whatever its own time. So a transaction writes to one
//!   file and its commit is atomic. The time that a file covers follows from its records.
//! - A new day's file is created in one transaction, with the watermarks of all active streams. From then on the newest
//!   complete file counts, and no other file is written.
//! - An index lags. Records after its end are searched without it, and records it finds are checked against the whole
//!   query. So answers do not depend on the index. A lost or damaged index is made again.

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
    /// The clock that decides the day.
    pub clock: StoreClock,
}

/// Whether indexes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexing {
    /// On a separate thread, a second or more after the commit. Indexes take a fifth to a third of the records' disk
    /// space, and most of one processor's time while many records arrive.
    #[default]
    Background,
    /// No indexes. Queries by words, traces and loggers read all records of their time range.
    Off,
}

/// Returns the time in nanoseconds since 1970.
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
