//! The sender at the other end of a connection.

use std::net::SocketAddr;

use crate::origin::Origin;

/// The process at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A process on any machine.
    Socket(SocketAddr),
    /// A process on this machine that runs as the user with this id.
    Local(u32),
}

impl Peer {
    /// The origin that the peer belongs to.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Socket(address) => address.ip().into(),
            Self::Local(user) => Origin::User(*user),
        }
    }

    /// The name of the peer in messages.
    pub fn name(&self) -> String {
        match self {
            Self::Socket(address) => address.to_string(),
            Self::Local(_) => "a local process".to_owned(),
        }
    }

    /// The host of the peer's records that name no host themselves.
    pub fn host(&self) -> String {
        match self {
            Self::Socket(address) => address.ip().to_canonical().to_string(),
            Self::Local(_) => "localhost".to_owned(),
        }
    }
}
