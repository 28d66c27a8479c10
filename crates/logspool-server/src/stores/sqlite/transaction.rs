//! One transaction of the writer. It checks the batches against the watermarks, writes records and rollup counts, and
//! moves the watermarks.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::failure::is_of_a_record;
use super::insert::{Inserter, RefusedRecords};
use super::recent::StoredTraces;
use crate::delivery::{Chunk, Delivery, Outcome};
use crate::stores::WriteResult;
use crate::stores::watermark::{Verdict, Watermark, judge};

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
        let verdict = match &delivery.chunk {
            Some(chunk) => judged(&transaction, chunk, now_ns)?,
            None => Verdict::Store { skip: 0, missing: 0 },
        };
        written.outcomes.push(match verdict {
            Verdict::Refuse => Outcome::Refused,
            Verdict::Known => {
                written.repeated += rows;
                Outcome::Committed
            }
            Verdict::Store { skip, missing } => {
                let skip = skip.min(rows);
                written.repeated += skip;
                written.missing = written.missing.saturating_add(missing);
                for row in delivery.batch.rows().skip(usize::try_from(skip).unwrap_or(usize::MAX)) {
                    inserter.push(row)?;
                }
                Outcome::Committed
            }
        });
    }
    let (counts, stored) = inserter.finish()?;
    (written.stored, written.quarantined) = (counts.stored, counts.quarantined);
    // Call it before the commit: a query that sees the commit must find the records in the table of recent traces.
    tell(stored);
    transaction.commit()?;
    Ok(written)
}

/// Decides what to do with a chunk from the watermark of its stream, and moves the watermark.
///
/// It reads the watermark from the table each time, so no copy in memory can differ from the table. The cost is one
/// lookup by key for hundreds of records.
fn judged(connection: &Connection, chunk: &Chunk, now_ns: i64) -> rusqlite::Result<Verdict> {
    let sql = "SELECT epoch, last FROM streams WHERE stream = ?";
    let stored = connection
        .prepare_cached(sql)?
        .query_one([&chunk.stream], |row| {
            Ok(Watermark { epoch: row.get::<_, i64>(0)?.cast_unsigned(), last: row.get::<_, i64>(1)?.cast_unsigned() })
        })
        .optional()?;
    let verdict = judge(stored, chunk);
    let reached = match verdict {
        Verdict::Refuse => return Ok(verdict),
        Verdict::Store { .. } => Some(Watermark { epoch: chunk.epoch, last: chunk.last }),
        // The watermark stays the same. Only `seen_ns`, the time at which the stream was last seen, changes.
        Verdict::Known => stored,
    };
    if chunk.end {
        connection.prepare_cached("DELETE FROM streams WHERE stream = ?")?.execute([&chunk.stream])?;
    } else if let Some(reached) = reached {
        let sql = "INSERT OR REPLACE INTO streams VALUES(?, ?, ?, ?)";
        let (epoch, last) = (reached.epoch.cast_signed(), reached.last.cast_signed());
        connection.prepare_cached(sql)?.execute(params![chunk.stream, epoch, last, now_ns])?;
    }
    Ok(verdict)
}
