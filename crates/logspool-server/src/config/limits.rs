//! Bounds on what clients may ask for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// Chosen: one address gets two of them, and there is one left for others while two addresses scan all records. Each
/// scans as fast as a processor that the intake leaves to it; with more they only take turns.
const QUERY_THREADS: usize = 4;

/// Chosen: one address gets 22, enough for a page that several people look at behind one proxy. An answer that is not
/// read holds up to 128 KiB: with all places 8 MiB.
const QUERIES: usize = 64;

/// Chosen: one address gets 86. Records that wait for one that does not read take up to 256 KiB: with all of them 64 MiB.
const TAILS: usize = 256;

/// Bounds on what clients may ask for. Bytes are plain numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of one frame: one record, or one chunk of Forward. Default 1 MiB.
    pub frame_bytes: usize,
    /// Bytes that wait for the stores, over all connections. At this mark connections are no longer read, and datagrams
    /// are dropped and counted. Default 128 MiB.
    pub waiting_bytes: usize,
    /// Open connections; further ones are closed at once and counted. 80 more are kept for HTTP, so that health checks and
    /// metrics are answered when senders have taken all: each of these is closed after one answer. Where the process may
    /// not open so many files (RLIMIT_NOFILE), the number is lowered at the start, with a warning. Default 4096.
    pub connections: usize,
    /// Connections of one peer; further ones are closed at once and counted. A peer is an IPv4 address (also one of
    /// loopback, or of a proxy or router with many machines behind it), an IPv6 network of 64 bits, or a user of this
    /// machine at unix sockets. Default 0: half as many as are free, so that a single peer gets up to a third of
    /// `connections`, and there is room for others. Give the number of `connections` where all senders share one address.
    pub connections_per_peer: usize,
    /// Seconds for the first bytes of a connection, and for the header of an HTTP request. Default 10.
    pub header_seconds: u64,
    /// Seconds for a frame that has begun, and for the body of an HTTP request. Default 30.
    pub frame_seconds: u64,
    /// Seconds of silence until a connection is closed that has sent records before; 0: never. Default 0: a stdlib
    /// handler notices a closed connection only after it has lost a record.
    pub idle_seconds: u64,
    /// Seconds for a query to begin, and then for it and its answer to be read: 1 to 86400. Default 30.
    pub query_seconds: u64,
    /// Threads that answer queries, at a low priority, so that they do not slow down senders. One address gets about half
    /// of them. A store in PostgreSQL is asked half as many queries at once, because the work is done there; for each it
    /// may have three connections while answers are not read. Default 4.
    pub query_threads: usize,
    /// Queries that wait, run, or whose answers are not read to the end; further ones get 429 with `Retry-After`. One
    /// address gets a third of them, the next one a third of the rest. Default 64.
    pub queries: usize,
    /// Live tails (`/api/tail`); further ones get 429 with `Retry-After`. Addresses share them as they share `queries`.
    /// Default 256.
    pub tails: usize,
    /// Seconds for what has come to be stored when the service ends; in the first fifth of them it is read. Default 10.
    pub shutdown_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 1 << 20,
            waiting_bytes: 128 << 20,
            connections: 4096,
            connections_per_peer: 0,
            header_seconds: 10,
            frame_seconds: 30,
            idle_seconds: 0,
            query_seconds: 30,
            query_threads: QUERY_THREADS,
            queries: QUERIES,
            tails: TAILS,
            shutdown_seconds: 10,
        }
    }
}

impl Limits {
    /// Time for the first bytes.
    pub fn header_time(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    /// Bytes of the body of an HTTP request, also when it is inflated: OpenTelemetry sends thousands of records in one.
    pub fn body_bytes(&self) -> usize {
        self.frame_bytes.saturating_mul(16)
    }

    /// Records in the body of an HTTP request: one for each 40 bytes that it may have. A row in memory takes four times as
    /// much, and a smaller object says next to nothing.
    pub fn body_records(&self) -> usize {
        self.body_bytes() / 40
    }

    /// Time for a frame that has begun.
    pub fn frame_time(&self) -> Duration {
        Duration::from_secs(self.frame_seconds)
    }

    /// Time for a query, and for its answer to be read.
    pub fn query_time(&self) -> Duration {
        Duration::from_secs(self.query_seconds)
    }

    /// Time without any frame; `None`: any.
    pub fn idle_time(&self) -> Option<Duration> {
        (self.idle_seconds > 0).then(|| Duration::from_secs(self.idle_seconds))
    }
}
