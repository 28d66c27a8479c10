//! TLS for listeners. The certificate and the key are read from files. If authorities are configured, clients need a
//! certificate.

use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::server::WebPkiClientVerifier;

use crate::limits::parts::Tls;

/// Certificate, key and authorities of a TLS listener. They can be replaced while the listener runs.
#[derive(Clone)]
pub struct Identity(Arc<RwLock<TlsAcceptor>>);

impl std::fmt::Debug for Identity {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Identity")
    }
}

impl Identity {
    /// Reads the certificate, key and authority files.
    ///
    /// # Errors
    ///
    /// A file cannot be read or used. The text names the file and the reason.
    pub fn read(tls: &Tls) -> Result<Self, String> {
        Ok(Self(Arc::new(RwLock::new(acceptor(tls)?))))
    }

    /// Reads the files again. New connections use the new certificate. On an error the old certificate stays in use.
    ///
    /// # Errors
    ///
    /// The same errors as for [`Identity::read`].
    pub fn read_again(&self, tls: &Tls) -> Result<(), String> {
        let new = acceptor(tls)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The acceptor for the next connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor(tls: &Tls) -> Result<TlsAcceptor, String> {
    let certificates = logspool::tls::certificates(&tls.certificate, "certificates")?;
    let key = logspool::tls::key(&tls.key)?;
    let builder = match &tls.client_authorities {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(path) => {
            let verifier = WebPkiClientVerifier::builder(Arc::new(logspool::tls::authorities(path)?)).build();
            let verifier = verifier.map_err(|error| logspool::tls::unusable(path, "authorities", &error))?;
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    let config = builder.with_single_cert(certificates, key);
    config
        .map(|mut config| {
            // gRPC clients require that the service agrees to HTTP/2. Other clients name no protocols.
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            TlsAcceptor::from(Arc::new(config))
        })
        .map_err(|error| logspool::tls::unusable(&tls.key, "key", &error))
}
