//! A table of a SQLite database. Each write is one transaction.
//!
//! The database is in WAL mode, so readers do not hold up the sink, and the sink does not hold up readers. The sink
//! opens the database with its first record.
//!
//! The transaction also notes how far the records of this process are stored (`sqlite/progress.rs`). After a kill
//! between the commit and the note of the queue, a recoverer writes the same records again, and the sink skips those
//! that are in the table. So each record is stored once.
//!
//! With `synchronous = "normal"` a commit survives the end of the program, and [`Sink::sync`] syncs the log of the
//! database. With `"full"` SQLite syncs it with each commit.

mod database;
mod progress;
mod sync_mode;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Place, SinkInput, SinkOptions, Traits};
use crate::sink::{Lines, Origin, SharedLog, Sink, SinkError, SyncError};
use database::{Database, DatabaseError};
use logspool_record::definition::Descriptor;
use sync_mode::SyncMode;

crate::options! {
    /// Writes records to the table `records` of a SQLite database.
    pub struct SqliteOptions {
        /// Path of the database. A missing database is created.
        pub path: String as Path,
        /// When SQLite syncs its log. With `normal` it does so before it moves the log into the database: a power cut
        /// may lose the last commits and never damages the database. With `full` it does so at each commit.
        pub synchronous: SyncMode = Text("normal"),
        /// How long another program may lock the database before the sink reports it. Records wait in any case.
        pub busy_timeout: Duration [seconds 0.0..=3600.0] = Seconds(5.0),
        /// After how many days records are removed; by default never. The file does not shrink: its space is used again.
        pub keep_days: Option<u32> ["days", 1..=36500] = Nothing,
    }
}

impl SinkOptions for SqliteOptions {
    const KIND: &'static str = "sqlite";
    const TRAITS: Traits = Traits { takes: SinkInput::Entries, is_shared: false, ..Traits::FILE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        check(Path::new(&self.path))?;
        Ok(Box::new(SqliteSink::of(self.clone())))
    }

    fn place(&self) -> Place {
        // Not a file: a recoverer must not append lines to it.
        Place::Address(self.path.clone())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        let sample = |synchronous| Self {
            path: format!("{path}.sqlite"),
            synchronous,
            busy_timeout: Duration::from_secs(5),
            keep_days: None,
        };
        vec![sample(SyncMode::Normal), sample(SyncMode::Full)]
    }
}

/// Refuses a path that can be no database. Does not open the file: closing it would release the locks that another sink
/// of this process has on it.
fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(status) if !status.is_file() => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
        _ => Ok(()),
    }
}

/// The sink; see the module documentation.
#[derive(Debug)]
pub struct SqliteSink {
    options: SqliteOptions,
    database: Option<Database>,
    origin: Option<Origin>,
    /// The chunk that is written, and the number of its bytes before the lines of a write.
    batch: u64,
    base: u64,
    /// Since when another program locks the database.
    busy_since: Option<Instant>,
}

impl SqliteSink {
    fn of(options: SqliteOptions) -> Self {
        Self { options, database: None, origin: None, batch: 0, base: 0, busy_since: None }
    }

    fn store(&mut self, lines: &Lines<'_>) -> Result<(), DatabaseError> {
        if self.database.as_ref().is_some_and(|database| !database.is_own()) {
            // A fork copied it. SQLite forbids any use in the child, even to close it.
            std::mem::forget(self.database.take());
        }
        let database = match &mut self.database {
            Some(database) => database,
            none => {
                let SqliteOptions { path, synchronous, keep_days, .. } = &self.options;
                none.insert(Database::open(Path::new(path), *synchronous, *keep_days)?)
            }
        };
        let place = self.origin.as_ref().map(|origin| progress::BatchPlace {
            segment: origin.uuid,
            sink: origin.sink,
            batch: self.batch,
            base: self.base,
        });
        database.store(lines, place)
    }

    /// The error for the writer of the sink.
    fn failure(&mut self, error: DatabaseError) -> SinkError {
        match error {
            DatabaseError::Busy(error) => {
                let since = *self.busy_since.get_or_insert_with(Instant::now);
                if since.elapsed() < self.options.busy_timeout {
                    return SinkError::Retry(ErrorKind::WouldBlock.into());
                }
                SinkError::Retry(error)
            }
            DatabaseError::Other(error) => {
                // The next try opens it again: the file may have been replaced.
                self.database = None;
                SinkError::Retry(error)
            }
        }
    }
}

impl Sink for SqliteSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        match self.store(&lines) {
            Ok(()) => {
                self.busy_since = None;
                Ok(lines.bytes.len())
            }
            Err(error) => Err(self.failure(error)),
        }
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        // With `full`, each commit was synced.
        match &self.database {
            Some(database) if self.options.synchronous == SyncMode::Normal => {
                database.sync().map_err(|error| SyncError { error, is_final: false })
            }
            _ => Ok(()),
        }
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(self)
    }
}

impl SharedLog for SqliteSink {
    fn set_origin(&mut self, origin: Origin) {
        self.origin = Some(origin);
    }

    fn begin(&mut self, batch: u64, base: u64) {
        self.batch = batch;
        self.base = base;
    }

    fn finish_append(&mut self) {}

    fn abort_append(&mut self) {}
}
