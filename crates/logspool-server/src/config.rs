//! How the service is set up: one TOML file, options of the command line above it, sensible defaults below.

mod check;
mod text;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::address::{HttpAddress, Listen, StoreAddress};

/// The set-up of a service. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where senders connect: `tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, `tls://HOST:PORT`. A stream listener
    /// takes every protocol; `?protocol=NAME` fixes one (pickle, json, syslog, syslog-octets, forward, http).
    #[schemars(with = "Vec<String>")]
    pub listen: Vec<Listen>,
    /// Where queries, metrics and HTTP senders connect: `HOST:PORT`; `"off"` for none.
    #[schemars(with = "String")]
    pub http: HttpAddress,
    /// Where records are kept: `sqlite:FOLDER`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (with `?sslmode=verify-full`
    /// and `sslrootcert=FILE` for TLS, as in libpq). A record is acknowledged when all of them have committed it.
    #[schemars(with = "Vec<String>")]
    pub store: Vec<StoreAddress>,
    /// A text file that gets a line for each record as well. It has no transactions: after a crash its last lines may be
    /// missing or doubled.
    pub file: Option<PathBuf>,
    /// A group whose members may read the folders of SQLite stores and `file`, by name or number: folders have mode 2750
    /// then, and files 0640. Default: none; folders have mode 0700 and files 0600. Rights that others have on what is
    /// there are taken away at the start. The user of the service has to be a member of the group.
    pub store_group: Option<String>,
    /// Queue folders of programs on this machine, `/dev/shm/logspool-UID`: what killed programs left there is delivered
    /// without another start of theirs. Each has mode 0700 and belongs to the user of the service; a service that runs as
    /// root may adopt those of others, and keeps everything of theirs in its own stores.
    #[schemars(with = "Vec<String>")]
    pub adopt: Vec<PathBuf>,
    /// Listen beyond this machine without TLS and without a token. Whoever reaches the port may then write records, and
    /// read them over HTTP.
    pub insecure: bool,
    /// Bounds on what senders may ask for.
    pub limits: Limits,
    /// How long records are kept.
    pub retention: Retention,
    /// Certificate and key for `tls://` listeners.
    pub tls: Option<Tls>,
    /// Who may read and write over HTTP.
    pub access: Access,
    /// The shared key of Forward, for listeners with `?protocol=forward`.
    pub forward: Option<SharedKey>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                Listen::tcp(SocketAddr::from(([127, 0, 0, 1], 9020))),
                Listen::udp(SocketAddr::from(([127, 0, 0, 1], 9021))),
            ],
            http: HttpAddress::On(SocketAddr::from(([127, 0, 0, 1], 9080))),
            store: vec![StoreAddress::Sqlite(PathBuf::from("logspool-data"))],
            file: None,
            store_group: None,
            adopt: Vec::new(),
            insecure: false,
            limits: Limits::default(),
            retention: Retention::default(),
            tls: None,
            access: Access::default(),
            forward: None,
        }
    }
}

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

/// How long records are kept. Whole days are removed, the oldest first; today is never.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Days; none: for ever.
    pub days: Option<u32>,
    /// Bytes on disk, for SQLite; none: as much as there is.
    pub bytes: Option<u64>,
}

/// Certificate and key, as PEM files. They are read again on SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate and those between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authorities whose clients may connect; none: every client may.
    pub client_authorities: Option<PathBuf>,
}

/// Who may read and write over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// SHA-256 of each token that may be sent as `Authorization: Bearer TOKEN`, in hex (`printf %s TOKEN | sha256sum`).
    /// None: no token is asked for.
    pub token_sha256: Vec<String>,
    /// Names that HTTP requests may call this service by, beside `localhost` and IP addresses.
    pub hosts: Vec<String>,
}

