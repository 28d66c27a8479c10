//! Reads certificates and keys, and makes client configurations for TLS. Both the sink of a service and the service use
//! it.
//!
//! Files are PEM. Each error names the file and the reason.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};

/// Reads all certificates of a file, at least one. `what` describes them in error texts.
///
/// # Errors
///
/// Fails if the file cannot be read, is not PEM, or contains no certificate.
pub fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let cannot = |error| unreadable(path, what, error, "there is no certificate in it");
    let all: Vec<_> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect).map_err(cannot)?;
    if all.is_empty() { Err(cannot(pem::Error::NoItemsFound)) } else { Ok(all) }
}

/// Reads the first private key of a file.
///
/// # Errors
///
/// Fails if the file cannot be read, is not PEM, or contains no private key without a passphrase.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|error| unreadable(path, "key", error, "there is no private key in it, or one with a passphrase"))
}

/// Reads a file of certificate authorities.
///
/// # Errors
///
/// Fails as [`certificates`] does, and if a certificate cannot be an authority.
pub fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, "authorities")? {
        roots.add(certificate).map_err(|error| unusable(path, "authorities", &error))?;
    }
    Ok(roots)
}

/// The authorities of this system. Certificates that cannot be parsed are skipped.
///
/// # Errors
///
/// Fails if the system has no certificates of authorities. The text names `option`, with which a user can give
/// authorities instead.
pub fn system_authorities(option: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(format!(
            "this system has no certificates of authorities (fix: the package ca-certificates, or {option})"
        ));
    }
    Ok(roots)
}

/// The configuration of a TLS client. `verified` sets how it verifies servers. `shown` is the certificate that the
/// client presents, with its key.
///
/// # Errors
///
/// Fails if a certificate or key file cannot be used.
pub fn client(
    verified: impl FnOnce(ConfigBuilder<ClientConfig, WantsVerifier>) -> ConfigBuilder<ClientConfig, WantsClientCert>,
    shown: Option<(&Path, &Path)>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = verified(builder);
    match shown {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key_path)) => {
            builder.with_client_auth_cert(certificates(certificate, "certificate")?, key(key_path)?).map_err(|error| {
                let (certificate, key) = (certificate.display(), key_path.display());
                format!("cannot use the certificate {certificate} with the key {key}: {error}")
            })
        }
    }
}

/// The cryptography provider of all connections.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn unreadable(path: &Path, what: &str, error: pem::Error, nothing: &str) -> String {
    match error {
        pem::Error::NoItemsFound => unusable(path, what, &nothing),
        pem::Error::Io(error) => unusable(path, what, &error),
        other => unusable(path, what, &other),
    }
}

/// The error text for a file that cannot be used.
pub fn unusable(path: &Path, what: &str, error: &dyn Display) -> String {
    format!("cannot use the {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing").unwrap();
        for path in [&missing, &empty] {
            let name = path.to_str().unwrap();

            assert!(certificates(path, "certificate").unwrap_err().contains(name));
            assert!(authorities(path).unwrap_err().contains(name));
            assert!(key(path).unwrap_err().contains(name));
        }
        assert!(certificates(&empty, "certificate").unwrap_err().contains("there is no certificate in it"));
    }

    #[test]
    fn bytes_that_are_not_a_certificate_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();

        let error = authorities(&path).unwrap_err();

        assert!(error.starts_with("cannot use the authorities "), "{error}");
    }
}
