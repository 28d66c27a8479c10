//! The open database: its tables, one transaction for each write, and its errors.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, params};

use super::progress::{self, BatchPlace};
use super::sync_mode::SyncMode;
use crate::sink::Lines;
use crate::sinks::parts::RecordParts;

/// How long one call of SQLite waits for a lock. Then the writer of the sink checks whether it has a new order.
const LOCK_WAIT: Duration = Duration::from_millis(50);

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
    /// Any other error.
    Other(io::Error),
}

/// An open database.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// The process that opened it.
    process: u32,
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
        let process = std::process::id();
        Ok(Self { connection, path: path.to_owned(), process, keep_days, removed_at: None })
    }

    /// Whether this process opened it. Otherwise a fork copied it.
    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// Limits the size of the database, as a full disk does.
    #[cfg(test)]
    pub fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    }

    /// Stores all records of `lines`, except those that an earlier write of the same place has stored.
    ///
    /// # Errors
    ///
    /// The database is locked, full, or cannot be used.
    pub fn store(&mut self, lines: &Lines<'_>, place: Option<BatchPlace>) -> Result<(), DatabaseError> {
        let is_removal_due = self.removed_at.is_none_or(|at| at.elapsed() >= REMOVAL_INTERVAL);
        let keep_days = self.keep_days.filter(|_| is_removal_due);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let stored = place.map_or(Ok(0), |place| place.stored(&transaction))?;
        let base = place.map_or(0, |place| place.base);
        let mut from = 0;
        let mut reached = stored;
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            let end_in_batch = base + u64::from(mark.end);
            if end_in_batch > stored {
                insert(&transaction, &RecordParts::read(&lines.bytes[from..end]))?;
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
        Ok(())
    }

    /// Makes all commits durable, by a sync of the log and of the folder with the files of the database.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn sync(&self) -> io::Result<()> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        // SQLite has no locks on its log, so opening and closing it here releases none.
        match File::open(log) {
            Ok(log) => log.sync_data()?,
            // The last checkpoint, which syncs, has removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn insert(transaction: &Transaction<'_>, parts: &RecordParts<'_>) -> rusqlite::Result<()> {
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
    ])?;
    Ok(())
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
