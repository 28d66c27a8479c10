//! One connection to the server, with its own single-threaded runtime. A thread without async code can use it.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::str::FromStr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, Mode, PostgresTls};
use crate::stores::{QUERY_CANCELLED, StoreError};

/// Advice for messages about tables that were dropped or changed.
pub(super) const REPAIR_TABLES: &str = "restore the tables of the schema logspool, or drop them with all their \
    records, so that \
                               they are created again: DROP SCHEMA logspool CASCADE";

/// Time limit for connecting, including the password check.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the server's machine may be silent before the connection counts as lost.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for the request that cancels a query. Chosen: the query thread waits for this request, so a larger value
/// would delay its next query.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for closing a connection cleanly.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// The first and the longest wait before the next attempt to connect. Chosen: a service reconnects within a moment to a
/// server that restarts. An unreachable server gets at most twelve attempts a minute.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The form of an address with all its parts, for messages.
pub(super) const FORM: &str = "postgres://USER:PASSWORD@HOST:PORT/DATABASE";

/// The host, the database and the user: `postgres://user:password@host:port/database`. `?host=/run/postgresql` selects
/// a unix socket; `?sslmode=verify-full&sslrootcert=/etc/ca.pem` selects TLS with a verified server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    config: tokio_postgres::Config,
    tls: PostgresTls,
}

impl FromStr for Address {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(format!("the address of PostgreSQL does not start with postgres://: write {FORM}"));
        }
        let (place, options) = url.split_once('?').unwrap_or((url, ""));
        // The client library does not parse all of libpq's TLS options, so they are removed from the URL first.
        let (mut given, mut rest) = (tls::Given::default(), Vec::new());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            // As in libpq, a plus sign does not stand for a space.
            let option_text = option.replace('+', "%2B");
            let (name, value) = form_urlencoded::parse(option_text.as_bytes()).next().unwrap_or_default();
            if !given.take(&name, &value)? {
                rest.push(option);
            }
        }
        let mut tls = given.check()?;
        let url = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let mut config: tokio_postgres::Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            format!("cannot read the address of PostgreSQL: {why}")
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(
                "the address of PostgreSQL names no host: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, or \
                        postgres:///DATABASE?host=/run/postgresql for a unix socket"
                    .to_owned(),
            );
        }
        if config.get_hosts().is_empty() {
            // The address has only IP addresses, so the certificate is verified for an IP address.
            for number in config.get_hostaddrs().to_vec() {
                config.host(number.to_string());
            }
        }
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            tls.mode = Mode::Disable;
        }
        config.ssl_mode(match tls.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        if config.get_application_name().is_none() {
            config.application_name("logspool");
        }
        config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(PEER_TIMEOUT);
        // The same limit applies while the client waits for an answer from a machine that is gone.
        config.keepalives_idle(PEER_TIMEOUT / 2).keepalives_interval(PEER_TIMEOUT / 6).keepalives_retries(3);
        Ok(Self { config, tls })
    }
}

/// Shows the address without the password.
impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.config.get_ports().first().unwrap_or(&5432);
        match (self.config.get_hosts().first(), self.config.get_hostaddrs().first()) {
            (Some(Host::Tcp(name)), _) => write!(to, "postgres://{name}:{port}")?,
            (Some(Host::Unix(path)), _) => write!(to, "postgres://{}:{port}", path.display())?,
            (None, Some(address)) => write!(to, "postgres://{address}:{port}")?,
            (None, None) => to.write_str("postgres://")?,
        }
        write!(to, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

/// Why an operation failed.
#[derive(Debug)]
pub(super) enum ServerFailure {
    /// The server reported an error, or is unreachable.
    Server(tokio_postgres::Error),
    /// The operation may succeed later.
    Retry(String),
    /// The operation fails until a person repairs the cause.
    Fatal(String),
}

impl From<tokio_postgres::Error> for ServerFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl ServerFailure {
    /// The error as a store reports it: the operation, the server and the reason.
    pub(super) fn explain(self, what: &str, address: &Address) -> StoreError {
        match self {
            Self::Server(error) => {
                let why = format!("cannot {what} {address}: {}", reason(&error));
                match repair_hint(error.code().map_or("", |code| code.code())) {
                    Some(fix) => StoreError::Fatal(format!("{why}; {fix}")),
                    None => StoreError::Retry(why),
                }
            }
            Self::Retry(why) => StoreError::Retry(format!("cannot {what} {address}: {why}")),
            Self::Fatal(why) => StoreError::Fatal(format!("cannot {what} {address}: {why}")),
        }
    }

    /// The SQLSTATE of the server's error. It is empty if the error did not come from the server.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Server(error) => error.code().map_or("", |code| code.code()),
            Self::Retry(_) | Self::Fatal(_) => "",
        }
    }
}

