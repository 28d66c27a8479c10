//! The sender at the other end of a connection.

use std::net::SocketAddr;

use crate::decoders::levels::Scale;
use crate::decoders::zone::Zone;
use crate::origin::Origin;
use crate::sender_zones::{SenderZone, zone_of};

/// The process at the other end of a connection, and the settings of its listener for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    process: PeerProcess,
    levels: Option<Scale>,
    zone: Option<Zone>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PeerProcess {
    /// A process on any machine.
    Socket(SocketAddr),
    /// A process on this machine that runs as the user with this id.
    Local(u32),
}

impl Peer {
    /// A process on any machine.
    pub fn socket(address: SocketAddr) -> Self {
        Self { process: PeerProcess::Socket(address), levels: None, zone: None }
    }

    /// A process on this machine that runs as the user with this id.
    pub fn local(user: u32) -> Self {
        Self { process: PeerProcess::Local(user), levels: None, zone: None }
    }

    /// The same peer, with the scale of its level numbers.
    pub fn with_levels(self, levels: Option<Scale>) -> Self {
        Self { levels, ..self }
    }

    /// The scale of the peer's level numbers. `None`: the keys of each record decide.
    pub fn levels(&self) -> Option<Scale> {
        self.levels
    }

    /// The same peer, with the zone of its clock.
    pub fn with_zone(self, zone: Option<Zone>) -> Self {
        Self { zone, ..self }
    }

    /// The same peer, with its zone of the table, or with the zone of its listener.
    pub fn with_zones(self, zones: &[SenderZone], listener: Option<Zone>) -> Self {
        let own = match self.process {
            PeerProcess::Socket(address) => zone_of(address.ip(), zones),
            PeerProcess::Local(_) => None,
        };
        self.with_zone(own.or(listener))
    }

    /// The zone of the peer's times that name none. `None`: the protocol decides.
    pub fn zone(&self) -> Option<Zone> {
        self.zone
    }

    /// The origin that the peer belongs to.
    pub fn origin(&self) -> Origin {
        match self.process {
            PeerProcess::Socket(address) => address.ip().into(),
            PeerProcess::Local(user) => Origin::User(user),
        }
    }

    /// The name of the peer in messages.
    pub fn name(&self) -> String {
        match self.process {
            PeerProcess::Socket(address) => address.to_string(),
            PeerProcess::Local(_) => "a local process".to_owned(),
        }
    }

    /// The host of the peer's records that name no host themselves.
    pub fn host(&self) -> String {
        match self.process {
            PeerProcess::Socket(address) => address.ip().to_canonical().to_string(),
            PeerProcess::Local(_) => "localhost".to_owned(),
        }
    }
}
