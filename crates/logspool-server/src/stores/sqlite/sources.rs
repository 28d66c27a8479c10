//! The records of one file that match a query, newest first.
//!
//! The records come from one or more sources, and each source has them newest first. A source is either the pages of an
//! index with times, or a list of records from an index without times. No record is in two sources.

use std::collections::VecDeque;

use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::database::COLUMNS;
use super::folder::index_of;
use super::plan::{BoundStatement, FilePart, IndexChoice, PageStatements, may_have_level};
use super::read_file::{ReadFile, record, text_bytes, warn_damaged_index};
use super::recent::RecentTraces;
use crate::query::Query;
use crate::record::Record;
use crate::stores::StoreError;

/// Maximum number of records taken from an index without times. If there are more, the index on time is used.
///
/// Chosen: each record costs one lookup, so this number of records takes about 50 ms. For words with more matches,
/// reading all records from the newest on is fast enough. The first hundred matches are then among the last few million
/// records.
const MAX_LISTED: usize = 20_000;

/// Maximum number of levels of a logger for which the index is used. Each level is a source of its own. Python has five
/// levels.
const MAX_LEVELS: usize = 16;

/// The number of rows of the first page and the maximum number of rows of a page. Each page has twice as many rows as
/// the one before.
const PAGE_ROWS: (i64, i64) = (64, 1024);

/// A page ends when its texts have more than this number of bytes, because its records are in memory.
const PAGE_BYTES: usize = 1 << 20;

/// The time and the number of a record. Records with greater positions come first in the answer.
pub(super) type Position = (i64, i64);

/// The sources of the records of one file.
#[derive(Debug)]
pub(super) struct FileSources {
    file: ReadFile,
    sources: Vec<RecordSource>,
}

#[derive(Debug)]
struct RecordSource {
    kind: SourceKind,
    page: VecDeque<(Position, Record<'static>)>,
    rows: i64,
}

#[derive(Debug)]
enum SourceKind {
    Pages {
        page: PageStatements,
        after: Position,
    },
    /// The records that are not read yet. The newest one is the last.
    List(Vec<Position>),
    Ended,
}

impl FileSources {
    /// Plans how the file is read.
    pub fn of(file: ReadFile, query: &Query, recent: &RecentTraces) -> Self {
        let kinds = match file.indexed_to {
            Some(end) => by_index(&file, query, end, recent).unwrap_or_else(|error| {
                warn_damaged_index(&index_of(&file.path), &error);
                None
            }),
            None => None,
        };
        let kinds = kinds.unwrap_or_else(|| vec![pages(&FilePart::ByTime, query)]);
        let source = |kind| RecordSource { kind, page: VecDeque::new(), rows: PAGE_ROWS.0 };
        Self { file, sources: kinds.into_iter().map(source).collect() }
    }

    /// The file's number in order of creation.
    pub fn sequence(&self) -> i64 {
        self.file.sequence
    }

    /// The time of the next record; `None` at the end.
    pub fn next_time(&mut self) -> Result<Option<i64>, StoreError> {
        let newest = self.newest()?;
        Ok(newest.map(|(_, (time_ns, _))| time_ns))
    }

    /// Removes and returns the next record.
    pub fn take(&mut self) -> Result<Option<Record<'static>>, StoreError> {
        let Some((at, _)) = self.newest()? else { return Ok(None) };
        Ok(self.sources[at].page.pop_front().map(|(_, record)| record))
    }

    /// Releases memory while the answer pauses.
    pub fn release_memory(&self) {
        self.file.release_memory();
    }

    fn newest(&mut self) -> Result<Option<(usize, Position)>, StoreError> {
        let mut newest: Option<(usize, Position)> = None;
        for (at, source) in self.sources.iter_mut().enumerate() {
            if source.page.is_empty() {
                source.fill(&self.file.connection).map_err(|error| {
                    warn_damaged_index(&index_of(&self.file.path), &error);
                    self.file.failed(&error)
                })?;
            }
            if let Some((position, _)) = source.page.front()
                && newest.is_none_or(|(_, other)| *position > other)
            {
                newest = Some((at, *position));
            }
        }
        Ok(newest)
    }
}

