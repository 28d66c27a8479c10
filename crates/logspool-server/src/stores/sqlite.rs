//! Records in SQLite: a folder with one database for each day.
//!
//! ```text
//! logs/lock                 held by the service that writes
//! logs/catalog.sqlite       which files there are, and which time each covers
//! logs/2026-11-21.sqlite    the records that came on that day, sealed: never written to again
//! logs/2026-11-22.sqlite    those of today, with the watermarks of all streams
//! logs/2026-11-22.index     words, traces and loggers of its records, made behind the writer's back
//! ```
//!
//! - A record lies in the file of the day on which it came, whatever its own time: so a transaction touches one file,
//!   and a commit is whole. The time that a file covers follows from what is in it.
//! - A new day's file is made in one transaction, with the watermarks of all streams that live. From then on the newest
//!   file that is whole counts, and nothing else is written to.
//! - An index lags. What it has not reached is searched as it lies, and what it finds is looked at again: so an answer
//!   does not depend on it. Lost or damaged, it is made again.

mod answers;
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
mod merge;
mod plan;
mod read_file;
mod read_only;
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

pub use answers::{SqliteAnswers, Stats};
pub use retention::Retention;
pub use store::SqliteStore;
pub use wal::damaged_logs;

/// How a store is kept.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is removed.
    pub retention: Retention,
    /// Who may read the folder.
    pub readers: Readers,
    /// Whether the search is sped up.
    pub indexing: Indexing,
    /// Tells the day.
    pub clock: Clock,
}

/// Whether indexes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Indexing {
    /// On a thread of their own, a second behind the writer or more. They take disk, a fifth to a third of what the
    /// records take, and most of a processor's time while many records come.
    #[default]
    Background,
    /// No. Queries by words, traces and loggers read all records of their time.
    Off,
}

/// What the time is, in nanoseconds since 1970.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// A clock of one's own.
    pub fn new(now: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    fn now_ns(&self) -> i64 {
        (self.0)()
    }
}

impl Default for Clock {
    /// That of the system.
    fn default() -> Self {
        Self::new(clock::now_ns)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Clock")
    }
}
