//! TLS on a socket that does not block. The service is authenticated before the first record is sent.
//!
//! For each new connection the certificate files are read and the authorities are looked up, not earlier. So a renewed
//! certificate only has to replace the old file. A program that only creates a handler pays no cost for TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, ProtocolVersion};

use logspool_record::address::TlsIdentity;

use super::stream::Socket;
use crate::tls;

/// Maximum time for a handshake.
///
/// Chosen: a hundred handshakes between busy machines take this long. A handshake that takes longer waits for something
/// other than TLS.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);

/// How long a server without tickets may take to refuse the certificate of this client.
///
/// Chosen: ten round trips between continents take less than half of it.
const REFUSAL_LIMIT: Duration = Duration::from_secs(2);

/// The TLS session of a connection.
#[derive(Debug)]
pub struct Session {
    tls: Box<ClientConnection>,
    begun: Instant,
    /// When the handshake was first seen to be complete.
    established: Option<Instant>,
    /// The authorities that the session trusts, as text for error messages.
    believes: String,
}

impl Session {
    /// Begins a session with the service at `host`. The first [`receive`](Self::receive) sends the first bytes of the
    /// handshake.
    ///
    /// # Errors
    ///
    /// The file that cannot be used, and the reason.
    pub fn begin(host: &str, identity: &TlsIdentity) -> io::Result<Self> {
        let name = identity.server_name.as_deref().unwrap_or(host);
        let server_name = ServerName::try_from(name.to_owned())
            .map_err(|_| unusable(format!("{name:?} can be the name of no certificate (fix: server_name)")))?;
        let tls = ClientConnection::new(Arc::new(config(identity).map_err(unusable)?), server_name);
        let believes = identity.authorities.as_ref().map_or("the authorities of this system".to_owned(), Clone::clone);
        let tls = Box::new(tls.map_err(|error| unusable(error.to_string()))?);
        Ok(Self { tls, begun: Instant::now(), established: None, believes })
    }