/// Advice for a server error that stays until an operator acts. `code` is its SQLSTATE.
fn repair_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "28P01" | "28000" => {
            "check the user and the password in the address of the store, and pg_hba.conf of the server"
        }
        "3D000" => "create the database with CREATE DATABASE, or name another one in the address of the store",
        "42501" => "grant this permission to the role of the service, or make it the owner of the schema logspool",
        "25006" => "the server is read-only, for example a standby: name the primary",
        // These codes report a missing or changed table, schema, column, type or key.
        "42P01" | "3F000" | "42703" | "42804" | "42P10" => REPAIR_TABLES,
        _ => return None,
    })
}

/// Returns the text of a server error on one line.
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    let Some(answer) = error.as_db_error() else {
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return format!("{error}{cause}");
    };
    let mut line = answer.message().to_owned();
    for more in [answer.detail(), answer.hint()].into_iter().flatten() {
        line.push_str(", ");
        line.push_str(more.trim_end_matches('.'));
    }
    line + " (" + answer.code().code() + ")"
}

/// A connection; `None` once it is closed.
#[derive(Debug)]
pub(super) struct ServerLink(Option<OpenConnection>);

#[derive(Debug)]
struct OpenConnection {
    runtime: Runtime,
    client: Client,
    connection: JoinHandle<()>,
}

impl ServerLink {
    pub(super) fn open(address: &Address) -> Result<Self, ServerFailure> {
        Self::open_unless(address, std::future::pending())
    }

    /// Connects to the server. Fails if `given_up` completes first.
    pub(super) fn open_unless(address: &Address, given_up: impl Future<Output = ()>) -> Result<Self, ServerFailure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ServerFailure::Retry(format!("cannot start a runtime: {error}")))?;
        // TLS files are read for each attempt, so the next attempt uses a repaired file.
        let tls = address.tls.config().map_err(ServerFailure::Retry)?.map(MakeRustlsConnect::new);
        let connected = runtime.block_on(async {
            tokio::select! {
                connected = timeout(CONNECT_TIMEOUT, connect(&address.config, tls)) => Ok(connected),
                () = given_up => Err(ServerFailure::Retry(QUERY_CANCELLED.to_owned())),
            }
        })?;
        let (client, driver) =
            connected.map_err(|_| ServerFailure::Retry(format!("no answer within {CONNECT_TIMEOUT:?}")))??;
        let connection = runtime.spawn(driver);
        Ok(Self(Some(OpenConnection { runtime, client, connection })))
    }

    /// Runs `work` on the connection and waits for it.
    pub(super) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Client) -> Result<T, ServerFailure>,
    ) -> Result<T, ServerFailure> {
        match &self.0 {
            Some(open) => open.runtime.block_on(work(&open.client)),
            None => Err(ServerFailure::Retry("the connection is closed".to_owned())),
        }
    }

    /// Asks the server to cancel the current query, and closes the connection. Without this request the query would run
    /// until it has a row to send.
    pub(super) fn abandon(mut self, address: &Address) {
        let Some(OpenConnection { runtime, client, .. }) = self.0.take() else { return };
        let token = client.cancel_token();
        drop(client);
        // A runtime cannot block inside another runtime. If this thread is in one, no request is sent, and the query
        // ends when it sends its next row, or at its time limit.
        if tokio::runtime::Handle::try_current().is_err() {
            runtime.block_on(async {
                // If the request fails, the query also ends when it sends its next row, or at its time limit.
                let _ = match address.tls.config().map(|tls| tls.map(MakeRustlsConnect::new)) {
                    Ok(Some(tls)) => timeout(CANCEL_TIMEOUT, token.cancel_query(tls)).await.is_ok(),
                    Ok(None) => timeout(CANCEL_TIMEOUT, token.cancel_query(NoTls)).await.is_ok(),
                    Err(_) => false,
                };
            });
        }
        runtime.shutdown_background();
    }

    /// Closes the connection cleanly.
    pub(super) fn close(mut self) {
        let Some(OpenConnection { runtime, client, connection }) = self.0.take() else { return };
        // Dropping the client ends the connection.
        drop(client);
        runtime.block_on(async { drop(timeout(GOODBYE_TIMEOUT, connection).await) });
        runtime.shutdown_background();
    }
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        // Dropping a runtime on a thread that runs async code panics.
        if let Some(open) = self.0.take() {
            open.runtime.shutdown_background();
        }
    }
}

