//! The address of a receiver, as users write it.

use crate::option::{OptionField, OptionShape};
use crate::sinks::Place;
use logspool_record::address::{HostPort, ServiceAddress};
use logspool_record::definition::OptionValue;

/// The address of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerAddress {
    /// `udp://host:port`
    Udp(HostPort),
    /// `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram socket is tried first, then a
    /// stream socket. Of several hosts the next one is used after an error.
    Service(ServiceAddress),
}

impl PeerAddress {
    /// The socket at a path, for samples.
    pub fn unix(path: String) -> Self {
        Self::Service(ServiceAddress::Unix { path })
    }

    /// The destination of a sink with this address. It does not show the TLS identity.
    pub fn place(&self) -> Place {
        Place::Address(match self {
            Self::Udp(host) => format!("udp://{host}"),
            Self::Service(address) => address.to_string(),
        })
    }
}

impl OptionField for PeerAddress {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        let known = ["udp://", "tcp://", "tls://", "unix://"];
        if !known.iter().any(|scheme| text.starts_with(scheme)) {
            return Err(format!(
                "{text:?} is none: it must be udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or unix:///PATH"
            ));
        }
        // Hosts and ports of UDP are written as those of TCP.
        let Some(place) = text.strip_prefix("udp://") else {
            return ServiceAddress::from_value(value).map(Self::Service);
        };
        let why = |_| format!("{text:?} is none: it must be udp://HOST:PORT, the port from 1 to 65535");
        place.parse().map(Self::Udp).map_err(why)
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(match (self, self.place()) {
            (Self::Service(address), _) => address.to_text(),
            (_, Place::Address(text)) => text,
            _ => unreachable!("its place is an address"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_addresses_are_read_and_others_refused_with_a_fix() {
        let texts = ["udp://127.0.0.1:514", "udp://[::1]:514", "tcp://logs:601", "tcp://[::1]:1", "unix:///dev/log"];
        #[cfg(feature = "tls")]
        let texts = [&texts[..], &["tls://logs:6514?authorities=/etc/ca.pem&server_name=syslog"]].concat();
        for text in texts {
            let value = OptionValue::Text(text.to_owned());
            assert_eq!(Ok(value.clone()), PeerAddress::from_value(&value).map(|address| address.to_value()));
        }
        for text in [
            "",
            "udp://",
            "udp://host",
            "udp://host:1?authorities=/x",
            "udp://a:1,b:1",
            "tcp://host",
            "unix://x",
            "/dev/log",
        ] {
            let error = PeerAddress::from_value(&OptionValue::Text(text.to_owned())).unwrap_err();
            assert!(error.contains("://HOST:PORT") || error.contains("absolute path"), "{error}");
        }
    }
}
