//! One transaction of the writer: batches judged, records and their counts written, watermarks moved.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::failure::is_of_a_record;
use super::insert::{Care, Inserter};
use super::recent::Stored;
use crate::delivery::{Chunk, Delivery, Outcome};
use crate::stores::Written;
use crate::stores::watermark::{Verdict, Watermark, judge};

/// Writes batches in one transaction.
///
/// It is made without care for records that the store cannot take, for there are hardly ever any; when one turns up,
/// all is taken back and made again with care. Before the commit `tell` gets what is stored by it.
pub(super) fn write(
    connection: &mut Connection,
    deliveries: &[Arc<Delivery>],
    now_ns: i64,
    tell: impl Fn(Stored),
) -> rusqlite::Result<Written> {
    match attempt(connection, deliveries, now_ns, Care::None, &tell) {
        Err(error) if is_of_a_record(&error) => attempt(connection, deliveries, now_ns, Care::EachRecord, &tell),
        written => written,
    }
}

fn attempt(
    connection: &mut Connection,
    deliveries: &[Arc<Delivery>],
    now_ns: i64,
    care: Care,
    tell: &impl Fn(Stored),
) -> rusqlite::Result<Written> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut written = Written::default();
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
    // Not after it: who sees the commit must find it there.
    tell(stored);
    transaction.commit()?;
    Ok(written)
}

/// Judges a chunk by the watermark as it stands in the transaction, and moves it.
///
/// The table is asked each time, one look by its key for hundreds of records: so nothing is kept in memory that could
/// differ from it.
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
        // Only that it was heard of.
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
