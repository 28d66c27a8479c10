//! Addresses in the command line and the configuration.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

use crate::connection::protocol::Protocol;
use crate::decoders::levels::{SCALES, Scale};
use crate::decoders::zone::Zone;
use crate::http::protocol::HTTP;
use crate::known_protocols;
use crate::protocols::forward::FORWARD;

/// The address of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// The network address or socket path of the listener.
    pub endpoint: Endpoint,
    /// The only protocol that the listener accepts; `None`: every protocol; the first bytes of a connection or datagram
    /// decide which one.
    pub protocol: Option<&'static Protocol>,
    /// The scale of level numbers in JSON and Forward. `None`: the keys of each record decide.
    pub levels: Option<Scale>,
    /// The zone of times that name none. `None`: UTC, and the zone of the service for syslog.
    pub zone: Option<Zone>,
}

/// A network address or socket path at which the service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Endpoint {
    Tcp(SocketAddr),
    Udp(SocketAddr),
    Tls(SocketAddr),
    Unix(PathBuf),
    UnixDatagram(PathBuf),
}

impl ListenAddress {
    /// Creates the address of a listener that accepts every protocol.
    pub fn any(endpoint: Endpoint) -> Self {
        Self { endpoint, protocol: None, levels: None, zone: None }
    }

    /// Creates the address of a TCP listener that accepts every stream protocol.
    pub fn tcp(address: SocketAddr) -> Self {
        Self::any(Endpoint::Tcp(address))
    }

    /// Creates the address of a UDP listener that accepts every datagram protocol.
    pub fn udp(address: SocketAddr) -> Self {
        Self::any(Endpoint::Udp(address))
    }

    /// True if the listener uses TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.endpoint, Endpoint::Tls(_))
    }

    /// True if only processes of this machine can connect to the listener.
    pub fn is_local(&self) -> bool {
        match &self.endpoint {
            Endpoint::Tcp(address) | Endpoint::Udp(address) | Endpoint::Tls(address) => address.ip().is_loopback(),
            Endpoint::Unix(_) | Endpoint::UnixDatagram(_) => true,
        }
    }

    /// True if the listener accepts only HTTP.
    pub fn is_only_http(&self) -> bool {
        self.protocol == Some(&HTTP)
    }

    /// True if the listener accepts only Forward.
    pub fn is_only_forward(&self) -> bool {
        self.protocol == Some(&FORWARD)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Tcp(address) => write!(to, "tcp://{address}")?,
            Endpoint::Udp(address) => write!(to, "udp://{address}")?,
            Endpoint::Tls(address) => write!(to, "tls://{address}")?,
            Endpoint::Unix(path) | Endpoint::UnixDatagram(path) => write!(to, "unix://{}", path.display())?,
        }
        let kind = matches!(self.endpoint, Endpoint::UnixDatagram(_)).then_some(("kind", "datagram"));
        let zone = self.zone.map(Zone::name);
        let protocol = self.protocol.map(|protocol| ("protocol", protocol.name));
        let levels = self.levels.map(|scale| ("levels", scale.name()));
        let zone = zone.as_deref().map(|name| ("zone", name));
        let mut separator = '?';
        for (name, value) in [kind, protocol, levels, zone].into_iter().flatten() {
            write!(to, "{separator}{name}={value}")?;
            separator = '&';
        }
        Ok(())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (place, query) = text.split_once('?').map_or((text, None), |(place, query)| (place, Some(query)));
        let (scheme, rest) = place.split_once("://").ok_or_else(|| {
            format!(
                "{text:?} is not an address: write tcp://HOST:PORT, udp://HOST:PORT, unix:///PATH or tls://HOST:PORT"
            )
        })?;
        let options = SocketOptions::read(query).map_err(|why| format!("{text:?}: {why}"))?;
        let at = match scheme {
            "tcp" => Endpoint::Tcp(socket(rest)?),
            "udp" => Endpoint::Udp(socket(rest)?),
            "tls" => Endpoint::Tls(socket(rest)?),
            "unix" if rest.starts_with('/') || (!rest.is_empty() && !rest.contains(':')) => match options.kind {
                Some(SocketKind::Datagram) => Endpoint::UnixDatagram(PathBuf::from(rest)),
                Some(SocketKind::Stream) | None => Endpoint::Unix(PathBuf::from(rest)),
            },
            "unix" => return Err(format!("{text:?} has no path: write unix:///PATH")),
            _ => return Err(format!("{text:?}: unknown scheme {scheme:?}: use tcp, udp, unix or tls")),
        };
        if options.kind.is_some() && !matches!(at, Endpoint::Unix(_) | Endpoint::UnixDatagram(_)) {
            return Err(format!("{text:?}: only unix:// has the option ?kind="));
        }
        let SocketOptions { protocol, levels, zone, .. } = options;
        if let (Endpoint::Udp(_) | Endpoint::UnixDatagram(_), Some(Protocol { datagrams: None, .. })) = (&at, protocol)
        {
            return Err(format!("{text:?}: this protocol has no datagrams"));
        }
        Ok(Self { endpoint: at, protocol, levels, zone })
    }
}

