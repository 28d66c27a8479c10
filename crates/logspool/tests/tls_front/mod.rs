//! TLS in front of a plain service, with certificates made for the test.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

/// Time for which one side may be silent before the other is read.
const TURN: Duration = Duration::from_millis(1);

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn issue(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        Issued { certificate: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }

    /// Writes the authority's own certificate to a file.
    pub fn write(&self, path: &Path) {
        std::fs::write(path, self.0.pem()).unwrap();
    }

    /// The authority's own certificate and key, for a server that wrongly presents them.
    pub fn itself(&self) -> Issued {
        Issued { certificate: self.0.pem(), key: self.0.key().serialize_pem() }
    }
}

/// Configuration of a front that presents `shown`, and requires client certificates of `clients` if given.
pub fn config(shown: &Issued, clients: Option<&Authority>) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let certificate = CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
    Arc::new(builder.with_single_cert(vec![certificate], key).unwrap())
}

/// A listener that terminates TLS and forwards the decrypted bytes.
pub struct Front {
    /// The address it listens at.
    pub place: SocketAddr,
    shown: Shown,
}

/// The configuration for new connections; with `None` bytes are forwarded without TLS.
type Shown = Arc<Mutex<Option<Arc<ServerConfig>>>>;

impl Front {
    /// Starts a front for the service at `tcp://...`, at any free port.
    pub fn start(config: Arc<ServerConfig>, service: &str) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), config, service)
    }

    /// As [`start`](Self::start), at a given address.
    pub fn start_at(place: SocketAddr, config: Arc<ServerConfig>, service: &str) -> Self {
        let to: SocketAddr = service.strip_prefix("tcp://").unwrap().parse().unwrap();
        let listener = TcpListener::bind(place).unwrap();
        let place = listener.local_addr().unwrap();
        let shown: Shown = Arc::new(Mutex::new(Some(config)));
        let shared = shown.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, shown) = (client.unwrap(), shared.lock().unwrap().clone());
                std::thread::spawn(move || match shown {
                    Some(config) => end_tls(client, config, to),
                    None => hand_on(client, to),
                });
            }
        });
        Self { place, shown }
    }

    /// Sets the configuration for the next connections; with `None` they are forwarded without TLS.
    pub fn show(&self, config: Option<Arc<ServerConfig>>) {
        *self.shown.lock().unwrap() = config;
    }
}

fn hand_on(mut client: TcpStream, to: SocketAddr) {
    let Ok(mut service) = TcpStream::connect(to) else { return };
    let (mut back_from, mut back_to) = (service.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
    let _ = std::io::copy(&mut client, &mut service);
    let _ = service.shutdown(std::net::Shutdown::Both);
}

fn end_tls(mut client: TcpStream, config: Arc<ServerConfig>, to: SocketAddr) {
    let mut tls = ServerConnection::new(config).unwrap();
    let Ok(mut service) = TcpStream::connect(to) else { return };
    client.set_read_timeout(Some(TURN)).unwrap();
    service.set_read_timeout(Some(TURN)).unwrap();
    let is_silent = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut part = [0; 16 * 1024];
    loop {
        match tls.read_tls(&mut client) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_silent(&error) => {}
            Err(_) => return,
        }
        if tls.process_new_packets().is_err() {
            let _ = tls.write_tls(&mut client);
            return;
        }
        while let Ok(count @ 1..) = tls.reader().read(&mut part) {
            if service.write_all(&part[..count]).is_err() {
                return;
            }
        }
        match service.read(&mut part) {
            Ok(0) => return,
            Ok(count) => tls.writer().write_all(&part[..count]).unwrap(),
            Err(error) if is_silent(&error) => {}
            Err(_) => return,
        }
        while tls.wants_write() {
            if tls.write_tls(&mut client).is_err() {
                return;
            }
        }
    }
}
