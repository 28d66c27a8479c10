//! The file of a day, open to be written: how it comes to be, and how it is sealed.
//!
//! It is made in one transaction, with the watermarks of all streams that live, and counts from then on. A sealed file
//! is never written to again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::catalog::{Catalog, Entry};
use super::damage::Damages;
use super::database::{self, Kind, Schema};
use super::failure::{MEND_DAMAGE, failed};
use super::folder::{Day, cut_off, is_gone};
use super::recent::Recent;
use super::transaction;
use crate::delivery::Delivery;
use crate::stores::{StoreError, Written};

/// Chosen: a week. A stream of which nothing was heard for so long has no batch left to send again; of one that has,
/// the batch would be stored twice.
const FORGOTTEN_AFTER_NS: i64 = 7 * 86_400_000_000_000;

/// How far a stream is stored, as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    name: String,
    epoch: i64,
    last: i64,
    seen_ns: i64,
}

/// The file of a day.
#[derive(Debug)]
pub(super) struct DayFile {
    connection: Connection,
    path: PathBuf,
    name: String,
    /// Its day.
    pub day: Day,
    sequence: i64,
    /// Whether file and catalog say that it is sealed.
    sealed: bool,
    /// Device and inode: whether the path still names it.
    identity: Option<(u64, u64)>,
}

/// What a file says of itself.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    /// For the catalog.
    pub entry: Entry,
    /// Whether the transaction that made it was committed.
    pub ready: bool,
    /// Told by chance: the index of another file is none of this one.
    pub identity: i64,
}

impl DayFile {
    /// Makes a file that is not there, and writes all of it at once.
    pub fn create(folder: &Path, name: &str, day: Day, sequence: i64, streams: &[Stream]) -> Result<Self, StoreError> {
        let path = folder.join(name);
        let connection = database::open(Kind::Day, &path)?;
        let create = || {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            database::create_schema(Kind::Day, &connection)?;
            let mut insert = connection.prepare("INSERT INTO streams VALUES(?, ?, ?, ?)")?;
            for stream in streams {
                insert.execute(params![stream.name, stream.epoch, stream.last, stream.seen_ns])?;
            }
            let sql = "INSERT INTO file_state VALUES(1, random(), ?, 1, 0, NULL, NULL, 0)";
            connection.execute(sql, [sequence])?;
            connection.execute_batch("COMMIT")
        };
        create().map_err(|error| failed("create", &path, &error))?;
        let identity = identity(&path);
        Ok(Self { connection, path, name: name.to_owned(), day, sequence, sealed: false, identity })
    }

    /// Opens one that is there.
    pub fn open(folder: &Path, entry: &Entry, day: Day) -> Result<Self, StoreError> {
        let path = folder.join(&entry.name);
        let connection = database::open(Kind::Day, &path)?;
        let (name, sequence, sealed) = (entry.name.clone(), entry.sequence, entry.sealed);
        let identity = identity(&path);
        Ok(Self { connection, path, name, day, sequence, sealed, identity })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether somebody has moved or removed the file. Records written to it now would never be found.
    pub fn is_moved(&self) -> bool {
        let found = identity(&self.path);
        found != self.identity && (found.is_some() || is_gone(&self.path))
    }

    /// Its place among all files.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// What the catalog says of it while it is written.
    pub fn entry(&self) -> Entry {
        Entry { sequence: self.sequence, name: self.name.clone(), sealed: false, range: None, rows: 0 }
    }

    /// The streams that live; all of them where the time is not to be believed: `None`.
    pub fn streams(&self, now_ns: Option<i64>) -> Result<Vec<Stream>, StoreError> {
        read_streams(&self.connection, &self.path, now_ns)
    }

    /// Writes batches in one transaction.
    pub fn write(
        &mut self,
        deliveries: &[Arc<Delivery>],
        now_ns: i64,
        recent: Option<&Recent>,
    ) -> rusqlite::Result<Written> {
        let sequence = self.sequence;
        let tell = |stored| {
            if let Some(recent) = recent {
                recent.add(sequence, stored);
            }
        };
        transaction::write(&mut self.connection, deliveries, now_ns, tell)
    }

    /// Ends the writing to it, and tells the catalog what it holds, once.
    pub fn seal(&mut self, catalog: &Catalog) -> Result<(), StoreError> {
        if self.sealed {
            return Ok(());
        }
        let seal = || {
            self.connection.execute("UPDATE file_state SET sealed = 1", [])?;
            read_state(&self.connection, &self.name)
        };
        if let Some(state) = seal().map_err(|error| failed("seal", &self.path, &error))? {
            catalog.put(&state.entry)?;
        }
        self.sealed = true;
        Ok(())
    }

    /// Takes the log of SQLite into the file, so that it can be read where nothing may be written. Cannot be while it
    /// is read.
    pub fn stand_alone(&self) -> bool {
        let changed = self.connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0));
        changed.is_ok_and(|mode: String| mode == "delete")
    }

    /// Closes it.
    pub fn close(self) -> Result<(), StoreError> {
        self.connection.close().map_err(|(_, error)| failed("close", &self.path, &error))
    }
}

