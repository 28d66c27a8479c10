//! TLS for listeners: certificate and key from files, clients known by theirs where authorities are given.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::config::Tls;

/// What a TLS listener shows and asks for; can be read again while it listens.
#[derive(Clone)]
pub struct Identity(Arc<RwLock<TlsAcceptor>>);

impl std::fmt::Debug for Identity {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Identity")
    }
}

impl Identity {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Which file, and why.
    pub fn read(tls: &Tls) -> Result<Self, String> {
        Ok(Self(Arc::new(RwLock::new(acceptor(tls)?))))
    }

    /// Reads the files again: connections from now on see what they say. On an error all stays as it was.
    ///
    /// # Errors
    ///
    /// As for [`Identity::read`].
    pub fn read_again(&self, tls: &Tls) -> Result<(), String> {
        let new = acceptor(tls)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// For the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let certificates = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| at(&tls.key, "the key", &error))?;
    let builder = match &tls.client_authorities {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in self::certificates(path)? {
                roots.add(certificate).map_err(|error| at(path, "the authorities", &error))?;
            }
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            let verifier = verifier.map_err(|error| at(path, "the authorities", &error))?;
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(certificates, key);
    config
        .map(|config| TlsAcceptor::from(Arc::new(config)))
        .map_err(|error| at(&tls.key, "certificate and key", &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = match CertificateDer::pem_file_iter(path) {
        Ok(all) => all.collect(),
        Err(error) => return Err(at(path, "the certificate", &error)),
    };
    match all {
        Ok(all) if all.is_empty() => Err(format!("{} holds no certificate in PEM form", path.display())),
        Ok(all) => Ok(all),
        Err(error) => Err(at(path, "the certificate", &error)),
    }
}

fn at(path: &Path, what: &str, error: &dyn std::fmt::Display) -> String {
    format!("cannot use {what} of {}: {error}", path.display())
}
