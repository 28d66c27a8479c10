//! The index of a day file. It has the words, traces and loggers of the records, in a separate database next to the
//! file.
//!
//! The index is filled in steps. Each step stores its records and its position in one transaction. After a kill the
//! index continues after its last step. After a power cut it continues a few steps earlier: SQLite does not sync each
//! step, but keeps the log consistent. The index stores the identity of its file. The index is rebuilt if it is
//! damaged, belongs to another file, or is ahead of its file. If the file is damaged, the index ends before the damage,
//! and queries read the later records without it.

use std::path::{Path, PathBuf};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::catalog::CatalogEntry;
use super::damage::DamageNotes;
use super::database::{self, DatabaseKind};
use super::day_file::read_state;
use super::failure::{failed, is_damage};
use super::folder::{index_of, remove_database};
use crate::query::Phrase;
use crate::stores::StoreError;

/// Maximum number of records of a step. Chosen: a step takes some 50 ms. A larger value would make a stop of the thread
/// wait longer, and SQLite cannot checkpoint the file's log during a step. Halving it makes FTS5 merge twice as often.
const STEP_RECORDS: i64 = 5_000;

/// A file and its index, open for the next step.
#[derive(Debug)]
pub(super) struct DayIndex {
    file: Connection,
    index: Connection,
    path: PathBuf,
    name: String,
    /// Number of the last indexed record; 0 before the first step.
    reached: i64,
}

/// The state of the index after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IndexProgress {
    /// There are more records.
    More,
    /// All records that the file has now are indexed.
    UpToDate,
    /// All records are indexed and the file is sealed.
    Finished,
    /// All readable records are indexed. The file is damaged after them, and the text describes the damage.
    Damaged(String),
}

/// The database that an error comes from.
enum IndexFault {
    File(rusqlite::Error),
    Index(rusqlite::Error),
}

impl From<rusqlite::Error> for IndexFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

impl DayIndex {
    /// Opens the index of a file, or creates it if there is no usable index. `None`: the index is finished already, or
    /// the file does not exist.
    pub fn open(folder: &Path, entry: &CatalogEntry, damages: &DamageNotes) -> Result<Option<Self>, StoreError> {
        let path = folder.join(&entry.name);
        if !path.exists() {
            return Ok(None);
        }
        let file = database::open_read(DatabaseKind::Day, &path, None)?;
        let state = read_state(&file, &entry.name).map_err(|error| failed("read", &path, &error))?;
        let Some(state) = state else { return Ok(None) };
        let day = path.clone();
        let path = index_of(&path);
        match find(&path, state.identity, state.entry.rows) {
            Ok(IndexState::Finished) => return Ok(None),
            Ok(IndexState::Unfinished) => {}
            Ok(IndexState::None) => start(&path, state.identity)?,
            Ok(IndexState::Ahead(records)) => {
                damages.note_loss(format!(
                    "{} has lost the last {records} records; its index still lists them. Check the disk, \
                     and restore the file from a backup if there is one",
                    day.display()
                ));
                start(&path, state.identity)?;
            }
            Err(StoreError::Retry(why)) => return Err(StoreError::Retry(why)),
            Err(StoreError::Fatal(why)) => {
                tracing::warn!("{why}; rebuilding it");
                start(&path, state.identity)?;
            }
        }
        let index = database::open(DatabaseKind::Index, &path)?;
        Ok(Some(Self { file, index, path, name: entry.name.clone(), reached: 0 }))
    }

    /// Indexes the next records.
    pub fn step(&mut self) -> Result<IndexProgress, StoreError> {
        self.index_next().or_else(|fault| match fault {
            IndexFault::File(error) => {
                let failure = failed("index", &self.path.with_file_name(&self.name), &error);
                if !is_damage(&error) {
                    return Err(failure);
                }
                Ok(IndexProgress::Damaged(failure.to_string()))
            }
            IndexFault::Index(error) => {
                if is_damage(&error) {
                    let _ = remove_database(&self.path);
                }
                Err(failed("index", &self.path, &error))
            }
        })
    }

    /// Number of the last indexed record; 0 before the first step since the index was opened.
    pub fn reached(&self) -> i64 {
        self.reached
    }

