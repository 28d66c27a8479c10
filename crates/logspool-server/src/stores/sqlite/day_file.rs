//! A day's file, open for writing. Creates it, writes to it and seals it.
//!
//! The file is created in one transaction, with the marks of all streams that are kept. Once that transaction is
//! committed, the store uses the file. A sealed file is never written again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::catalog::{Catalog, CatalogEntry};
use super::damage::DamageNotes;
use super::database::{self, DatabaseKind, STREAM_COLUMNS, Schema};
use super::failure::{REPAIR_DAMAGE, failed};
use super::folder::{Day, cut_off, is_gone};
use super::recent::RecentTraces;
use super::transaction;
use crate::delivery::Delivery;
use crate::stores::mark::Gaps;
use crate::stores::{StoreError, WriteResult};

/// How long a silent stream is kept. Chosen: after a week a stream is assumed to have no unacknowledged batch. If it
/// has one, the batch may be stored twice.
const STREAM_RETENTION_NS: i64 = 7 * 86_400_000_000_000;

/// The mark of a stream as stored in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredStream {
    name: String,
    epoch: i64,
    last: i64,
    seen_ns: i64,
    gaps: Option<String>,
    ended: bool,
}

/// The file of a day.
#[derive(Debug)]
pub(super) struct DayFile {
    connection: Connection,
    path: PathBuf,
    name: String,
    /// The day on which the file was created.
    pub day: Day,
    sequence: i64,
    /// True if the file and the catalog are both marked as sealed.
    sealed: bool,
    /// Device and inode of the file, to check that the path still names it.
    identity: Option<(u64, u64)>,
}

/// The row of the table `file_state` of a file.
#[derive(Debug, Clone)]
pub(super) struct FileState {
    /// The entry for the catalog.
    pub entry: CatalogEntry,
    /// True if the transaction that created the file was committed.
    pub ready: bool,
    /// A random number that is also stored in the index. An index with another number does not belong to this file.
    pub identity: i64,
}

impl DayFile {
    /// Creates a file, with its tables and streams, in one transaction.
    pub fn create(
        folder: &Path,
        name: &str,
        day: Day,
        sequence: i64,
        streams: &[StoredStream],
    ) -> Result<Self, StoreError> {
        let path = folder.join(name);
        let connection = database::open(DatabaseKind::Day, &path)?;
        let create = || {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            database::create_schema(DatabaseKind::Day, &connection)?;
            let mut insert =
                connection.prepare(&format!("INSERT INTO streams({STREAM_COLUMNS}) VALUES(?, ?, ?, ?, ?, ?)"))?;
            for StoredStream { name, epoch, last, seen_ns, gaps, ended } in streams {
                insert.execute(params![name, epoch, last, seen_ns, gaps, ended])?;
            }
            let sql = "INSERT INTO file_state VALUES(1, random(), ?, 1, 0, NULL, NULL, 0)";
            connection.execute(sql, [sequence])?;
            connection.execute_batch("COMMIT")
        };
        create().map_err(|error| failed("create", &path, &error))?;
        let identity = identity(&path);
        Ok(Self { connection, path, name: name.to_owned(), day, sequence, sealed: false, identity })
    }

    /// Opens an existing file.
    pub fn open(folder: &Path, entry: &CatalogEntry, day: Day) -> Result<Self, StoreError> {
        let path = folder.join(&entry.name);
        let connection = database::open(DatabaseKind::Day, &path)?;
        let (name, sequence, sealed) = (entry.name.clone(), entry.sequence, entry.sealed);
        let identity = identity(&path);
        Ok(Self { connection, path, name, day, sequence, sealed, identity })
    }

    /// Opens an existing file to write more records into it, and updates a file of an older version.
    pub fn open_newest(folder: &Path, entry: &CatalogEntry, day: Day) -> Result<Self, StoreError> {
        let file = Self::open(folder, entry, day)?;
        database::update_day_file(&file.connection).map_err(|error| failed("update", &file.path, &error))?;
        Ok(file)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's name in the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if the file was moved or removed. Records that are written to it now would never be found.
    pub fn is_moved(&self) -> bool {
        let found = identity(&self.path);
        found != self.identity && (found.is_some() || is_gone(&self.path))
    }

    /// The file's number in order of creation.
    pub fn sequence(&self) -> i64 {
        self.sequence
    }

    /// The catalog's entry for the file before it is sealed.
    pub fn entry(&self) -> CatalogEntry {
        CatalogEntry { sequence: self.sequence, name: self.name.clone(), sealed: false, range: None, rows: 0 }
    }

    /// The streams to keep. If the clock is in doubt, `now_ns` is `None`, and all streams are returned.
    pub fn streams(&self, now_ns: Option<i64>) -> Result<Vec<StoredStream>, StoreError> {
        read_streams(&self.connection, &self.path, now_ns)
    }

    /// Number of records in open gaps.
    pub fn open_gaps(&self) -> Result<u64, StoreError> {
        let query = || {
            let mut statement = self.connection.prepare_cached("SELECT gaps FROM streams WHERE gaps IS NOT NULL")?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        Ok(records_of(query().map_err(|error| failed("read", &self.path, &error))?.iter().map(String::as_str)))
    }

    /// Writes batches in one transaction.
    pub fn write(
        &mut self,
        deliveries: &[Arc<Delivery>],
        now_ns: i64,
        recent: Option<&RecentTraces>,
    ) -> rusqlite::Result<WriteResult> {
        let sequence = self.sequence;
        let tell = |stored| {
            if let Some(recent) = recent {
                recent.add(sequence, stored);
            }
        };
        transaction::write(&mut self.connection, deliveries, now_ns, tell)
    }

    /// Seals the file and puts its final state into the catalog. Does nothing if the file is sealed already.
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

    /// Copies SQLite's log into the file, so that the file can be read from a read-only disk or folder. Returns false
    /// if that fails, for example while the file is being read.
    pub fn checkpoint_log(&self) -> bool {
        let changed = self.connection.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0));
        changed.is_ok_and(|mode: String| mode == "delete")
    }