    /// Whether the handshake is not complete yet.
    pub fn is_beginning(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the server has accepted this client. In TLS 1.3 a server checks the certificate of its client after the
    /// handshake has ended for the client, and then sends tickets or a refusal. A server that sends neither counts as
    /// content after a while.
    pub fn is_accepted(&mut self) -> bool {
        if self.is_beginning() {
            return false;
        }
        let since = *self.established.get_or_insert_with(Instant::now);
        self.tls.protocol_version() != Some(ProtocolVersion::TLSv1_3)
            || self.tls.tls13_tickets_received() > 0
            || since.elapsed() >= REFUSAL_LIMIT
    }

    /// Whether the session has bytes that wait for room in the socket.
    pub fn has_to_send(&self) -> bool {
        self.tls.wants_write()
    }

    /// Encrypts and sends the first bytes of `bytes`. Returns their number, which is 0 before the end of the handshake.
    ///
    /// # Errors
    ///
    /// The connection is lost, or the service refused it with a reason.
    pub fn send(&mut self, socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
        let taken = if self.is_beginning() { 0 } else { self.tls.writer().write(bytes)? };
        self.push(socket)?;
        Ok(taken)
    }

    /// Reads the bytes that have arrived, and continues the handshake. Returns 0 if the service has closed the
    /// connection.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if no bytes have arrived. Any other error has the reason why the connection is lost or was not
    /// established.
    pub fn receive(&mut self, socket: &mut Socket, into: &mut [u8]) -> io::Result<usize> {
        self.push(socket)?;
        loop {
            match self.tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            match self.tls.read_tls(socket) {
                Ok(0) => {
                    return if self.is_beginning() { Err(self.lost(ErrorKind::UnexpectedEof.into())) } else { Ok(0) };
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let is_late = self.is_beginning() && self.begun.elapsed() > HANDSHAKE_LIMIT;
                    return Err(if is_late { silent() } else { error });
                }
                Err(error) => return Err(self.lost(error)),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // Sends an alert with the reason to the service. It does not matter here whether the alert arrives.
                let _ = self.tls.write_tls(socket);
                return Err(self.refused(&error));
            }
            self.push(socket)?;
        }
    }

    /// Sends a last message and closes the session. The socket must be blocking.
    ///
    /// # Errors
    ///
    /// The message is not sent within the socket's limit.
    pub fn finish(mut self, socket: &mut Socket, message: &[u8]) -> io::Result<()> {
        if self.is_beginning() {
            return Ok(());
        }
        self.tls.writer().write_all(message)?;
        self.tls.send_close_notify();
        while self.tls.wants_write() {
            self.tls.write_tls(socket)?;
        }
        Ok(())
    }

    /// Sends pending bytes of TLS, as many as possible without blocking.
    fn push(&mut self, socket: &mut Socket) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.last_words(socket).unwrap_or_else(|| self.lost(error))),
            }
        }
        Ok(())
    }

    /// The reason that the service sent before it ended the connection, if any.
    fn last_words(&mut self, socket: &mut Socket) -> Option<io::Error> {
        while self.tls.read_tls(socket).is_ok_and(|count| count > 0) {
            if let Err(error) = self.tls.process_new_packets() {
                return Some(self.refused(&error));
            }
        }
        None
    }

    fn lost(&self, error: io::Error) -> io::Error {
        let is_end = matches!(
            error.kind(),
            ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
        );
        if !self.is_beginning() || !is_end {
            return error;
        }
        let why = "the service ended the connection in the TLS handshake (fix: does it listen with tls:// there?)";
        io::Error::new(error.kind(), why)
    }

    /// The error for a refusal by either side, with a hint how to fix it.
    fn refused(&self, error: &Error) -> io::Error {
        let why = match error {
            Error::InvalidCertificate(error) => self.certificate_refused(error),
            Error::AlertReceived(alert) => alert_received(*alert),
            Error::InvalidMessage(_) => {
                "what answers there speaks no TLS (fix: tcp:// in the address, or the port that listens with tls://)"
                    .to_owned()
            }
            other => format!("no TLS with the service: {other}"),
        };
        io::Error::new(ErrorKind::InvalidData, why)
    }

    fn certificate_refused(&self, error: &CertificateError) -> String {
        let believes = &self.believes;
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
                "the certificate of the service was not issued by {believes} (fix: authorities=, a file with the \
                 certificate of its authority)"
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the certificate of the service has expired (fix: a new one for the service)".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate of the service is not valid yet (fix: the clock of this machine, or a new certificate)"
                    .to_owned()
            }
            CertificateError::NotValidForNameContext { expected, presented } => format!(
                "the certificate of the service is for {}, not for {} (fix: server_name=, or a certificate for that \
                 name)",
                names(presented),
                expected.to_str()
            ),
            // The code compares the error's `Debug` name, because its enum is in another crate and is not public here.
            CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
                "the certificate of the service is that of an authority, which no service may show (fix: one with \
                 basicConstraints=CA:FALSE)"
                    .to_owned()
            }
            other => format!("the certificate of the service cannot be believed: {other}"),
        }
    }
}

fn alert_received(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "the service wants a certificate of this program (fix: certificate= and key=)".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::DecryptError
        | AlertDescription::AccessDenied => format!(
            "the service refuses the certificate of this program: {alert:?} (fix: certificate= and key= of one that \
             its client_authorities issued)"
        ),
        other => format!("the service ended the TLS connection: {other:?}"),
    }
}

/// Shortens names such as `DnsName("logs")` to the text inside. Other names are unchanged.
fn names(presented: &[String]) -> String {
    let bare = |name: &String| match name.split_once('(') {
        Some((_, name)) => name.trim_end_matches(')').trim_matches('"').to_owned(),
        None => name.clone(),
    };
    if presented.is_empty() { "no name".to_owned() } else { presented.iter().map(bare).collect::<Vec<_>>().join(", ") }
}

fn silent() -> io::Error {
    let why = format!(
        "no answer to the TLS handshake within {} s (fix: does the service listen with tls:// there?)",
        HANDSHAKE_LIMIT.as_secs()
    );
    io::Error::new(ErrorKind::TimedOut, why)
}

fn unusable(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

fn config(identity: &TlsIdentity) -> Result<ClientConfig, String> {
    let roots = match &identity.authorities {
        Some(path) => tls::authorities(Path::new(path))?,
        None => tls::system_authorities("authorities=")?,
    };
    let shown = identity.certificate.as_ref().zip(identity.key.as_ref());
    let shown = shown.map(|(certificate, key)| (Path::new(certificate), Path::new(key)));
    let mut config = tls::client(|builder| builder.with_root_certificates(roots), shown)?;
    // Sessions cannot be resumed, because each connection has its own configuration.
    config.resumption = Resumption::disabled();
    Ok(config)
}
