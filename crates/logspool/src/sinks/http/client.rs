//! Sends one request and reads its answer. The connection is kept for the next request.
//!
//! Certificates are read when the sink sends its first request. A program that only creates a handler pays no cost for
//! TLS.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use ureq::http::{HeaderName, HeaderValue};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector};

use super::kept_transport::KeptConnector;
use super::{HttpAnswer, HttpSettings, headers};
use crate::tls;

/// Bodies below this size are not compressed. Chosen: they fit one packet.
const MIN_COMPRESSED_BYTES: usize = 1024;

/// An agent whose sockets are checked before each use.
fn checked_agent(config: Config) -> Agent {
    let connector = ().chain(ConnectProxyConnector::default()).chain(KeptConnector).chain(RustlsConnector::default());
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// A client for one address.
pub struct HttpClient {
    agent: OnceLock<Agent>,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    authorities: Option<String>,
    timeout: Duration,
    compress: bool,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpClient").field("url", &self.url).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Makes a client. Connects to nothing.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for settings that contradict each other.
    pub fn new(settings: &HttpSettings) -> io::Result<Self> {
        let headers = headers::all(settings).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        Ok(Self {
            agent: OnceLock::new(),
            url: settings.url.clone(),
            headers,
            authorities: settings.authorities.clone(),
            timeout: settings.timeout,
            compress: settings.compress,
        })
    }

    /// Sends `body` by POST, and returns the answer with at most `answer_bytes` of its body.
    ///
    /// # Errors
    ///
    /// The connection cannot be opened, is lost, or the answer does not arrive in time. The receiver may have accepted
    /// the request nevertheless.
    pub fn post(&self, body: &[u8], content_type: &str, answer_bytes: u64) -> io::Result<HttpAnswer> {
        let agent = match self.agent.get() {
            Some(agent) => agent,
            None => {
                let made = self.agent().map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
                self.agent.get_or_init(|| made)
            }
        };
        let mut request = agent.post(&self.url).header(CONTENT_TYPE, content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let sent = if self.compress && body.len() >= MIN_COMPRESSED_BYTES {
            let mut packed = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
            packed.write_all(body)?;
            request.header(CONTENT_ENCODING, "gzip").send(&packed.finish()?[..])
        } else {
            request.send(body)
        };
        let mut response = sent.map_err(|error| self.explain(error))?;
        let text = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let mut answer = HttpAnswer {
            status: response.status().as_u16(),
            // A date instead of seconds is not read: the usual pause applies.
            retry_after: text(RETRY_AFTER).and_then(|text| text.trim().parse().ok()).map(Duration::from_secs),
            location: text(LOCATION).map(str::to_owned),
            content_type: text(CONTENT_TYPE)
                .map(|text| text.split(';').next().unwrap_or_default().trim().to_lowercase()),
            body: Vec::new(),
        };
        // A receiver or proxy that compresses without being asked.
        let is_packed = text(CONTENT_ENCODING).is_some_and(|text| text.trim().eq_ignore_ascii_case("gzip"));
        let reader = response.body_mut().as_reader();
        let read = if is_packed {
            GzDecoder::new(reader).take(answer_bytes).read_to_end(&mut answer.body)
        } else {
            reader.take(answer_bytes).read_to_end(&mut answer.body)
        };
        match read {
            // The status says enough if the request failed.
            Err(error) if answer.status < 300 => Err(self.explain(error.into())),
            _ => Ok(answer),
        }
    }

    fn agent(&self) -> Result<Agent, String> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("logspool/", env!("CARGO_PKG_VERSION")))
            .timeout_global(Some(self.timeout))
            .max_idle_connections(1)
            .max_idle_connections_per_host(1);
        if !self.url.starts_with("https://") {
            return Ok(checked_agent(config.build()));
        }
        let certificates: Vec<_> = match &self.authorities {
            Some(path) => {
                // Also checks that each of them can be an authority.
                tls::authorities(Path::new(path))?;
                tls::certificates(Path::new(path), "authorities")?
            }
            None => {
                tls::system_authorities("the option authorities")?;
                rustls_native_certs::load_native_certs().certs
            }
        };
        let roots = certificates.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(tls::provider())
            .build();
        Ok(checked_agent(config.tls_config(tls).build()))
    }

    /// An error with a reason that a reader understands.
    fn explain(&self, error: ureq::Error) -> io::Error {
        match error {
            ureq::Error::Io(error) if error.raw_os_error().is_some() => error,
            ureq::Error::Io(error) if format!("{error:?}").contains("InvalidCertificate") => {
                let trusted = self.authorities.as_deref().unwrap_or("the authorities of this system");
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "cannot trust the certificate of the receiver by {trusted}: {error} (fix: the option \
                         authorities, or a certificate for this host name)"
                    ),
                )
            }
            ureq::Error::Io(error) => error,
            ureq::Error::Timeout(_) => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} s (fix: the receiver, or timeout_seconds)", self.timeout.as_secs_f64()),
            ),
            ureq::Error::HostNotFound => {
                io::Error::new(io::ErrorKind::NotFound, "there is no host of that name (fix: address)")
            }
            other => io::Error::new(io::ErrorKind::InvalidData, format!("no HTTP answer: {other}")),
        }
    }
}
