//! The open database: its tables, one transaction for each write, and its errors.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

use logspool_lanes::segment::layout::LEVEL_CLASSES;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use super::files::DatabaseFiles;
use super::progress::{self, BatchPlace};
use super::sync_mode::SyncMode;
use crate::sink::Mark;
use crate::sinks::parts::RecordParts;

/// How long one call of SQLite waits for a lock. Then the writer of the sink checks whether it has a new order.
///
/// Chosen: half the time that a fork waits for the native threads.
const LOCK_WAIT: Duration = Duration::from_millis(25);

/// How often old records are removed, and how many at once. Chosen: a removal delays a write by some milliseconds.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(60);
const REMOVED_RECORDS: usize = 2000;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS records (
        id INTEGER PRIMARY KEY,
        time_ns INTEGER NOT NULL,
        level INTEGER NOT NULL,
        logger TEXT NOT NULL,
        message TEXT NOT NULL,
        file TEXT,
        line INTEGER,
        function TEXT,
        process INTEGER,
        host TEXT,
        thread TEXT,
        exception TEXT,
        fields TEXT
    );
    CREATE INDEX IF NOT EXISTS records_time ON records (time_ns);";

const INSERT: &str = "INSERT INTO records
    (time_ns, level, logger, message, file, line, function, process, host, thread, exception, fields)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// Why records are not stored. Nothing of the write is in the database.
#[derive(Debug)]
pub enum DatabaseError {
    /// Another program has locked the database.
    Busy(io::Error),
    /// The database is not at its path any more: it was removed, or another file has replaced it.
    Moved,
    /// A rule of the database refuses one of the records, and it cannot be told which one.
    Refused(io::Error),
    /// Any other error.
    Other(io::Error),
}

/// Whole records with their place, copied for the thread of SQLite.
#[derive(Debug)]
pub struct StoredLines {
    /// The records.
    pub bytes: Vec<u8>,
    /// Where each of them ends, counted from the start of the chunk.
    pub marks: Vec<Mark>,
    /// Number of bytes of the chunk before `bytes`.
    pub before: usize,
    /// Their place among all records of the process.
    pub place: Option<BatchPlace>,
}

/// The records of a write that a rule of the database refuses: a constraint, or a trigger.
#[derive(Debug, Default)]
pub struct Refusals {
    /// Number of them by level class.
    pub counts: [u32; LEVEL_CLASSES],
    /// The reason for the last one.
    pub why: Option<io::Error>,
}

impl Refusals {
    /// Adds a record.
    pub fn add(&mut self, mark: Mark, why: io::Error) {
        self.counts[usize::from(mark.class)] += 1;
        self.why = Some(why);
    }
}

/// An open database.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    files: DatabaseFiles,
    keep_days: Option<u32>,
    removed_at: Option<Instant>,
}

impl Database {
    /// Opens the database, and creates the tables that are missing.
    ///
    /// # Errors
    ///
    /// The database is locked, or cannot be used.
    pub fn open(path: &Path, synchronous: SyncMode, keep_days: Option<u32>) -> Result<Self, DatabaseError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(LOCK_WAIT)?;
        connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        let synchronous = match synchronous {
            SyncMode::Normal => "normal",
            SyncMode::Full => "full",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.execute_batch(SCHEMA)?;
        connection.execute_batch(progress::SCHEMA)?;
        progress::forget_old(&connection)?;
        let files = DatabaseFiles::of(&connection, path);
        Ok(Self { connection, files, keep_days, removed_at: None })
    }

    /// Limits the size of the database, as a full disk does.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }

    /// Stores all records of `batch`, except those that an earlier write of the same place has stored, and those that
    /// the database refuses.
    ///
    /// # Errors
    ///
    /// The database is locked, full, moved away, or cannot be used.
    pub fn store(&mut self, batch: &StoredLines) -> Result<Refusals, DatabaseError> {
        if !self.files.are_in_place(&self.connection) {
            return Err(DatabaseError::Moved);
        }
        let refusals = self.store_in_transaction(batch)?;
        // If it was moved during the transaction, nobody may find the records.
        if self.files.are_in_place(&self.connection) { Ok(refusals) } else { Err(DatabaseError::Moved) }
    }

