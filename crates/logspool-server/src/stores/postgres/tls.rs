//! TLS to the server, with libpq's options in the address: `sslmode`, `sslrootcert`, `sslcert` and `sslkey`.
//!
//! | `sslmode` | encrypted | accepted certificates |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer` (default) | if the server can | any |
//! | `require` | yes | any; with `sslrootcert`, as for `verify-ca` |
//! | `verify-ca` | yes | issued by an authority of `sslrootcert` |
//! | `verify-full` | yes | issued by an authority of `sslrootcert` for the host of the address |
//!
//! A unix socket is never encrypted. The files are read for each connection.

use std::path::PathBuf;
use std::sync::Arc;

use logspool::tls;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// TLS settings of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PostgresTls {
    /// See [`Mode`].
    pub mode: Mode,
    authorities: Option<Authorities>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// The value of `sslmode`; see the table in the module documentation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// The connection is never encrypted.
    Disable,
    /// The connection is encrypted if the server supports TLS.
    #[default]
    Prefer,
    /// The connection is encrypted. Any certificate is accepted.
    Require,
    /// The connection is encrypted. An authority must have issued the certificate, for any name.
    VerifyCa,
    /// The connection is encrypted. An authority must have issued the certificate for the host's name.
    VerifyFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Authorities {
    System,
    File(PathBuf),
}

/// The TLS options of an address, before they are checked.
#[derive(Debug, Default)]
pub(super) struct Given {
    mode: Option<String>,
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Given {
    /// Takes an option. Returns `false` if it is not a TLS option.
    ///
    /// # Errors
    ///
    /// The option is a TLS option of libpq that this store does not support.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let place = match name {
            "sslmode" => &mut self.mode,
            "sslrootcert" => &mut self.authorities,
            "sslcert" => &mut self.certificate,
            "sslkey" => &mut self.key,
            "sslnegotiation" => return Ok(false),
            _ if name.starts_with("ssl") || name.starts_with("gss") || name == "requiressl" => {
                return Err(format!(
                    "cannot use {name} in the address of PostgreSQL: of libpq's options about TLS, sslmode, sslrootcert, \
                     sslcert, sslkey and sslnegotiation are known"
                ));
            }
            _ => return Ok(false),
        };
        *place = Some(value.to_owned());
        Ok(true)
    }

    /// Checks the options and combines them.
    ///
    /// # Errors
    ///
    /// The options contradict each other. The text says what to change.
    pub fn check(self) -> Result<PostgresTls, String> {
        let authorities = self.authorities.map(|text| match &*text {
            "system" => Authorities::System,
            path => Authorities::File(PathBuf::from(path)),
        });
        let mode = match (self.mode.as_deref(), &authorities) {
            (None, Some(Authorities::System)) => Mode::VerifyFull,
            (None, _) => Mode::Prefer,
            (Some("disable"), _) => Mode::Disable,
            (Some("prefer"), _) => Mode::Prefer,
            (Some("require"), Some(Authorities::File(_))) => Mode::VerifyCa,
            (Some("require"), _) => Mode::Require,
            (Some("verify-ca"), _) => Mode::VerifyCa,
            (Some("verify-full"), _) => Mode::VerifyFull,
            (Some(other), _) => {
                return Err(format!(
                    "cannot use sslmode={other}: there are disable, prefer, require, verify-ca and verify-full"
                ));
            }
        };
        match (mode, &authorities) {
            (Mode::VerifyCa | Mode::VerifyFull, None) => {
                return Err("sslmode=verify-ca and verify-full want sslrootcert=FILE with the certificates of the \
                            authorities, or, for verify-full, sslrootcert=system for those of this machine"
                    .to_owned());
            }
            (Mode::Disable | Mode::Prefer, Some(_)) => {
                return Err(
                    "sslrootcert tells nothing where the server is not checked: write sslmode=verify-full (or \
                            verify-ca) with it"
                        .to_owned(),
                );
            }
            (Mode::Require | Mode::VerifyCa, Some(Authorities::System)) => {
                return Err("sslrootcert=system knows everybody with a certificate for any name: write \
                            sslmode=verify-full with it"
                    .to_owned());
            }
            _ => {}
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err("sslcert and sslkey come together".to_owned());
        }
        let (certificate, key) = (self.certificate.map(PathBuf::from), self.key.map(PathBuf::from));
        Ok(PostgresTls { mode, authorities, certificate, key })
    }
}

