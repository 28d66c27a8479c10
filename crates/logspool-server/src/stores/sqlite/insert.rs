//! Inserts records into the tables of a day file, in one transaction.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, params};

use super::database::{COLUMN_COUNT, COLUMNS};
use super::failure::is_of_a_record;
use super::recent::StoredTraces;
use crate::batch::Row;

/// Number of records per statement. Measured: inserting 50 records per statement is a fifth faster than one by one.
const ROWS_PER_STATEMENT: usize = 50;

/// Maximum bytes of a record in quarantine. A source does not accept records that are this large.
const QUARANTINE_BYTES: usize = 4 << 20;

/// The nanoseconds of a minute.
pub(super) const MINUTE_NS: i64 = 60_000_000_000;

/// The number of records for each minute, logger and level.
pub(super) type Rollup<'a> = HashMap<(i64, &'a str, u16), u64>;

/// What happens with a record that SQLite refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusedRecords {
    /// The record ends the transaction with an error.
    Fail,
    /// The record is put into quarantine. The other records are stored.
    Quarantine,
}

/// The number of records for each outcome.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutcomeCounts {
    /// Stored records.
    pub stored: u64,
    /// Records put into quarantine.
    pub quarantined: u64,
}

/// Inserts records, many per statement.
pub(super) struct Inserter<'a> {
    connection: &'a Connection,
    many: CachedStatement<'a>,
    one: CachedStatement<'a>,
    care: RefusedRecords,
    now_ns: i64,
    group: Vec<Row<'a>>,
    rollup: Rollup<'a>,
    range: Option<(i64, i64)>,
    counts: OutcomeCounts,
    stored: StoredTraces,
}

