//! The smaller sections: retention, TLS, access, the shared key.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

/// How long records are kept. Whole days are removed, the oldest first; today is never.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Days; none: for ever.
    pub days: Option<u32>,
    /// Bytes on disk, for SQLite; none: as much as there is.
    pub bytes: Option<u64>,
}

/// Certificate and key, as PEM files. They are read again on SIGHUP.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The certificate and those between it and the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authorities whose clients may connect; none: every client may.
    pub client_authorities: Option<PathBuf>,
}

/// Who may read and write over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// SHA-256 of each token that may be sent as `Authorization: Bearer TOKEN`, in hex (`printf %s TOKEN | sha256sum`).
    /// None: no token is asked for.
    pub token_sha256: Vec<String>,
    /// Names that HTTP requests may call this service by, beside `localhost` and IP addresses.
    pub hosts: Vec<String>,
}

/// The shared key of Forward.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedKey {
    /// A file that holds the key; white space around it does not count.
    pub key_file: PathBuf,
    /// How the service calls itself to clients. Default: the name of the machine.
    pub hostname: Option<String>,
}
