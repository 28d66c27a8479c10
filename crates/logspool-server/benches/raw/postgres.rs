//! Writes rows into PostgreSQL only by `COPY BINARY` of bytes that were encoded before.

use std::pin::pin;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{SinkExt, TryStreamExt};
use tokio_postgres::{Client, NoTls};

/// The header of a binary copy: signature, no flags, no extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of a binary copy.
const END: &[u8] = &[0xff, 0xff];

/// Bytes sent to the connection at once, the same as in the store.
const PART_BYTES: usize = 64 * 1024;

/// Reads the rows of a table, encoded as binary copies of `rows` rows each.
///
/// # Panics
///
/// The server refuses a statement.
pub fn encoded(url: &str, table: &str, rows: usize) -> Vec<Bytes> {
    let (runtime, client) = connect(url);
    let all = runtime.block_on(async {
        let copy = format!("COPY (SELECT * FROM {table}) TO STDOUT BINARY");
        let parts: Vec<Bytes> = pin!(client.copy_out(&*copy).await.expect("a copy")).try_collect().await.expect("rows");
        let mut all = BytesMut::new();
        parts.iter().for_each(|part| all.extend_from_slice(part));
        all.freeze()
    });
    let mut left = all.strip_prefix(HEAD).expect("a binary copy");
    let (mut copies, mut open, mut count) = (Vec::new(), BytesMut::from(HEAD), 0);
    while let Some(length) = row_length(left) {
        let (row, rest) = left.split_at(length);
        open.extend_from_slice(row);
        (left, count) = (rest, count + 1);
        if count % rows == 0 {
            open.extend_from_slice(END);
            copies.push(std::mem::replace(&mut open, BytesMut::from(HEAD)).freeze());
        }
    }
    if open.len() > HEAD.len() {
        open.extend_from_slice(END);
        copies.push(open.freeze());
    }
    copies
}

/// Length of the first row in bytes. `None`: the end of the copy.
fn row_length(mut rows: &[u8]) -> Option<usize> {
    let before = rows.len();
    let columns = rows.get_i16();
    if columns < 0 {
        return None;
    }
    for _ in 0..columns {
        // A negative length means NULL.
        let length = rows.get_i32();
        rows.advance(usize::try_from(length).unwrap_or_default());
    }
    Some(before - rows.len())
}

/// Copies each part in its own transaction. Returns the seconds without connecting.
///
/// # Panics
///
/// The server refuses a statement.
pub fn copy(url: &str, table: &str, copies: &[Bytes]) -> f64 {
    let (runtime, client) = connect(url);
    runtime.block_on(async {
        let copy = client.prepare(&format!("COPY {table} FROM STDIN BINARY")).await.expect("a statement");
        let began = Instant::now();
        for encoded in copies {
            client.batch_execute("BEGIN").await.expect("a transaction");
            let mut sink = pin!(client.copy_in::<_, Bytes>(&copy).await.expect("a copy"));
            let mut rest = encoded.clone();
            while !rest.is_empty() {
                sink.send(rest.split_to(rest.len().min(PART_BYTES))).await.expect("sent");
            }
            sink.finish().await.expect("copied");
            client.batch_execute("COMMIT").await.expect("committed");
        }
        began.elapsed().as_secs_f64()
    })
}

/// Runs statements.
///
/// # Panics
///
/// The server refuses a statement.
pub fn execute(url: &str, sql: &str) {
    let (runtime, client) = connect(url);
    runtime.block_on(client.batch_execute(sql)).expect("statements");
}

/// Number of rows in a table.
///
/// # Panics
///
/// The server refuses a statement.
pub fn count(url: &str, table: &str) -> u64 {
    let (runtime, client) = connect(url);
    let row = runtime.block_on(client.query_one(&*format!("SELECT count(*) FROM {table}"), &[])).expect("a count");
    row.get::<_, i64>(0).unsigned_abs()
}

fn connect(url: &str) -> (tokio::runtime::Runtime, Client) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).expect("a server");
    runtime.spawn(connection);
    (runtime, client)
}