impl<'a> Inserter<'a> {
    /// Prepares the statements for a transaction that has begun.
    pub fn new(connection: &'a Connection, care: RefusedRecords, now_ns: i64) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            many: connection.prepare_cached(&statement(ROWS_PER_STATEMENT))?,
            one: connection.prepare_cached(&statement(1))?,
            care,
            now_ns,
            group: Vec::with_capacity(ROWS_PER_STATEMENT),
            rollup: Rollup::new(),
            range: None,
            counts: OutcomeCounts::default(),
            stored: StoredTraces::default(),
        })
    }

    /// Adds a record.
    pub fn push(&mut self, row: Row<'a>) -> rusqlite::Result<()> {
        self.group.push(row);
        if self.group.len() < ROWS_PER_STATEMENT { Ok(()) } else { self.insert_group() }
    }

    fn insert_group(&mut self) -> rusqlite::Result<()> {
        let group = std::mem::take(&mut self.group);
        match self.care {
            RefusedRecords::Fail if group.len() == ROWS_PER_STATEMENT => {
                execute(&mut self.many, &group)?;
                let last = self.connection.last_insert_rowid();
                (last - group.len() as i64 + 1..).zip(&group).for_each(|(id, row)| self.count(id, row));
            }
            RefusedRecords::Fail => {
                for row in &group {
                    execute(&mut self.one, std::slice::from_ref(row))?;
                    self.count(self.connection.last_insert_rowid(), row);
                }
            }
            RefusedRecords::Quarantine => {
                for row in &group {
                    self.insert_or_quarantine(row)?;
                }
            }
        }
        self.group = group;
        self.group.clear();
        Ok(())
    }

    fn insert_or_quarantine(&mut self, row: &Row<'a>) -> rusqlite::Result<()> {
        // The statement inserts one record. If SQLite refuses it, nothing is inserted.
        match execute(&mut self.one, std::slice::from_ref(row)) {
            Ok(()) => self.count(self.connection.last_insert_rowid(), row),
            Err(error) if is_of_a_record(&error) => {
                let sql = "INSERT INTO quarantine(received_ns, reason, record) VALUES(?, ?, ?)";
                let insert = params![self.now_ns, error.to_string(), as_json(row)];
                self.connection.prepare_cached(sql)?.execute(insert)?;
                self.counts.quarantined += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn count(&mut self, id: i64, row: &Row<'a>) {
        self.stored.push(id, row.trace_id);
        *self.rollup.entry((row.time_ns.div_euclid(MINUTE_NS), row.logger, row.level)).or_default() += 1;
        let (oldest, newest) = self.range.unwrap_or((row.time_ns, row.time_ns));
        self.range = Some((oldest.min(row.time_ns), newest.max(row.time_ns)));
        self.counts.stored += 1;
    }

    /// Inserts the remaining records, and writes their rollup counts and the file's state.
    pub fn finish(mut self) -> rusqlite::Result<(OutcomeCounts, StoredTraces)> {
        self.insert_group()?;
        let Some((oldest, newest)) = self.range else { return Ok((self.counts, self.stored)) };
        let sql = "INSERT INTO rollup VALUES(?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count";
        let mut add = self.connection.prepare_cached(sql)?;
        // Write the rows in the order of the table, so that consecutive rows are on the same page.
        let mut rollup: Vec<_> = self.rollup.into_iter().collect();
        rollup.sort_unstable();
        for ((minute, logger, level), count) in rollup {
            add.execute(params![minute, logger, level, count.cast_signed()])?;
        }
        let sql = "UPDATE file_state SET rows = rows + ?3, min_time_ns = min(ifnull(min_time_ns, ?1), ?1),
                   max_time_ns = max(ifnull(max_time_ns, ?2), ?2)";
        let stored = self.counts.stored.cast_signed();
        self.connection.prepare_cached(sql)?.execute(params![oldest, newest, stored])?;
        Ok((self.counts, self.stored))
    }
}

fn statement(rows: usize) -> String {
    let row = format!("({})", vec!["?"; COLUMN_COUNT].join(","));
    format!("INSERT INTO records({COLUMNS}) VALUES {}", vec![row; rows].join(","))
}

fn execute(statement: &mut CachedStatement<'_>, rows: &[Row<'_>]) -> rusqlite::Result<()> {
    let mut place = 1;
    for row in rows {
        bind(statement, place, row)?;
        place += COLUMN_COUNT;
    }
    statement.raw_execute()?;
    Ok(())
}

/// Binds the values of a record, in the order of [`COLUMNS`]. Unsigned 64-bit ids are stored as signed integers with
/// the same bits.
fn bind(to: &mut CachedStatement<'_>, from: usize, row: &Row<'_>) -> rusqlite::Result<()> {
    to.raw_bind_parameter(from, row.time_ns)?;
    to.raw_bind_parameter(from + 1, row.level)?;
    to.raw_bind_parameter(from + 2, row.logger)?;
    to.raw_bind_parameter(from + 3, row.message)?;
    to.raw_bind_parameter(from + 4, row.file)?;
    to.raw_bind_parameter(from + 5, row.line)?;
    to.raw_bind_parameter(from + 6, row.function)?;
    to.raw_bind_parameter(from + 7, row.host)?;
    to.raw_bind_parameter(from + 8, row.process.map(u64::cast_signed))?;
    to.raw_bind_parameter(from + 9, row.process_name)?;
    to.raw_bind_parameter(from + 10, row.thread.map(u64::cast_signed))?;
    to.raw_bind_parameter(from + 11, row.thread_name)?;
    to.raw_bind_parameter(from + 12, row.task)?;
    to.raw_bind_parameter(from + 13, row.trace_id)?;
    to.raw_bind_parameter(from + 14, row.span_id)?;
    to.raw_bind_parameter(from + 15, row.exception)?;
    to.raw_bind_parameter(from + 16, row.stack)?;
    to.raw_bind_parameter(from + 17, row.fields)?;
    to.raw_bind_parameter(from + 18, row.arrived_ns)
}

/// The record as JSON, truncated to [`QUARANTINE_BYTES`].
fn as_json(row: &Row<'_>) -> String {
    let mut text = serde_json::to_string(&row.record()).unwrap_or_default();
    let mut end = text.len().min(QUARANTINE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
