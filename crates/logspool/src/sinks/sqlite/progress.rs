//! How far the records of each process are stored. The table is in the same database, so one commit stores records and
//! progress.

use rusqlite::{Connection, OptionalExtension, params};

/// The table. `batch` is an unsigned number, stored as the signed one with the same bits.
pub const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS logspool_progress (
        segment BLOB NOT NULL,
        sink INTEGER NOT NULL,
        batch INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (segment, sink)
    ) WITHOUT ROWID;";

/// Seconds after which the progress of a process is forgotten. Chosen: a recovery comes within a month.
const KEPT_SECONDS: i64 = 30 * 24 * 3600;

/// The place of lines among all records of a process.
#[derive(Debug, Clone, Copy)]
pub struct BatchPlace {
    /// Identity of the process's queue.
    pub segment: [u8; 16],
    /// Id of the sink.
    pub sink: u32,
    /// Number of the batch.
    pub batch: u64,
    /// Number of bytes of the batch before its chunk.
    pub base: u64,
}

impl BatchPlace {
    /// Number of bytes of the batch that are stored.
    ///
    /// # Errors
    ///
    /// The error of SQLite.
    pub fn stored(&self, connection: &Connection) -> rusqlite::Result<u64> {
        let mut statement =
            connection.prepare_cached("SELECT batch, bytes FROM logspool_progress WHERE segment = ?1 AND sink = ?2")?;
        let row = statement
            .query_row(params![self.segment, self.sink], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        Ok(match row {
            Some((batch, bytes)) if batch as u64 == self.batch => bytes as u64,
            Some((batch, _)) if batch as u64 > self.batch => u64::MAX,
            _ => 0,
        })
    }

    /// Notes that the first `bytes` bytes of the batch are stored.
    ///
    /// # Errors
    ///
    /// The error of SQLite.
    pub fn note(&self, connection: &Connection, bytes: u64) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "INSERT OR REPLACE INTO logspool_progress VALUES (?1, ?2, ?3, ?4, CAST(strftime('%s') AS INTEGER))",
        )?;
        statement.execute(params![self.segment, self.sink, self.batch as i64, bytes as i64])?;
        Ok(())
    }
}

/// Forgets the progress of processes that ended long ago.
///
/// # Errors
///
/// The error of SQLite.
pub fn forget_old(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM logspool_progress WHERE at < CAST(strftime('%s') AS INTEGER) - ?1";
    connection.execute(sql, [KEPT_SECONDS]).map(|_| ())
}