/// The kind of a unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketKind {
    Stream,
    Datagram,
}

/// The options after the question mark of an address.
#[derive(Debug, Default)]
struct SocketOptions {
    protocol: Option<&'static Protocol>,
    kind: Option<SocketKind>,
    levels: Option<Scale>,
    zone: Option<Zone>,
}

impl SocketOptions {
    fn read(query: Option<&str>) -> Result<Self, String> {
        let mut options = Self::default();
        for option in query.into_iter().flat_map(|query| query.split('&')) {
            match option.split_once('=') {
                Some(("protocol", name)) => options.protocol = Some(known_protocols::by_name(name)?),
                Some(("levels", name)) => options.levels = Some(scale(name)?),
                Some(("zone", name)) => {
                    let zone = Zone::by_name(name).ok_or_else(|| {
                        format!("unknown zone {name:?}: write a name such as Europe/Berlin, or an offset: +02:00")
                    });
                    options.zone = Some(zone?);
                }
                Some(("kind", "datagram")) => options.kind = Some(SocketKind::Datagram),
                Some(("kind", "stream")) => options.kind = Some(SocketKind::Stream),
                Some(("kind", other)) => return Err(format!("unknown kind {other:?}: use stream or datagram")),
                _ => {
                    return Err(format!(
                        "unknown option {option:?}: only protocol=NAME, levels=NAME, zone=NAME, and kind=datagram of \
                         unix://, are supported"
                    ));
                }
            }
        }
        Ok(options)
    }
}

fn scale(name: &str) -> Result<Scale, String> {
    Scale::by_name(name).ok_or_else(|| {
        let names: Vec<_> = SCALES.iter().map(|row| row.name).collect();
        format!("unknown scale of levels {name:?}: {}", names.join(", "))
    })
}

fn socket(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| format!("{text:?} is not HOST:PORT: {error}"))?;
    prefer_ipv4(found).ok_or_else(|| format!("{text:?} has no address"))
}

/// Prefers the IPv4 address of a name. Clients that connect to `localhost` try all of its addresses. Clients that
/// connect to 127.0.0.1 try only this address.
fn prefer_ipv4(found: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    found.min_by_key(SocketAddr::is_ipv6)
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parsed(from)
    }
}

/// The address of the listener that accepts only HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpAddress {
    /// HTTP is served at this address.
    On(SocketAddr),
    /// No separate listener: HTTP is served only at the listeners that accept every protocol.
    Off,
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::On(address) => write!(to, "http://{address}"),
            Self::Off => to.write_str("off"),
        }
    }
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            _ => socket(text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/')).map(Self::On),
        }
    }
}

impl<'de> Deserialize<'de> for HttpAddress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        parsed(from)
    }
}

fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_preferred_for_a_name_with_two_addresses() {
        let (new, old) = ("[::1]:80".parse().unwrap(), "127.0.0.1:80".parse().unwrap());
        assert_eq!(Some(old), prefer_ipv4([new, old].into_iter()));
        assert_eq!(Some(old), prefer_ipv4([old, new].into_iter()));
        assert_eq!(Some(new), prefer_ipv4([new].into_iter()));
        assert_eq!(None, prefer_ipv4([].into_iter()));
    }

    #[test]
    fn addresses_are_read_and_shown() {
        for text in [
            "tcp://127.0.0.1:9020",
            "udp://[::1]:514",
            "tls://127.0.0.1:1?protocol=http",
            "unix:///run/x.sock",
            "unix:///dev/log?kind=datagram",
            "unix:///x?kind=datagram&protocol=syslog",
            "udp://127.0.0.1:1?levels=syslog",
            "tcp://127.0.0.1:1?protocol=json&levels=pino",
            "udp://127.0.0.1:1?zone=America/New_York",
            "tcp://127.0.0.1:1?levels=pino&zone=+05:30",
        ] {
            assert_eq!(text, text.parse::<ListenAddress>().unwrap().to_string());
        }
        assert_eq!(Ok(HttpAddress::Off), "off".parse());
        assert_eq!(Ok(HttpAddress::On(([127, 0, 0, 1], 80).into())), "http://127.0.0.1:80/".parse());
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_fix() {
        for (text, part) in [
            ("127.0.0.1:9020", "tcp://HOST:PORT"),
            ("http://127.0.0.1:1", "tcp, udp, unix or tls"),
            ("tcp://nonsense", "HOST:PORT"),
            ("unix://", "unix:///PATH"),
            ("tcp://127.0.0.1:1?protocol=smoke", "pickle, json"),
            ("tcp://127.0.0.1:1?x=1", "protocol=NAME"),
            ("tcp://127.0.0.1:1?kind=datagram", "only unix://"),
            ("unix:///x?kind=raw", "stream or datagram"),
            ("unix:///x?kind=datagram&protocol=http", "datagrams"),
            ("tcp://127.0.0.1:1?levels=loud", "python, pino, syslog"),
            ("tcp://127.0.0.1:1?zone=Europe/Bielefeld", "Europe/Berlin"),
            ("udp://127.0.0.1:1?protocol=http", "datagrams"),
        ] {
            let error = text.parse::<ListenAddress>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
