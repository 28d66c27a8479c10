//! The keys at the top of the file.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::limits::Limits;
use super::parts::{Access, Retention, SharedKey, Tls};
use crate::address::{HttpAddress, Listen, StoreAddress};

/// The set-up of a service. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where senders connect: `tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, `tls://HOST:PORT`. A stream listener
    /// takes every protocol; `?protocol=NAME` fixes one (pickle, json, syslog, syslog-octets, forward, http).
    #[schemars(with = "Vec<String>")]
    pub listen: Vec<Listen>,
    /// Where queries, metrics and HTTP senders connect: `HOST:PORT`; `"off"` for none.
    #[schemars(with = "String")]
    pub http: HttpAddress,
    /// Where records are kept: `sqlite:FOLDER`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (with `?sslmode=verify-full`
    /// and `sslrootcert=FILE` for TLS, as in libpq). A record is acknowledged when all of them have committed it.
    #[schemars(with = "Vec<String>")]
    pub store: Vec<StoreAddress>,
    /// A text file that gets a line for each record as well. It has no transactions: after a crash its last lines may be
    /// missing or doubled.
    pub file: Option<PathBuf>,
    /// A group whose members may read the folders of SQLite stores and `file`, by name or number: folders have mode 2750
    /// then, and files 0640. Default: none; folders have mode 0700 and files 0600. Rights that others have on what is
    /// there are taken away at the start. The user of the service has to be a member of the group.
    pub store_group: Option<String>,
    /// Queue folders of programs on this machine, `/dev/shm/logspool-UID`: what killed programs left there is delivered
    /// without another start of theirs. Each has mode 0700 and belongs to the user of the service; a service that runs as
    /// root may adopt those of others, and keeps everything of theirs in its own stores.
    #[schemars(with = "Vec<String>")]
    pub adopt: Vec<PathBuf>,
    /// Listen beyond this machine without TLS and without a token. Whoever reaches the port may then write records, and
    /// read them over HTTP.
    pub insecure: bool,
    /// Bounds on what senders may ask for.
    pub limits: Limits,
    /// How long records are kept.
    pub retention: Retention,
    /// Certificate and key for `tls://` listeners.
    pub tls: Option<Tls>,
    /// Who may read and write over HTTP.
    pub access: Access,
    /// The shared key of Forward, for listeners with `?protocol=forward`.
    pub forward: Option<SharedKey>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                Listen::tcp(SocketAddr::from(([127, 0, 0, 1], 9020))),
                Listen::udp(SocketAddr::from(([127, 0, 0, 1], 9021))),
            ],
            http: HttpAddress::On(SocketAddr::from(([127, 0, 0, 1], 9080))),
            store: vec![StoreAddress::Sqlite(PathBuf::from("logspool-data"))],
            file: None,
            store_group: None,
            adopt: Vec::new(),
            insecure: false,
            limits: Limits::default(),
            retention: Retention::default(),
            tls: None,
            access: Access::default(),
            forward: None,
        }
    }
}

impl Config {
    /// Whether something differs that a running service cannot change. It changes certificates, tokens and names.
    pub fn needs_restart_for(&self, new: &Self) -> bool {
        let fixed =
            |config: &Self| (Self { access: Access::default(), tls: None, ..config.clone() }, config.tls.is_some());
        fixed(self) != fixed(new)
    }
}
