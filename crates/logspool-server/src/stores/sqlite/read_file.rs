//! A day's file, open for reading. A query reads one snapshot of the file and of its index.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::catalog::CatalogEntry;
use super::database::{self, DatabaseKind};
use super::day_file::read_state;
use super::failure::{failed, is_damage};
use super::folder::{index_of, is_gone};
use crate::cancel::QueryDeadline;
use crate::query::functions;
use crate::record::{LinePart, Record};
use crate::stores::{QUERY_CANCELLED, StoreError};

/// A file open for reading.
#[derive(Debug)]
pub(super) struct ReadFile {
    /// A connection with an open transaction. If there is a usable index, it is attached as `ix`.
    pub connection: Connection,
    /// Path of the file.
    pub path: PathBuf,
    /// The file's number in order of creation.
    pub sequence: i64,
    /// Number of the last indexed record. `None`: there is no usable index.
    pub indexed_to: Option<i64>,
    /// The file's state in this snapshot.
    pub entry: CatalogEntry,
    until: QueryDeadline,
}

impl ReadFile {
    /// Opens a file. `None`: the file was removed after the catalog was read.
    pub fn open(folder: &Path, entry: &CatalogEntry, until: &QueryDeadline) -> Result<Option<Self>, StoreError> {
        let path = folder.join(&entry.name);
        let connection = match database::open_read(DatabaseKind::Day, &path, Some(until)) {
            Err(_) if is_gone(&path) => return Ok(None),
            connection => connection?,
        };
        let prepare = || {
            functions::register(&connection, until)?;
            let attached = attach(&connection, &index_of(&path));
            connection.execute_batch("BEGIN")?;
            // Read the index first. The snapshot of the file is taken later, so it has all records that the index has.
            let indexed = if attached { indexed(&connection) } else { None };
            let state = read_state(&connection, &entry.name)?;
            Ok((indexed, state))
        };
        let (indexed, state) = prepare().map_err(|error| failed("read", &path, &error))?;
        let Some(state) = state else {
            return Err(StoreError::Retry(format!("cannot read {}: it is incomplete", path.display())));
        };
        let is_its =
            |indexed: &IndexPosition| indexed.identity == state.identity && indexed.indexed_to <= state.entry.rows;
        let indexed_to = indexed.filter(is_its);
        Ok(Some(Self {
            connection,
            path,
            sequence: entry.sequence,
            indexed_to: indexed_to.map(|indexed| indexed.indexed_to),
            entry: state.entry,
            until: until.clone(),
        }))
    }

    /// Turns a SQLite error into the error of a query.
    pub fn failed(&self, error: &rusqlite::Error) -> StoreError {
        if self.until.cancel.is_cancelled() {
            return StoreError::Retry(QUERY_CANCELLED.to_owned());
        }
        if self.until.has_passed() {
            // The error is the same whether SQLite or one of the store's SQL functions noticed the deadline.
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT);
            return failed("search", &self.path, &rusqlite::Error::SqliteFailure(code, None));
        }
        if is_damage(error)
            && let Some(why) = self.damage_of_index(error)
        {
            return StoreError::Retry(why);
        }
        failed("search", &self.path, error)
    }

    /// The message for damage in the index. `None`: the damage is in the day's file. SQLite does not report which of
    /// the two is damaged, so the index is checked.
    fn damage_of_index(&self, error: &rusqlite::Error) -> Option<String> {
        self.indexed_to?;
        let index = index_of(&self.path);
        let checked = self.connection.query_one("PRAGMA ix.quick_check(1)", [], |row| row.get::<_, String>(0));
        match checked {
            Ok(verdict) if verdict == "ok" => None,
            Err(other) if !is_damage(&other) => Some(format!(
                "cannot search {} or {}: {error}; one of them is damaged; there was no time to find out which",
                self.path.display(),
                index.display()
            )),
            _ => Some(format!(
                "cannot search {}: {error}; remove this index; the service rebuilds it when it starts",
                index.display()
            )),
        }
    }

    /// Releases memory that SQLite caches for the next statement, while the answer pauses.
    pub fn release_memory(&self) {
        // If this fails, SQLite's cache size still limits the memory.
        let _ = self.connection.execute_batch("PRAGMA shrink_memory");
    }
}

