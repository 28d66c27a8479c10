//! HTTP: requests with records, and queries.

use tokio::io::AsyncReadExt;

use crate::http;
use crate::protocol::{Connection, Protocol, Served, Speech};
use crate::sources::admission::Door;
use crate::sources::shared::End;

/// See the file head.
pub const HTTP: Protocol = Protocol {
    name: "http",
    senders: "Python's `HTTPHandler`, OpenTelemetry, `curl`, browsers",
    begins: &[(b'A', b'Z')],
    tie: None,
    datagrams: None,
    door: Door::Http,
    speech: Speech::Conversation { speaks_first: |_| false, serve },
};

fn serve(connection: Connection<'_>) -> Served<'_> {
    let Connection { stream, first, peer, slot, shared, .. } = connection;
    Box::pin(async move {
        let (read, write) = tokio::io::split(stream);
        let read = AsyncReadExt::chain(std::io::Cursor::new(first), read);
        http::connection((read, write), peer, slot, shared).await;
        End::Peer
    })
}