    /// Closes the file.
    pub fn close(self) -> Result<(), StoreError> {
        self.connection.close().map_err(|(_, error)| failed("close", &self.path, &error))
    }
}

fn read_streams(connection: &Connection, path: &Path, now_ns: Option<i64>) -> Result<Vec<StoredStream>, StoreError> {
    let read = |row: &Row<'_>| {
        let (gaps, ended) = (row.get(4)?, row.get(5)?);
        Ok(StoredStream { name: row.get(0)?, epoch: row.get(1)?, last: row.get(2)?, seen_ns: row.get(3)?, gaps, ended })
    };
    // The age of a stream is measured from the newest `seen_ns` and not from the clock, which may be wrong by years.
    // Times later than now are ignored: they come from a wrong clock, and compared with them all other streams would
    // look old. If all times are later than now, or now is unknown, no stream is omitted.
    let query = || {
        let columns = match database::version(connection)? {
            ..3 => "stream, epoch, last, seen_ns, NULL, 0",
            _ => STREAM_COLUMNS,
        };
        let mut statement = connection.prepare(&format!(
            "SELECT {columns} FROM streams WHERE seen_ns >=
             ifnull((SELECT max(seen_ns) FROM streams WHERE seen_ns <= ?1) - ?2, seen_ns)"
        ))?;
        statement.query_map(params![now_ns, STREAM_RETENTION_NS], read)?.collect::<rusqlite::Result<_>>()
    };
    query().map_err(|error| failed("read", path, &error))
}

/// Number of records in the gaps of streams.
pub(super) fn records_of<'a>(gaps: impl Iterator<Item = &'a str>) -> u64 {
    gaps.filter_map(|text| Gaps::parse(Some(text)).ok()).fold(0, |sum, gaps| sum.saturating_add(gaps.records()))
}

impl StoredStream {
    /// The gaps of the stream.
    pub fn gaps(&self) -> Option<&str> {
        self.gaps.as_deref()
    }
}

/// The streams of the newest file that can be read. If a newer, unreadable file has later records of a stream, some of
/// its records may be stored twice.
pub(super) fn newest_streams(
    folder: &Path,
    entries: &[CatalogEntry],
    damages: &DamageNotes,
) -> Result<Vec<StoredStream>, StoreError> {
    for entry in entries.iter().rev().filter(|entry| !damages.has(&entry.name)) {
        let path = folder.join(&entry.name);
        let read = database::open_read(DatabaseKind::Day, &path, None);
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

/// The condition of a file.
#[derive(Debug)]
pub(super) enum FileCondition {
    /// The file can be used.
    Usable(FileState),
    /// The transaction that creates the file was not committed, so the file has no records.
    Uncommitted,
    /// The file cannot be read. The text has the reason and how to repair it.
    Damaged(String),
    /// A newer logspool wrote the file. The text says what to do.
    Newer(String),
}

/// Checks a day file.
///
/// # Errors
///
/// The condition cannot be determined now.
pub(super) fn condition(folder: &Path, name: &str) -> Result<FileCondition, StoreError> {
    let path = folder.join(name);
    let look = || {
        // The connection is not read-only, because SQLite may have to recover the log or journal of a killed process.
        let connection = database::connect(&path)?;
        let error = |error| failed("read", &path, &error);
        Ok(match database::schema(DatabaseKind::Day, &connection).map_err(error)? {
            Schema::None => FileCondition::Uncommitted,
            Schema::Ours => {
                database::check_tables(&connection).map_err(error)?;
                match read_state(&connection, name).map_err(error)? {
                    Some(state) if state.ready => FileCondition::Usable(state),
                    _ => FileCondition::Uncommitted,
                }
            }
            schema => {
                let why = schema.problem(&path).unwrap_or_default();
                if matches!(schema, Schema::Newer { .. }) {
                    FileCondition::Newer(why)
                } else {
                    FileCondition::Damaged(why)
                }
            }
        })
    };
    match look() {
        Err(StoreError::Fatal(why)) => Ok(FileCondition::Damaged(why)),
        condition => condition,
    }
}

/// The reason why a sealed file cannot be read, found by checks of its schema and its length. `None`: no damage was
/// found.
pub(super) fn sealed_problem(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    if let Some((bytes, wanted)) = cut_off(&path) {
        let why = format!("it is truncated: {bytes} of {wanted} bytes are left");
        return Some(format!("cannot read {}: {why}; {REPAIR_DAMAGE}", path.display()));
    }
    let read = || {
        let connection = database::open_read(DatabaseKind::Day, &path, None)?;
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

/// Reads the state row of an open file.
pub(super) fn read_state(connection: &Connection, name: &str) -> rusqlite::Result<Option<FileState>> {
    let sql = "SELECT sequence, ready, sealed, min_time_ns, max_time_ns, rows, identity FROM file_state";
    let read = |row: &Row<'_>| {
        let range = row.get::<_, Option<i64>>(3)?.zip(row.get(4)?);
        let entry = CatalogEntry {
            sequence: row.get(0)?,
            name: name.to_owned(),
            sealed: row.get(2)?,
            range,
            rows: row.get(5)?,
        };
        Ok(FileState { entry, ready: row.get(1)?, identity: row.get(6)? })
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    rows.next()?.map(read).transpose()
}
