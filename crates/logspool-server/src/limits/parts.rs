//! The smaller sections of the configuration: retention, TLS, access, the shared key.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// How long records are kept. Whole days are removed, oldest first, and never the current day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Days to keep; not set: for ever.
    pub days: Option<u32>,
    /// Bytes on disk, for SQLite; not set: no limit.
    pub bytes: Option<u64>,
}

/// Certificate and key, as PEM files. SIGHUP reads them again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate, and the intermediate certificates up to the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authorities that sign client certificates; not set: clients need no certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Access to the service over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// SHA-256 of each valid token, in hex (`printf %s TOKEN | sha256sum`). Clients send `Authorization: Bearer TOKEN`,
    /// or in the way of their protocol. Not set: clients need no token.
    pub token_sha256: Vec<String>,
    /// Host names that HTTP requests may use for this service, besides `localhost` and IP addresses.
    pub hosts: Vec<String>,
}

/// The shared key of Forward.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedKey {
    /// File with the key; white space around the key is ignored.
    pub key_file: PathBuf,
    /// Name of the service in the handshake. Default: the name of the machine.
    pub hostname: Option<String>,
}
