//! Certificates and keys from PEM files, for all TLS of the service: listeners and stores.
//!
//! Each error names the file and the reason.

use std::fmt::Display;
use std::path::Path;

use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads all certificates of a file, at least one.
///
/// # Errors
///
/// The file cannot be read, is not PEM, or contains no certificate.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(path, "the certificates", &error))?;
    if all.is_empty() { Err(format!("{} contains no certificate in PEM form", path.display())) } else { Ok(all) }
}

/// Reads the first private key of a file.
///
/// # Errors
///
/// The file cannot be read, is not PEM, or contains no key without a passphrase.
pub fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable(path, "the key", &error))
}

/// Reads a file of certificate authorities.
///
/// # Errors
///
/// As for [`certificates`], or a certificate cannot be an authority.
pub fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, "the authorities", &error))?;
    }
    Ok(roots)
}

/// The error text for a file that was read but cannot be used.
pub fn unusable(path: &Path, what: &str, error: &dyn Display) -> String {
    format!("cannot use {what} of {}: {error}", path.display())
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

            assert!(certificates(path).unwrap_err().contains(name));
            assert!(authorities(path).unwrap_err().contains(name));
            assert!(key(path).unwrap_err().contains(name));
        }
        assert!(certificates(&empty).unwrap_err().contains("no certificate in PEM form"));
    }

    #[test]
    fn bytes_that_are_no_certificate_vouch_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();

        let error = authorities(&path).unwrap_err();

        assert!(error.starts_with("cannot use the authorities of "), "{error}");
    }
}
