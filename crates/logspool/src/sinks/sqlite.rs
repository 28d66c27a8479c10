//! A table of a SQLite database. Each write is one transaction.
//!
//! The database is in WAL mode, so readers do not hold up the sink, and the sink does not hold up readers. The sink
//! opens the database with its first record.
//!
//! The transaction also notes how far the records of this process are stored (`sqlite/progress.rs`). After a kill
//! between the commit and the note of the queue, a recoverer writes the same records again, and the sink skips those
//! that are in the table. So each record is stored once.
//!
//! SQLite runs on a thread that has a table of descriptors of its own (`sqlite/thread.rs`), so a program may read the
//! database with another copy of SQLite. Each transaction checks that the database is still at its path
//! (`sqlite/files.rs`).
//!
//! With `synchronous = "normal"` a commit survives the end of the program, and [`Sink::sync`] syncs the log of the
//! database. With `"full"` SQLite syncs it with each commit.

mod database;
mod files;
mod progress;
mod sync_mode;
#[cfg(test)]
mod tests;
mod thread;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Place, SinkInput, SinkOptions, Traits};
use crate::sink::{Lines, Origin, SharedLog, Sink, SinkError, SyncError};
use database::{Database, DatabaseError, Refusals, StoredLines};
use logspool_lanes::segment::layout::LEVEL_CLASSES;
use logspool_record::definition::Descriptor;
use progress::BatchPlace;
use sync_mode::SyncMode;
use thread::DatabaseThreadHandle;
pub use thread::keep_apart;

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
        self.check()?;
        Ok(Box::new(SqliteSink::of(self.clone())))
    }

    /// Does not open the file: closing it would release the locks that the program has on it.
    fn check(&self) -> io::Result<()> {
        let path = &self.path;
        match fs::metadata(path) {
            Ok(status) if !status.is_file() => {
                let kind = if status.is_dir() { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput };
                return Err(io::Error::new(kind, format!("{path} cannot be a database: it is not a regular file")));
            }
            _ => {}
        }
        if !thread::is_refused() {
            return Ok(());
        }
        let why = "this environment refuses close_range and unshare, which the sink needs (fix: let the container's \
                   filter allow close_range)";
        Err(io::Error::new(ErrorKind::Unsupported, format!("{path} cannot be written: {why}")))
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

/// The sink; see the module documentation.
#[derive(Debug)]
pub struct SqliteSink {
    options: SqliteOptions,
    seat: Option<DatabaseThreadHandle>,
    origin: Option<Origin>,
    /// The chunk that is written, and the number of its bytes before the lines of a write.
    batch: u64,
    base: u64,
    /// Number of records in one transaction. Small while the database refuses a transaction because of one of them.
    most_records: usize,
    /// Since when another program locks the database.
    busy_since: Option<Instant>,
    refused: [u32; LEVEL_CLASSES],
    trouble: Option<io::Error>,
}

impl SqliteSink {
    fn of(options: SqliteOptions) -> Self {
        Self {
            options,
            seat: None,
            origin: None,
            batch: 0,
            base: 0,
            most_records: usize::MAX,
            busy_since: None,
            refused: Default::default(),
            trouble: None,
        }
    }

    /// The seat, taken if there is none.
    fn seat(&mut self) -> io::Result<&DatabaseThreadHandle> {
        let seat = match self.seat.take() {
            // A fork copied it. SQLite forbids any use in the child.
            Some(seat) if !seat.is_own() => DatabaseThreadHandle::take()?,
            Some(seat) => seat,
            None => DatabaseThreadHandle::take()?,
        };
        Ok(self.seat.insert(seat))
    }

    /// Stores the first `count` records of `lines`.
    fn store(&mut self, lines: &Lines<'_>, count: usize) -> Result<Refusals, DatabaseError> {
        let place = self.origin.as_ref().map(|origin| BatchPlace {
            segment: origin.uuid,
            sink: origin.sink,
            batch: self.batch,
            base: self.base,
        });
        let marks = lines.marks[..count].to_vec();
        let length = marks.last().map_or(0, |mark| mark.end as usize - lines.before);
        let batch = StoredLines { bytes: lines.bytes[..length].to_vec(), marks, before: lines.before, place };
        let SqliteOptions { path, synchronous, keep_days, .. } = self.options.clone();
        let stored = self.seat().map_err(DatabaseError::Other)?.run(move |database| {
            let open = match database {
                Some(open) => open,
                None => database.insert(Database::open(Path::new(&path), synchronous, keep_days)?),
            };
            let stored = open.store(&batch);
            match &stored {
                Ok(_) | Err(DatabaseError::Busy(_) | DatabaseError::Refused(_)) => return stored,
                Err(DatabaseError::Moved) => {
                    if let Err(DatabaseError::Busy(error)) = open.leave() {
                        return Err(DatabaseError::Busy(error));
                    }
                }
                Err(DatabaseError::Other(_)) => {}
            }
            // The next try opens it again: the file may have been replaced.
            *database = None;
            stored
        });
        stored.map_err(DatabaseError::Other)?
    }

    /// Notes a record that the database refuses.
    fn refuse(&mut self, refusals: Refusals) {
        for (count, more) in self.refused.iter_mut().zip(refusals.counts) {
            *count += more;
        }
        self.trouble = refusals.why.or(self.trouble.take());
    }

    /// The error for the writer of the sink, if another program has locked the database.
    fn wait(&mut self, error: io::Error) -> SinkError {
        let since = *self.busy_since.get_or_insert_with(Instant::now);
        let is_early = since.elapsed() < self.options.busy_timeout;
        SinkError::Retry(if is_early { ErrorKind::WouldBlock.into() } else { error })
    }
}

fn moved() -> io::Error {
    io::Error::other("the database was removed or replaced; from here on the records are in the one at its path")
}

impl Sink for SqliteSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let mut count = lines.marks.len().min(self.most_records);
        let mut has_moved = false;
        loop {
            match self.store(&lines, count) {
                Ok(refusals) => {
                    self.refuse(refusals);
                    break;
                }
                Err(DatabaseError::Busy(error)) => return Err(self.wait(error)),
                // The same write goes to the database that is at the path now.
                Err(DatabaseError::Moved) if !has_moved => has_moved = true,
                Err(DatabaseError::Moved) => return Err(SinkError::Retry(moved())),
                // All of them are tried in smaller transactions, until the bad record is alone.
                Err(DatabaseError::Refused(_)) if count > 1 => count /= 2,
                Err(DatabaseError::Refused(why)) => {
                    let mut refusals = Refusals::default();
                    refusals.add(lines.marks[0], why);
                    self.refuse(refusals);
                    break;
                }
                Err(DatabaseError::Other(error)) => return Err(SinkError::Retry(error)),
            }
        }
        if has_moved {
            self.trouble = Some(moved());
        }
        self.busy_since = None;
        self.most_records = if count == lines.marks.len() { usize::MAX } else { count.saturating_mul(2) };
        Ok(lines.marks[..count].last().map_or(lines.bytes.len(), |mark| mark.end as usize - lines.before))
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        // With `full`, each commit was synced.
        if self.options.synchronous == SyncMode::Full {
            return Ok(());
        }
        files::sync(Path::new(&self.options.path)).map_err(|error| SyncError { error, is_final: false })
    }

    fn leave(&mut self) {
        if let Some(seat) = self.seat.take() {
            let _ = seat.run(|database| database.take().map(Database::close_soon));
        }
    }

    fn take_refused(&mut self) -> [u32; LEVEL_CLASSES] {
        std::mem::take(&mut self.refused)
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
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
