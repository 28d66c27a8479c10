//! Sends rows to the server with COPY.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use tokio_postgres::{Client, Error, ToStatement};

use super::rows;
use crate::batch::Row;

/// Minimum number of bytes that are sent to the connection at once. While the server reads them, the next rows are
/// encoded.
const COPY_BYTES: usize = 64 * 1024;

/// Copies rows with a COPY statement; `put` encodes each row.
pub(super) async fn copy<'a>(
    client: &Client,
    statement: &(impl ToStatement + ?Sized),
    rows: impl IntoIterator<Item = Row<'a>>,
    put: impl Fn(&Row<'_>, &mut BytesMut),
) -> Result<(), Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(statement).await?);
    let mut buffer = BytesMut::with_capacity(2 * COPY_BYTES);
    rows::begin(&mut buffer);
    for row in rows {
        put(&row, &mut buffer);
        if buffer.len() >= COPY_BYTES {
            sink.send(buffer.split().freeze()).await?;
            buffer.reserve(2 * COPY_BYTES);
        }
    }
    rows::end(&mut buffer);
    sink.send(buffer.freeze()).await?;
    sink.finish().await?;
    Ok(())
}
