//! The protocol HTTP: requests with records, and queries.

use crate::connection::admission::TrafficKind;
use crate::connection::protocol::{Connection, ConnectionKind, Protocol, ServeFuture};
use crate::connection::shared::ConnectionEnd;
use crate::http;

/// The declaration of HTTP; see the module documentation.
pub const HTTP: Protocol = Protocol {
    name: "http",
    senders: "Python's `HTTPHandler`, OpenTelemetry (also gRPC), senders of Loki, Elasticsearch, Splunk, Seq, GELF and \
              the journal, `curl`, browsers",
    first_bytes: &[(b'A', b'Z')],
    tie_breaker: None,
    datagrams: None,
    traffic: TrafficKind::Http,
    connections: ConnectionKind::Session { sends_first: |_| false, serve },
};

fn serve(connection: Connection<'_>) -> ServeFuture<'_> {
    let Connection { stream, first, peer, slot, shared, .. } = connection;
    Box::pin(async move {
        http::connection(stream, first, peer, slot, shared).await;
        ConnectionEnd::Peer
    })
}
