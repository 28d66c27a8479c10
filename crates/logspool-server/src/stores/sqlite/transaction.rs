//! One transaction of the writer. It checks the batches against the marks of their streams, writes records and rollup
//! counts, and changes the marks.

use std::sync::Arc;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::failure::is_of_a_record;
use super::insert::{Inserter, RefusedRecords};
use super::recent::StoredTraces;
use crate::delivery::{Delivery, Outcome};
use crate::stores::WriteResult;
use crate::stores::mark::{Gaps, StreamMark, Verdict, judge, new_rows};

/// Writes batches in one transaction.
///
/// The first attempt assumes that SQLite accepts all records, which is almost always true. If SQLite refuses a record,
/// the transaction is rolled back and repeated with a separate statement for each record. Before the commit, `tell`
/// gets the traces of the stored records.
pub(super) fn write(
    connection: &mut Connection,
    deliveries: &[Arc<Delivery>],
    now_ns: i64,
    tell: impl Fn(StoredTraces),
) -> rusqlite::Result<WriteResult> {
    match attempt(connection, deliveries, now_ns, RefusedRecords::Fail, &tell) {
        Err(error) if is_of_a_record(&error) => {
            attempt(connection, deliveries, now_ns, RefusedRecords::Quarantine, &tell)
        }
        written => written,
    }
}

fn attempt(
    connection: &mut Connection,
    deliveries: &[Arc<Delivery>],
    now_ns: i64,
    care: RefusedRecords,
    tell: &impl Fn(StoredTraces),
) -> rusqlite::Result<WriteResult> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut written = WriteResult::default();
    let mut inserter = Inserter::new(&transaction, care, now_ns)?;
    for delivery in deliveries {
        let rows = delivery.batch.len() as u64;
        let Some(chunk) = &delivery.chunk else {
            for row in delivery.batch.rows() {
                inserter.push(row)?;
            }
            written.outcomes.push(Outcome::Committed);
            continue;
        };
        let verdict = judge(read_mark(&transaction, &chunk.stream)?.as_ref(), chunk);
        written.outcomes.push(verdict.outcome());
        if let Verdict::Accept { new, mark, expired } = verdict {
            let mut stored = 0;
            for row in new_rows(delivery.batch.len(), chunk, &new).flatten().filter_map(|row| delivery.batch.row(row)) {
                inserter.push(row)?;
                stored += 1;
            }
            written.repeated += rows - stored;
            written.expired = written.expired.saturating_add(expired);
            write_mark(&transaction, &chunk.stream, &mark, now_ns)?;
        }
    }
    let (counts, stored) = inserter.finish()?;
    (written.stored, written.quarantined) = (counts.stored, counts.quarantined);
    // Call it before the commit: a query that sees the commit must find the records in the table of recent traces.
    tell(stored);
    transaction.commit()?;
    Ok(written)
}

/// Reads the mark of a stream.
///
/// It reads the table each time, so no copy in memory can differ from the table. The cost is one lookup by key for
/// hundreds of records.
fn read_mark(connection: &Connection, stream: &str) -> rusqlite::Result<Option<StreamMark>> {
    let read = |row: &Row<'_>| {
        let (epoch, last): (i64, i64) = (row.get(0)?, row.get(1)?);
        let gaps = Gaps::parse(row.get_ref(2)?.as_str_or_null()?)
            .map_err(|why| rusqlite::Error::FromSqlConversionFailure(2, Type::Text, why.into()))?;
        Ok(StreamMark { epoch: epoch.cast_unsigned(), last: last.cast_unsigned(), gaps, ended: row.get(3)? })
    };
    let sql = "SELECT epoch, last, gaps, ended FROM streams WHERE stream = ?";
    connection.prepare_cached(sql)?.query_one([stream], read).optional()
}

/// Writes the mark of a stream, which was seen at `now_ns`.
fn write_mark(connection: &Connection, stream: &str, mark: &StreamMark, now_ns: i64) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO streams(stream, epoch, last, seen_ns, gaps, ended) VALUES(?, ?, ?, ?, ?, ?)";
    let (epoch, last) = (mark.epoch.cast_signed(), mark.last.cast_signed());
    let values = params![stream, epoch, last, now_ns, mark.gaps.text(), mark.ended];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(())
}
