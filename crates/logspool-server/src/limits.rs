//! Limits for clients, and the other settings that rooms below the configuration need ([`parts`]).

pub mod parts;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// Chosen: of four threads, one address gets two. While two addresses scan all records, a thread is still free for
/// others. Scans only use the processor time that the intake leaves free; with more threads, they would only take
/// turns.
const QUERY_THREADS: usize = 4;

/// Chosen: one address gets 22 queries, enough if several people use the web page behind one proxy. An answer that is
/// not read takes up to 128 KiB, so all queries take up to 8 MiB.
const QUERIES: usize = 64;

/// Chosen: one address gets 86 tails. The records for a client that does not read take up to 256 KiB, so all tails take
/// up to 64 MiB.
const TAILS: usize = 256;

/// Limits for clients. Bytes are plain numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of one frame: one record, or one chunk of Forward. Default 1 MiB.
    pub frame_bytes: usize,
    /// Bytes that wait for the stores, over all connections. At this limit the service stops reading from connections,
    /// and drops and counts datagrams. Default 128 MiB.
    pub waiting_bytes: usize,
    /// Open connections; further ones are closed at once and counted. Another 80 are reserved for HTTP, so that health
    /// checks and metrics work when senders use all others; each of these is closed after one answer. If the process
    /// may not open this many files (RLIMIT_NOFILE), the number is lowered at the start, with a warning. Default 4096.
    pub connections: usize,
    /// Connections of one peer; further ones are closed at once and counted. A peer is an IPv4 address, an IPv6 network
    /// of 64 bits, or, for unix sockets, a user of this machine. An IPv4 address may be loopback, or a proxy or router
    /// with many machines. Default 0: half the number of free connections. A single peer gets up to a third of
    /// `connections` then, and others find room. If all senders share one address, set it to the number of
    /// `connections`.
    pub connections_per_peer: usize,
    /// Seconds for the first bytes of a connection, and for the header of an HTTP request. Default 10.
    pub header_seconds: u64,
    /// Seconds for the rest of a frame after its first byte, and for the body of an HTTP request. Default 30.
    pub frame_seconds: u64,
    /// Seconds without data after which a connection that has sent records is closed; 0: never. Default 0: a stdlib
    /// handler notices a closed connection only after it has lost a record.
    pub idle_seconds: u64,
    /// Seconds until a query begins, and again for its run and the reading of its answer: 1 to 86400. Default 30.
    pub query_seconds: u64,
    /// Threads that answer queries, at a low priority, so that they do not slow down senders. One address gets about
    /// half of them. PostgreSQL gets half as many queries at once, because it does the work itself. While answers are
    /// not read, it may have three connections for each of these. Default 4.
    pub query_threads: usize,
    /// Queries that wait, run, or whose answers are not completely read; further ones get 429 with `Retry-After`. One
    /// address gets a third of them, the next one a third of the rest. Default 64.
    pub queries: usize,
    /// Live tails (`/api/tail`); further ones get 429 with `Retry-After`. Addresses share them as they share `queries`.
    /// Default 256.
    pub tails: usize,
    /// Seconds at the end of the service for storing received records. In the first fifth it still reads what has
    /// arrived. Default 10.
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
    /// Time limit for the first bytes of a connection, and for the header of an HTTP request.
    pub fn header_time(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    /// Maximum size of an HTTP body in bytes, also after decompression. OpenTelemetry sends thousands of records in one
    /// body.
    pub fn body_bytes(&self) -> usize {
        self.frame_bytes.saturating_mul(16)
    }

    /// Maximum number of records in an HTTP body: one record for each 40 bytes of the maximum body size. A row in
    /// memory takes four times as many bytes, and a JSON object of fewer bytes has almost no content.
    pub fn body_records(&self) -> usize {
        self.body_bytes() / 40
    }

    /// Time limit for the rest of a frame after its first byte, and for the body of an HTTP request.
    pub fn frame_time(&self) -> Duration {
        Duration::from_secs(self.frame_seconds)
    }

    /// Time limit for the wait until a query begins, and again for its run and the reading of its answer.
    pub fn query_time(&self) -> Duration {
        Duration::from_secs(self.query_seconds)
    }

    /// Maximum time without data on a connection that has sent records; `None`: no limit.
    pub fn idle_time(&self) -> Option<Duration> {
        (self.idle_seconds > 0).then(|| Duration::from_secs(self.idle_seconds))
    }
}