    fn index_next(&mut self) -> Result<IndexProgress, IndexFault> {
        // Read the state before the records: if the file is sealed now, it gets no more records.
        let state = read_state(&self.file, &self.name).map_err(IndexFault::File)?;
        let sealed = state.is_some_and(|state| state.entry.sealed);
        let transaction = self.index.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let from: i64 = transaction.query_one("SELECT indexed_to FROM progress", [], |row| row.get(0))?;
        let sql = "SELECT id, time_ns, level, logger, message, trace_id FROM records WHERE id > ? ORDER BY id LIMIT ?";
        let mut read = self.file.prepare_cached(sql).map_err(IndexFault::File)?;
        let mut rows = read.query([from, STEP_RECORDS]).map_err(IndexFault::File)?;
        let mut count = 0;
        let mut to = from;
        {
            let mut words = transaction.prepare_cached("INSERT INTO words(rowid, word) VALUES(?, ?)")?;
            let mut by_trace = transaction.prepare_cached("INSERT INTO by_trace VALUES(?, ?)")?;
            let mut by_logger = transaction.prepare_cached("INSERT INTO by_logger VALUES(?, ?, ?, ?)")?;
            while let Some(row) = rows.next().map_err(IndexFault::File)? {
                to = row.get(0)?;
                count += 1;
                let column = |at: usize| row.get_ref(at).map(ToSqlOutput::Borrowed);
                by_logger.execute(params![column(3)?, column(2)?, column(1)?, to])?;
                if let Some(trace) = row.get_ref(5)?.as_str_or_null().ok().flatten() {
                    by_trace.execute(params![trace, to])?;
                }
                // Index the words as queries split them. FTS5 splits ASCII text in the same way. For any other text,
                // FTS5 gets the words that are already split, with spaces between them.
                match row.get_ref(4)?.as_str() {
                    Ok(message) if message.is_ascii() => drop(words.execute(params![to, message])?),
                    Ok(message) => {
                        if let Some(phrase) = Phrase::new(message) {
                            words.execute(params![to, phrase.words.join(" ")])?;
                        }
                    }
                    Err(_) => {}
                }
            }
        }
        drop(rows);
        if to > from {
            transaction.execute("UPDATE progress SET indexed_to = ?", [to])?;
            transaction.commit()?;
        }
        self.reached = to;
        Ok(match (count < STEP_RECORDS, sealed) {
            (false, _) => IndexProgress::More,
            (true, false) => IndexProgress::UpToDate,
            (true, true) => IndexProgress::Finished,
        })
    }

    /// Marks the index as finished, and copies its log into it so that it can be read without the log. Returns false if
    /// a query is reading the index.
    pub fn finish(&self) -> Result<bool, StoreError> {
        let finish = || {
            self.index.execute("UPDATE progress SET finished = 1 WHERE finished = 0", [])?;
            self.index.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get::<_, String>(0))
        };
        match finish() {
            Ok(mode) => Ok(mode == "delete"),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
            Err(error) => Err(failed("finish", &self.path, &error)),
        }
    }
}

/// The state of an existing index.
#[derive(Debug)]
enum IndexState {
    /// There is no index of this file.
    None,
    /// The index is not finished.
    Unfinished,
    /// The file is sealed and all its records are indexed.
    Finished,
    /// The index has this many records more than the file.
    Ahead(i64),
}

/// Finds the state of the index at `path`. `identity` and `rows` are those of the day file.
fn find(path: &Path, identity: i64, rows: i64) -> Result<IndexState, StoreError> {
    if !path.exists() {
        return Ok(IndexState::None);
    }
    let index = database::open_as_is(DatabaseKind::Index, path)?;
    if !database::has_schema(DatabaseKind::Index, &index, path)? {
        return Ok(IndexState::None);
    }
    let sql = "SELECT finished, indexed_to FROM progress WHERE identity = ?";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(bool, i64)> =
        index.query_one(sql, [identity], read).optional().map_err(|error| failed("read", path, &error))?;
    Ok(match found {
        None => IndexState::None,
        Some((_, indexed_to)) if indexed_to > rows => IndexState::Ahead(indexed_to - rows),
        Some((true, _)) => IndexState::Finished,
        Some((false, _)) => IndexState::Unfinished,
    })
}

/// Creates an empty index. An existing index is removed first.
fn start(path: &Path, identity: i64) -> Result<(), StoreError> {
    remove_database(path)?;
    let index = database::open(DatabaseKind::Index, path)?;
    let create = || {
        index.execute_batch("BEGIN IMMEDIATE")?;
        database::create_schema(DatabaseKind::Index, &index)?;
        index.execute("INSERT INTO progress VALUES(1, ?, 0, 0)", [identity])?;
        index.execute_batch("COMMIT")
    };
    create().map_err(|error| failed("create", path, &error))
}