fn read_streams(connection: &Connection, path: &Path, now_ns: Option<i64>) -> Result<Vec<Stream>, StoreError> {
    let read =
        |row: &Row<'_>| Ok(Stream { name: row.get(0)?, epoch: row.get(1)?, last: row.get(2)?, seen_ns: row.get(3)? });
    // The newest sign of life is the measure, not the clock, which may be wrong by years. One that lies ahead is
    // none: then the clock was wrong, and by it all others would be old. Where all do, or without a time, none is
    // forgotten.
    let sql = "SELECT stream, epoch, last, seen_ns FROM streams WHERE seen_ns >=
               ifnull((SELECT max(seen_ns) FROM streams WHERE seen_ns <= ?1) - ?2, seen_ns)";
    let query = || {
        let mut statement = connection.prepare(sql)?;
        statement.query_map(params![now_ns, FORGOTTEN_AFTER_NS], read)?.collect::<rusqlite::Result<_>>()
    };
    query().map_err(|error| failed("read", path, &error))
}

/// The streams of the newest file that can be read. Of streams that went on in a newer file some records may be stored
/// twice.
pub(super) fn newest_streams(folder: &Path, entries: &[Entry], damages: &Damages) -> Result<Vec<Stream>, StoreError> {
    for entry in entries.iter().rev().filter(|entry| !damages.has(&entry.name)) {
        let path = folder.join(&entry.name);
        let read = database::open_read(Kind::Day, &path, None);
        match read.and_then(|connection| read_streams(&connection, &path, None)) {
            Err(StoreError::Fatal(why)) => damages.note(folder, &entry.name, &why),
            streams => return streams,
        }
    }
    Ok(Vec::new())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// How a file was found.
#[derive(Debug)]
pub(super) enum Condition {
    /// It can be used.
    Whole(FileState),
    /// The transaction that makes it was not committed.
    Unmade,
    /// It cannot be read: why, with the mend.
    Damaged(String),
    /// A newer logspool made it: what to do.
    Newer(String),
}

/// Looks at a file of a day.
///
/// # Errors
///
/// It cannot be told now.
pub(super) fn condition(folder: &Path, name: &str) -> Result<Condition, StoreError> {
    let path = folder.join(name);
    let look = || {
        // Not to be read only: what a process that was killed left half-way has to be taken in, or back.
        let connection = database::connect(&path)?;
        let error = |error| failed("read", &path, &error);
        Ok(match database::schema(Kind::Day, &connection).map_err(error)? {
            Schema::None => Condition::Unmade,
            Schema::Ours => {
                database::check_tables(&connection).map_err(error)?;
                match read_state(&connection, name).map_err(error)? {
                    Some(state) if state.ready => Condition::Whole(state),
                    _ => Condition::Unmade,
                }
            }
            schema => {
                let why = schema.problem(&path).unwrap_or_default();
                if matches!(schema, Schema::Newer(_)) { Condition::Newer(why) } else { Condition::Damaged(why) }
            }
        })
    };
    match look() {
        Err(StoreError::Fatal(why)) => Ok(Condition::Damaged(why)),
        condition => condition,
    }
}

/// Why a sealed file cannot be read, as far as a look at its schema and its length tells.
pub(super) fn sealed_problem(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    if let Some((bytes, wanted)) = cut_off(&path) {
        let why = format!("it is cut off, {bytes} of {wanted} bytes are left");
        return Some(format!("cannot read {}: {why}; {MEND_DAMAGE}", path.display()));
    }
    let read = || {
        let connection = database::open_read(Kind::Day, &path, None)?;
        let checked = database::check_tables(&connection).and_then(|()| read_state(&connection, name));
        checked.map_err(|error| failed("read", &path, &error))
    };
    match read() {
        Ok(_) => None,
        Err(StoreError::Fatal(why)) => Some(why),
        Err(StoreError::Retry(why)) => {
            tracing::warn!("{why}");
            None
        }
    }
}

/// What an open file says of itself.
pub(super) fn read_state(connection: &Connection, name: &str) -> rusqlite::Result<Option<FileState>> {
    let sql = "SELECT sequence, ready, sealed, min_time_ns, max_time_ns, rows, identity FROM file_state";
    let read = |row: &Row<'_>| {
        let range = row.get::<_, Option<i64>>(3)?.zip(row.get(4)?);
        let entry =
            Entry { sequence: row.get(0)?, name: name.to_owned(), sealed: row.get(2)?, range, rows: row.get(5)? };
        Ok(FileState { entry, ready: row.get(1)?, identity: row.get(6)? })
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    rows.next()?.map(read).transpose()
}
