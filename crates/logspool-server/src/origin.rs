//! Origins of connections. Connections, memory and turns of the writers are shared out per origin, not per connection.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A sender, or several senders that count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An IPv4 address. Each loopback address is an origin of its own.
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address, because a single machine can use any address of such a network.
    V6(u64),
    /// A user of this machine, connected to a unix socket.
    User(u32),
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(to),
            Self::V6(network) => write!(to, "{}/64", Ipv6Addr::from_bits(u128::from(*network) << 64)),
            Self::User(id) => write!(to, "user {id} of this machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_distinguished_by_address_network_and_user() {
        let of = |address: &str| Origin::from(address.parse::<IpAddr>().unwrap());

        assert_eq!(of("192.0.2.7"), of("::ffff:192.0.2.7"));
        assert_ne!(of("127.0.0.1"), of("127.0.0.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!("2001:db8:0:1::/64", of("2001:db8:0:1::1").to_string());
        assert_eq!("user 1000 of this machine", Origin::User(1000).to_string());
    }
}