/// The shared key of Forward.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedKey {
    /// A file that holds the key; white space around it does not count.
    pub key_file: PathBuf,
    /// How the service calls itself to clients. Default: the name of the machine.
    pub hostname: Option<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or says what is not understood: with its path and the line.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the configuration {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// With the line, the key and the mend.
    pub fn parse(text: &str) -> Result<Self, String> {
        text::parse(text)
    }

    /// Whether something differs that a running service cannot change. It changes certificates, tokens and names.
    pub fn needs_restart_for(&self, new: &Self) -> bool {
        let fixed =
            |config: &Self| (Self { access: Access::default(), tls: None, ..config.clone() }, config.tls.is_some());
        fixed(self) != fixed(new)
    }

    /// Looks for what cannot work, or must not.
    ///
    /// # Errors
    ///
    /// Each with its mend.
    pub fn check(&self) -> Result<(), String> {
        if self.listen.is_empty() && self.http == HttpAddress::Off {
            return Err("there is nothing to listen on: give `listen` or `http`".to_owned());
        }
        if self.store.is_empty() && self.file.is_none() {
            return Err("there is nowhere to keep records: give `store` or `file`".to_owned());
        }
        for (name, least, value) in [
            ("frame_bytes", 1024, self.limits.frame_bytes),
            ("waiting_bytes", 1 << 20, self.limits.waiting_bytes),
            ("connections", 1, self.limits.connections),
            ("query_threads", 1, self.limits.query_threads),
            ("queries", 1, self.limits.queries),
            ("tails", 1, self.limits.tails),
        ] {
            if value < least {
                return Err(format!("limits.{name} is {value}: at least {least}"));
            }
        }
        // PostgreSQL takes 0 for no limit, and refuses more than some weeks.
        if !(1..=86_400).contains(&self.limits.query_seconds) {
            return Err(format!("limits.query_seconds is {}: from 1 to 86400, a day", self.limits.query_seconds));
        }
        if self.limits.frame_bytes > self.limits.waiting_bytes {
            return Err(
                "limits.frame_bytes is more than limits.waiting_bytes: no such frame could ever be taken".to_owned()
            );
        }
        if self.limits.frame_bytes > 16 << 20 {
            return Err("limits.frame_bytes is more than 16 MiB: pickles and other protocols could not be told apart"
                .to_owned());
        }
        for token in &self.access.token_sha256 {
            if token.len() != 64 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err("access.token_sha256 holds something else than 64 hex digits: printf %s TOKEN | sha256sum"
                    .to_owned());
            }
        }
        check::check(self)?;
        self.check_listeners()
    }

    fn check_listeners(&self) -> Result<(), String> {
        for listen in &self.listen {
            if listen.is_tls() && self.tls.is_none() {
                return Err(format!("{listen} wants a certificate: give [tls] with certificate and key"));
            }
            if self.insecure || listen.is_local() || self.is_guarded(listen) {
                continue;
            }
            return Err(format!(
                "{listen} can be reached from other machines, and everybody there could write: use tls:// with \
                 tls.client_authorities, or say insecure (--insecure) if the network is trusted"
            ));
        }
        match self.http {
            HttpAddress::On(address) if !self.insecure && !address.ip().is_loopback() => Err(format!(
                "http {address} can be reached from other machines without TLS: let it listen on 127.0.0.1 behind a \
                 proxy, add a tls:// listener (it takes HTTP too), or say insecure (--insecure) if the network is trusted"
            )),
            _ => Ok(()),
        }
    }

    /// Whether a listener asks who connects.
    fn is_guarded(&self, listen: &Listen) -> bool {
        let asks_for_certificates = self.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        let asks_for_tokens = listen.is_only_http() && !self.access.token_sha256.is_empty();
        let asks_for_keys = listen.is_only_forward() && self.forward.is_some();
        listen.is_tls() && (asks_for_certificates || asks_for_tokens || asks_for_keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_query_has_bounds() {
        let check = |seconds: u64| Config::parse(&format!("limits.query_seconds = {seconds}")).unwrap().check();
        for seconds in [0, 86_401, 3_000_000] {
            assert!(check(seconds).unwrap_err().contains("limits.query_seconds"), "{seconds}");
        }
        assert_eq!((Ok(()), Ok(())), (check(1), check(86_400)));
    }
}