impl PostgresTls {
    /// The TLS configuration of the next connection. `None`: the connection is not encrypted.
    ///
    /// # Errors
    ///
    /// A file cannot be used. The text names it and the reason.
    pub fn config(&self) -> Result<Option<ClientConfig>, String> {
        if self.mode == Mode::Disable {
            return Ok(None);
        }
        let roots = matches!(self.mode, Mode::VerifyCa | Mode::VerifyFull).then(|| self.roots()).transpose()?;
        let shown = self.certificate.as_deref().zip(self.key.as_deref());
        let mut config = tls::client(
            |builder| match roots {
                Some(roots) if self.mode == Mode::VerifyFull => builder.with_root_certificates(roots),
                roots => {
                    let verifier = Verifier { roots, provider: tls::provider() };
                    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
                }
            },
            shown,
        )?;
        // libpq sends this protocol name too. A server with direct TLS (sslnegotiation=direct) requires it.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Some(config))
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        match &self.authorities {
            Some(Authorities::File(path)) => tls::authorities(path),
            Some(Authorities::System) | None => tls::system_authorities("sslrootcert=FILE"),
        }
    }
}

/// Accepts every certificate that one of these authorities issued, for any name. Without authorities it accepts every
/// certificate.
#[derive(Debug)]
struct Verifier {
    roots: Option<RootCertStore>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(options: &[(&str, &str)]) -> Result<PostgresTls, String> {
        let mut given = Given::default();
        for (name, value) in options {
            assert_eq!(Ok(true), given.take(name, value), "{name}");
        }
        given.check()
    }

    #[test]
    fn modes_equal_those_of_libpq() {
        let file = ("sslrootcert", "/ca.pem");
        for (expected, options) in [
            (Mode::Prefer, &[][..]),
            (Mode::Disable, &[("sslmode", "disable")]),
            (Mode::Prefer, &[("sslmode", "prefer")]),
            (Mode::Require, &[("sslmode", "require")]),
            (Mode::VerifyCa, &[("sslmode", "require"), file]),
            (Mode::VerifyCa, &[("sslmode", "verify-ca"), file]),
            (Mode::VerifyFull, &[("sslmode", "verify-full"), file]),
            (Mode::VerifyFull, &[("sslmode", "verify-full"), ("sslrootcert", "system")]),
            (Mode::VerifyFull, &[("sslrootcert", "system")]),
        ] {
            assert_eq!(expected, checked(options).unwrap().mode, "{options:?}");
        }
        assert_eq!(Ok(false), Given::default().take("application_name", "x"));
        assert_eq!(Ok(false), Given::default().take("sslnegotiation", "direct"));
    }

    #[test]
    fn contradicting_options_are_refused_with_a_fix() {
        for (why, options) in [
            ("disable, prefer, require", &[("sslmode", "allow")][..]),
            ("sslrootcert=FILE", &[("sslmode", "verify-full")]),
            ("sslrootcert=FILE", &[("sslmode", "verify-ca")]),
            ("write sslmode=verify-full", &[("sslrootcert", "/ca.pem")]),
            ("write sslmode=verify-full", &[("sslmode", "disable"), ("sslrootcert", "/ca.pem")]),
            ("sslmode=verify-full", &[("sslmode", "verify-ca"), ("sslrootcert", "system")]),
            ("sslmode=verify-full", &[("sslmode", "require"), ("sslrootcert", "system")]),
            ("come together", &[("sslmode", "require"), ("sslcert", "/c.pem")]),
        ] {
            let error = checked(options).unwrap_err();

            assert!(error.contains(why), "{options:?}: {error}");
        }
        let error = Given::default().take("sslcrl", "/x").unwrap_err();
        assert!(error.contains("cannot use sslcrl") && error.contains("sslrootcert"), "{error}");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing").unwrap();
        for (path, why) in
            [("/nowhere/ca.pem", "No such file"), (empty.to_str().unwrap(), "there is no certificate in it")]
        {
            let error = checked(&[("sslmode", "verify-ca"), ("sslrootcert", path)]).unwrap().config().unwrap_err();

            assert!(error.contains(path) && error.contains(why), "{error}");
        }
    }
}