/// The future that sends and receives a connection's bytes. If it fails, callers that wait for an answer get the error.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

async fn connect(
    config: &tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
) -> Result<(Client, Driver), tokio_postgres::Error> {
    fn driver<S, T>(connection: Connection<S, T>) -> Driver
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Box::pin(async move { drop(connection.await) })
    }
    Ok(match tls {
        None => {
            let (client, connection) = config.connect(NoTls).await?;
            (client, driver(connection))
        }
        Some(tls) => {
            let (client, connection) = config.connect(tls).await?;
            (client, driver(connection))
        }
    })
}

/// Decides when the next attempt may begin after a failure.
#[derive(Debug)]
pub(super) struct Backoff {
    wait: Duration,
    until: Option<Instant>,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { wait: FIRST_WAIT, until: None }
    }

    /// The time until the next attempt may begin.
    pub(super) fn remaining(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::new();
    }

    /// Starts the next wait and doubles the one after. Each wait is lengthened by up to a quarter at random, so that
    /// many services do not reconnect at the same moment.
    pub(super) fn failed(&mut self) {
        let chance = u32::try_from(RandomState::new().hash_one(()) % 256).unwrap_or_default();
        self.until = Some(Instant::now() + self.wait + self.wait / 1024 * chance);
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (expected, url) in [
            ("postgres://db.example:5433/logs", "postgres://me:secret@db.example:5433/logs"),
            ("postgres://db.example:5432/", "postgresql://me:secret@db.example"),
            ("postgres:///run/postgresql:5432/logs", "postgres://me:secret@/logs?host=/run/postgresql&sslmode=disable"),
        ] {
            let address: Address = url.parse().unwrap();

            assert_eq!(expected, address.to_string());
        }
    }

    #[test]
    fn an_unusable_address_is_refused_with_the_reason() {
        for (expected, url) in [
            ("does not start with postgres://", "host=db user=me"),
            ("names no host", "postgres:///logs"),
            ("verify-ca and verify-full", "postgres://db/logs?sslmode=allow"),
            ("want sslrootcert=FILE", "postgres://db/logs?sslmode=verify-full"),
            ("cannot use sslcrl", "postgres://db/logs?sslmode=require&sslcrl=/x"),
            ("unknown option `color`", "postgres://db/logs?color=red"),
            ("invalid value for option `port`", "postgres://db:http/logs"),
        ] {
            let error = url.parse::<Address>().unwrap_err();

            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn tls_options_are_read_beside_the_others() {
        let read = |url: &str| url.parse::<Address>().unwrap();
        let address = read("postgres://me@db/logs?sslrootcert=/etc/a%20b+c.pem&application_name=x&sslmode=verify-full");
        let error = address.tls.config().unwrap_err();

        assert_eq!((Mode::VerifyFull, Some("x")), (address.tls.mode, address.config.get_application_name()));
        assert_eq!(SslMode::Require, address.config.get_ssl_mode());
        assert!(error.contains("/etc/a b+c.pem"), "{error}");
        assert_eq!(Mode::Prefer, read("postgres://me@db/logs").tls.mode);
        // A unix socket is not encrypted, as with libpq.
        assert_eq!(Mode::Disable, read("postgres:///logs?host=/run/postgresql&sslmode=require").tls.mode);
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_the_longest() {
        let mut backoff = Backoff::new();
        assert_eq!(Duration::ZERO, backoff.remaining());

        for _ in 0..20 {
            backoff.failed();
        }
        assert!(backoff.remaining() <= LONGEST_WAIT * 5 / 4);
        assert!(backoff.remaining() > LONGEST_WAIT - Duration::from_secs(1));

        backoff.succeeded();
        assert_eq!(Duration::ZERO, backoff.remaining());
    }
}