/// The position of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexPosition {
    /// The identity of the index's day file.
    pub identity: i64,
    /// Number of the last indexed record.
    pub indexed_to: i64,
}

/// Attaches the index if it exists and can be read. Returns true if it can be used.
fn attach(connection: &Connection, path: &Path) -> bool {
    let Some(name) = path.to_str().filter(|_| path.exists()) else { return false };
    let version = || {
        connection.execute("ATTACH ? AS ix", [name])?;
        connection.pragma_query_value(Some("ix"), "user_version", |row| row.get::<_, i64>(0))
    };
    match version() {
        Ok(version) => version == DatabaseKind::Index.version(),
        Err(error) => {
            warn_damaged_index(path, &error);
            false
        }
    }
}

fn indexed(connection: &Connection) -> Option<IndexPosition> {
    let read = |row: &Row<'_>| Ok(IndexPosition { identity: row.get(0)?, indexed_to: row.get(1)? });
    // Errors are ignored: either the index is being created, or it is damaged, and the indexer will notice the damage.
    connection.query_one("SELECT identity, indexed_to FROM ix.progress", [], read).ok()
}

/// Logs a warning if the error is damage to the index. Queries work without the index, but more slowly.
pub(super) fn warn_damaged_index(index: &Path, error: &rusqlite::Error) {
    if is_damage(error) {
        tracing::warn!("cannot read {}: {error}; remove it, and it is rebuilt", index.display());
    }
}

/// The record in a row. Its columns begin at `from`, in the order of [`super::database::COLUMNS`].
pub(super) fn record(row: &Row<'_>, from: usize) -> rusqlite::Result<Record<'static>> {
    let text = |at: usize| -> rusqlite::Result<Option<Cow<'static, str>>> {
        Ok(match row.get_ref(from + at)? {
            ValueRef::Text(text) => Some(Cow::Owned(String::from_utf8_lossy(text).into_owned())),
            _ => None,
        })
    };
    let number = |at: usize| -> rusqlite::Result<Option<i64>> {
        Ok(match row.get_ref(from + at)? {
            ValueRef::Integer(number) => Some(number),
            _ => None,
        })
    };
    let id = |at: usize| Ok::<_, rusqlite::Error>(number(at)?.map(i64::cast_unsigned));
    let fields = text(17)?;
    Ok(Record {
        time_ns: number(0)?,
        arrived_ns: number(18)?,
        level: number(1)?.and_then(|level| u16::try_from(level).ok()).unwrap_or_default(),
        sent_level: None,
        lacks_zone: false,
        part: LinePart::Whole,
        logger: text(2)?.unwrap_or_default(),
        message: text(3)?.unwrap_or_default(),
        file: text(4)?,
        line: number(5)?.and_then(|line| u32::try_from(line).ok()),
        function: text(6)?,
        host: text(7)?,
        process: id(8)?,
        process_name: text(9)?,
        thread: id(10)?,
        thread_name: text(11)?,
        task: text(12)?,
        trace_id: text(13)?,
        span_id: text(14)?,
        exception: text(15)?,
        stack: text(16)?,
        fields: fields.as_deref().map(own_fields).unwrap_or_default(),
    })
}

/// Total bytes of the texts in a row.
pub(super) fn text_bytes(row: &Row<'_>) -> usize {
    let bytes = |at| match row.get_ref(at) {
        Ok(ValueRef::Text(text)) => text.len(),
        _ => 0,
    };
    (0..row.as_ref().column_count()).map(bytes).sum()
}

fn own_fields(json: &str) -> Vec<(Cow<'static, str>, crate::value::Value<'static>)> {
    let own =
        |(name, value): (Cow<'_, str>, crate::value::Value<'_>)| (Cow::Owned(name.into_owned()), value.into_owned());
    Record::fields_from_json(json).into_iter().map(own).collect()
}
