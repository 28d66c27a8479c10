//! The sender at the other end of a connection.

use std::net::SocketAddr;

use crate::origin::Origin;

/// Who sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A process on some machine.
    Socket(SocketAddr),
    /// A process of this user on this machine.
    Local(u32),
}

impl Peer {
    /// Who shares with other peers.
    pub fn origin(&self) -> Origin {
        match self {
            Self::Socket(address) => address.ip().into(),
            Self::Local(user) => Origin::User(*user),
        }
    }

    /// How messages name it.
    pub fn name(&self) -> String {
        match self {
            Self::Socket(address) => address.to_string(),
            Self::Local(_) => "a local process".to_owned(),
        }
    }

    /// The host of its records, where they do not say.
    pub fn host(&self) -> String {
        match self {
            Self::Socket(address) => address.ip().to_canonical().to_string(),
            Self::Local(_) => "localhost".to_owned(),
        }
    }
}
