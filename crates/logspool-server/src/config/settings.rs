//! The top-level keys of the configuration file.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::address::{HttpAddress, ListenAddress};
use crate::limits::Limits;
use crate::limits::parts::{Access, Retention, SharedKey, Tls};
use crate::sender_zones::SenderZone;
use crate::stores::StoreAddress;

/// The configuration of a service. Every key is optional.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Addresses for senders: `tcp://HOST:PORT`, `udp://HOST:PORT`, `unix:///PATH`, `unix:///PATH?kind=datagram`, `tls://HOST:PORT`. A stream
    /// listener accepts every protocol; `?protocol=NAME` restricts it to one (see [Protocols](#protocols)). `?levels=NAME` sets the scale of
    /// level numbers in JSON and Forward (see [Levels](#levels)).
    /// `?zone=Europe/Berlin` or `?zone=+02:00` sets the zone of times that name none; else they are in UTC, and those of
    /// syslog in the zone of the service.
    #[schemars(with = "Vec<String>")]
    pub listen: Vec<ListenAddress>,
    /// Zones of single senders, for times that name none: `"192.0.2.7=Europe/Berlin"`, or `"10.0.0.0/8=+02:00"` for a
    /// network. A sender here is the address from which the service gets the record, also of a relay.
    #[schemars(with = "Vec<String>")]
    pub zones: Vec<SenderZone>,
    /// Address for queries, metrics and HTTP senders: `HOST:PORT`, or `"off"`.
    #[schemars(with = "String")]
    pub http: HttpAddress,
    /// Stores for records: `sqlite:FOLDER`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (with `?sslmode=verify-full`
    /// and `sslrootcert=FILE` for TLS, as in libpq). A record is acknowledged when all stores have committed it.
    #[schemars(with = "Vec<String>")]
    pub store: Vec<StoreAddress>,
    /// A text file that also gets a line for each record. It has no transactions: after a crash its last lines may be
    /// missing or duplicated.
    pub file: Option<PathBuf>,
    /// Name or number of a group whose members may read the folders of SQLite stores and `file`. Folders have mode 2750
    /// then, and files 0640. Not set: folders have mode 0700 and files 0600. At the start the service removes other
    /// access to existing folders and files. The user of the service has to be a member of the group.
    pub store_group: Option<String>,
    /// Queue folders of programs on this machine, `/dev/shm/logspool-UID`. The service delivers the records of killed
    /// programs, which need not be started again. Each folder has mode 0700 and belongs to the user of the service. A
    /// service that runs as root may adopt folders of other users, and keeps all of their records in its own stores.
    #[schemars(with = "Vec<String>")]
    pub adopt: Vec<PathBuf>,
    /// Listen for other machines without TLS and without a token. Anyone who can reach the port may then write records,
    /// and read them over HTTP.
    pub insecure: bool,
    /// Limits for clients.
    pub limits: Limits,
    /// How long records are kept.
    pub retention: Retention,
    /// Certificate and key for `tls://` listeners.
    pub tls: Option<Tls>,
    /// Access over HTTP.
    pub access: Access,
    /// The shared key of Forward, for listeners with `?protocol=forward`.
    pub forward: Option<SharedKey>,
}

/// The default store is in the current folder of the service, so that the service needs no special rights.
const DEFAULT_STORE: &str = "sqlite:logspool-data";

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                ListenAddress::tcp(SocketAddr::from(([127, 0, 0, 1], 9020))),
                ListenAddress::udp(SocketAddr::from(([127, 0, 0, 1], 9021))),
            ],
            zones: Vec::new(),
            http: HttpAddress::On(SocketAddr::from(([127, 0, 0, 1], 9080))),
            store: vec![DEFAULT_STORE.parse().expect("the default is an address")],
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
    /// True if `new` differs in a value that needs a restart. Certificates, tokens and host names can change while the
    /// service runs.
    pub fn needs_restart_for(&self, new: &Self) -> bool {
        let fixed =
            |config: &Self| (Self { access: Access::default(), tls: None, ..config.clone() }, config.tls.is_some());
        fixed(self) != fixed(new)
    }
}