impl RecordSource {
    fn fill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        match &mut self.kind {
            SourceKind::Pages { page, after } => {
                let begin = *after;
                let mut is_full = read(connection, page.same_time(begin, self.rows), &mut self.page, after)?;
                let rest = self.rows - self.page.len() as i64;
                if !is_full && rest > 0 {
                    is_full = read(connection, page.before(begin, rest), &mut self.page, after)?;
                }
                // There are no more records. Another query would only read all non-matching records again.
                if !is_full && (self.page.len() as i64) < self.rows {
                    self.kind = SourceKind::Ended;
                }
            }
            SourceKind::List(list) => {
                let mut statement =
                    connection.prepare_cached(&format!("SELECT {COLUMNS} FROM records WHERE id = ?"))?;
                let mut bytes = 0;
                while bytes < PAGE_BYTES && (self.page.len() as i64) < self.rows {
                    let Some(position) = list.pop() else { break };
                    let read = |row: &Row<'_>| Ok((record(row, 0)?, text_bytes(row)));
                    if let Some((record, more)) = statement.query_one([position.1], read).optional()? {
                        bytes += more;
                        self.page.push_back((position, record));
                    }
                }
            }
            SourceKind::Ended => {}
        }
        self.rows = (self.rows * 2).min(PAGE_ROWS.1);
        Ok(())
    }
}

/// Reads records into a page. Stops and returns true when their texts have more than [`PAGE_BYTES`].
fn read(
    connection: &Connection,
    BoundStatement { sql, values }: &BoundStatement,
    page: &mut VecDeque<(Position, Record<'static>)>,
    last: &mut Position,
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let record = record(row, 1)?;
        *last = (record.time_ns.unwrap_or_default(), row.get(0)?);
        bytes += text_bytes(row);
        page.push_back((*last, record));
        if bytes > PAGE_BYTES {
            return Ok(true);
        }
    }
    Ok(false)
}

fn pages(piece: &FilePart, query: &Query) -> SourceKind {
    // A position that comes before all records in the answer.
    let after = (query.until_ns.unwrap_or(i64::MAX), if query.until_ns.is_some() { i64::MIN } else { i64::MAX });
    SourceKind::Pages { page: piece.page(query), after }
}

/// The sources of a query that uses an index, which has the records up to `end`. `None`: the index does not help.
fn by_index(
    file: &ReadFile,
    query: &Query,
    end: i64,
    recent: &RecentTraces,
) -> rusqlite::Result<Option<Vec<SourceKind>>> {
    let connection = &file.connection;
    let mut kinds = Vec::new();
    let pieces = match IndexChoice::of(&query.filter) {
        IndexChoice::Time => return Ok(None),
        IndexChoice::Trace(trace) => match recent.find(file.sequence, &trace, end) {
            Some(found) if found.records.len() > MAX_LISTED => return Ok(None),
            Some(found) => {
                vec![FilePart::Trace(trace), FilePart::Between(end, found.after), FilePart::Listed(found.records)]
            }
            None => vec![FilePart::Trace(trace), FilePart::Tail(end)],
        },
        IndexChoice::Words(words) => vec![FilePart::Words(words), FilePart::Tail(end)],
        IndexChoice::Logger(logger) => {
            let levels = levels(connection, &logger)?;
            if levels.len() > MAX_LEVELS {
                return Ok(None);
            }
            let levels = levels.into_iter().filter(|level| may_have_level(&query.filter, *level));
            kinds.extend(levels.map(|level| pages(&FilePart::Logger(logger.clone(), level), query)));
            return Ok(list(connection, &FilePart::Tail(end), query)?.map(|tail| {
                kinds.push(tail);
                kinds
            }));
        }
    };
    for piece in pieces {
        match list(connection, &piece, query)? {
            Some(list) => kinds.push(list),
            None => return Ok(None),
        }
    }
    Ok(Some(kinds))
}

/// The matching records of a part of the file, as a list. `None`: there are more than [`MAX_LISTED`].
fn list(connection: &Connection, piece: &FilePart, query: &Query) -> rusqlite::Result<Option<SourceKind>> {
    if let Some(BoundStatement { sql, values }) = piece.exceeds(MAX_LISTED as i64)
        && connection.query_one(&sql, params_from_iter(values), |row| row.get(0))?
    {
        return Ok(None);
    }
    let BoundStatement { sql, values } = piece.candidates(query, MAX_LISTED + 1);
    let mut statement = connection.prepare(&sql)?;
    let positions = statement.query_map(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut positions = positions.collect::<rusqlite::Result<Vec<Position>>>()?;
    positions.sort_unstable();
    Ok((positions.len() <= MAX_LISTED).then_some(SourceKind::List(positions)))
}

/// The levels of a logger's records. One lookup in the index finds each next level.
fn levels(connection: &Connection, logger: &str) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT min(of_level) FROM ix.by_logger WHERE of_logger = ? AND of_level > ?";
    let mut statement = connection.prepare(sql)?;
    let mut levels = Vec::new();
    let mut last = -1;
    while let Some(level) = statement.query_one((logger, last), |row| row.get::<_, Option<i64>>(0))? {
        levels.push(level);
        last = level;
        if levels.len() > MAX_LEVELS {
            break;
        }
    }
    Ok(levels)
}