    fn store_in_transaction(&mut self, batch: &StoredLines) -> Result<Refusals, DatabaseError> {
        let is_removal_due = self.removed_at.is_none_or(|at| at.elapsed() >= REMOVAL_INTERVAL);
        let keep_days = self.keep_days.filter(|_| is_removal_due);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let place = batch.place;
        let stored = place.map_or(Ok(0), |place| place.stored(&transaction))?;
        let base = place.map_or(0, |place| place.base);
        let (mut from, mut reached) = (0, stored);
        let mut refusals = Refusals::default();
        for mark in &batch.marks {
            let end = mark.end as usize - batch.before;
            let end_in_batch = base + u64::from(mark.end);
            if end_in_batch > stored {
                match insert(&transaction, &RecordParts::read(&batch.bytes[from..end])) {
                    Ok(0) => refusals.add(*mark, refusal("a trigger leaves it out")),
                    Ok(_) => {}
                    // The statement left nothing behind, so the transaction goes on.
                    Err(error) if is_refusal(&error) && !transaction.is_autocommit() => {
                        refusals.add(*mark, refusal(&error.to_string()))
                    }
                    Err(error) => return Err(error.into()),
                }
                reached = end_in_batch;
            }
            from = end;
        }
        if let Some(place) = place.filter(|_| reached > stored) {
            place.note(&transaction, reached)?;
        }
        let removed = keep_days.map(|days| remove_old(&transaction, days)).transpose()?;
        transaction.commit()?;
        // Whatever more is old is removed with the next write.
        if removed.is_some_and(|count| count < REMOVED_RECORDS) {
            self.removed_at = Some(Instant::now());
        }
        Ok(refusals)
    }

    /// Ends the use of a database that was moved away. Its place is then free for another one.
    ///
    /// # Errors
    ///
    /// Another program reads it, or it cannot be used.
    pub fn leave(&mut self) -> Result<(), DatabaseError> {
        Ok(self.files.leave(&mut self.connection)?)
    }

    /// Closes the database at once, and leaves its log for the next use.
    pub fn close_soon(self) {
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    }
}

/// Whether the error is about the values of one record.
fn is_refusal(error: &rusqlite::Error) -> bool {
    let codes = [ErrorCode::ConstraintViolation, ErrorCode::TypeMismatch, ErrorCode::TooBig];
    error.sqlite_error_code().is_some_and(|code| codes.contains(&code))
}

fn refusal(why: &str) -> io::Error {
    io::Error::other(format!("the database refuses a record: {why} (fix: its constraints and triggers)"))
}

/// Adds a record, and returns the number of rows that were added.
fn insert(transaction: &Transaction<'_>, parts: &RecordParts<'_>) -> rusqlite::Result<usize> {
    let time_ns = i64::from(parts.seconds) * 1_000_000_000 + i64::from(parts.nanoseconds);
    let mut fields = serde_json::Map::new();
    for (name, value) in &parts.fields {
        let mut name = name.clone().into_owned();
        while fields.contains_key(&name) {
            name.push('_');
        }
        fields.insert(name, serde_json::to_value(value).unwrap_or(serde_json::Value::Null));
    }
    // The thread's id tells nothing after the process has ended, so it is shown only if the thread has no name.
    let thread = parts.thread_name.as_deref().map(str::to_owned).or(parts.thread.map(|thread| thread.to_string()));
    let exception = match (&parts.exception, &parts.stack) {
        (Some(exception), Some(stack)) => Some(format!("{exception}\n{stack}")),
        (Some(text), None) | (None, Some(text)) => Some(text.clone().into_owned()),
        (None, None) => None,
    };
    transaction.prepare_cached(INSERT)?.execute(params![
        time_ns,
        parts.level,
        &*parts.logger,
        &*parts.message,
        parts.file.as_deref(),
        parts.line,
        parts.function.as_deref(),
        parts.process,
        &*parts.host,
        thread,
        exception,
        (!fields.is_empty()).then(|| serde_json::Value::Object(fields).to_string()),
    ])
}

/// Removes some of the records that are older than `days`. Returns their number.
fn remove_old(transaction: &Transaction<'_>, days: u32) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM records WHERE id IN (
        SELECT id FROM records WHERE time_ns < (CAST(strftime('%s') AS INTEGER) - ?1 * 86400) * 1000000000 LIMIT ?2)";
    transaction.execute(sql, params![days, REMOVED_RECORDS as i64])
}

fn no_database() -> io::Error {
    let why = "the file is not a SQLite database (fix: another path, or move the file away)";
    io::Error::new(ErrorKind::InvalidData, why)
}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> Self {
        let text = |why: String| Self::Other(io::Error::other(why));
        if is_refusal(&error) {
            return Self::Refused(refusal(&error.to_string()));
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy(io::Error::other("another program locks the database (fix: end its transaction, or wait)"))
            }
            Some(ErrorCode::DiskFull) => Self::Other(io::Error::from_raw_os_error(libc::ENOSPC)),
            Some(ErrorCode::NotADatabase) => Self::Other(no_database()),
            Some(ErrorCode::DatabaseCorrupt) => {
                text(format!("the database is damaged: {error} (fix: move the file away)"))
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                text(format!("cannot write to the database: {error} (fix: the rights of the file and its folder)"))
            }
            _ => text(format!("SQLite: {error}")),
        }
    }
}
