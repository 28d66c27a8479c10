//! Writes rows into SQLite only by inserts of many rows, into a table with the columns and the index of the store.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use logspool_server::delivery::Delivery;
use rusqlite::Connection;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// Number of rows per statement, the same as in the store.
const GROUP: usize = 50;

/// Columns and settings of the store.
const SCHEMA: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4096;
    PRAGMA cache_size = -16384;
    CREATE TABLE records(id INTEGER PRIMARY KEY, time_ns INTEGER, level INTEGER, logger TEXT, message TEXT, file TEXT,
        line INTEGER, function TEXT, host TEXT, process INTEGER, process_name TEXT, thread INTEGER, thread_name TEXT,
        task TEXT, trace_id TEXT, span_id TEXT, exception TEXT, stack TEXT, fields TEXT);
    CREATE INDEX records_by_time ON records(time_ns);";

/// Inserts each delivery in its own transaction into a new file, and counts the rows in the file. Returns the seconds.
///
/// # Panics
///
/// A row is missing, or SQLite refuses a statement.
pub fn insert(path: &Path, deliveries: &[Arc<Delivery>]) -> f64 {
    let mut connection = Connection::open(path).expect("a file");
    connection.execute_batch(SCHEMA).expect("a table");
    let whole = statement_of(GROUP);
    let began = Instant::now();
    for delivery in deliveries {
        let transaction = connection.transaction().expect("a transaction");
        let rows: Vec<_> = delivery.batch.rows().collect();
        for group in rows.chunks(GROUP) {
            let rest;
            let sql = if group.len() == GROUP {
                &whole
            } else {
                rest = statement_of(group.len());
                &rest
            };
            let mut statement = transaction.prepare_cached(sql).expect("a statement");
            let mut place = 1;
            for row in group {
                let mut bind = |value: ToSqlOutput<'_>| {
                    statement.raw_bind_parameter(place, value).expect("a parameter");
                    place += 1;
                };
                bind(row.time_ns.into());
                bind(row.level.into());
                for value in [Some(row.logger), Some(row.message), row.file] {
                    bind(text(value));
                }
                bind(number(row.line.map(i64::from)));
                bind(text(row.function));
                bind(text(row.host));
                bind(number(row.process.map(u64::cast_signed)));
                bind(text(row.process_name));
                bind(number(row.thread.map(u64::cast_signed)));
                for value in
                    [row.thread_name, row.task, row.trace_id, row.span_id, row.exception, row.stack, row.fields]
                {
                    bind(text(value));
                }
            }
            statement.raw_execute().expect("an insert");
        }
        transaction.commit().expect("a commit");
    }
    let seconds = began.elapsed().as_secs_f64();
    let rows: usize = deliveries.iter().map(|delivery| delivery.batch.len()).sum();
    let count: i64 = connection.query_one("SELECT count(*) FROM records", [], |row| row.get(0)).expect("a count");
    assert_eq!(rows as i64, count);
    seconds
}

fn statement_of(rows: usize) -> String {
    format!("INSERT INTO records VALUES {}", vec!["(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"; rows].join(","))
}

fn number(number: Option<i64>) -> ToSqlOutput<'static> {
    ToSqlOutput::Borrowed(number.map_or(ValueRef::Null, ValueRef::Integer))
}

fn text(text: Option<&str>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(text.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())))
}
