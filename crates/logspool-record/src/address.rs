//! The address of a service, in the form that users write: one host and port, or a list of them.
//!
//! A list is a set. It is kept in one order and without repetitions, so two lists of the same hosts are equal and have
//! the same text.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::uri::{push_escaped, unescaped};

/// Where a service listens, or several services of which each stores the records.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServiceAddress {
    /// `tcp://host:port`, or `tcp://host:port,host:port` and so on.
    Tcp {
        /// At least one.
        hosts: Vec<HostPort>,
    },
    /// `tls://host:port`, or `tls://host:port,host:port` and so on.
    Tls {
        /// At least one.
        hosts: Vec<HostPort>,
        /// The certificates of each connection: trusted authorities, and the client's own certificate.
        identity: Box<TlsIdentity>,
    },
    /// `unix:///path`
    Unix {
        /// Absolute path of the socket.
        path: String,
    },
}

/// A port of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Host name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The certificates of a TLS client: which authorities it trusts, and which certificate it presents. The files hold
/// PEM; they are read for each connection.
///
/// In an address they follow the port, as `?authorities=/etc/ca.pem&server_name=logs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsIdentity {
    /// Absolute path of the certificates of the trusted authorities; `None`: the authorities of the system.
    pub authorities: Option<String>,
    /// Absolute path of the certificate that the client presents, with the intermediate certificates up to the root.
    pub certificate: Option<String>,
    /// Absolute path of the private key of that certificate.
    pub key: Option<String>,
    /// The name that the service's certificate must contain; `None`: the host of the address.
    pub server_name: Option<String>,
}

/// Reason why a text is not a valid service address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    text: String,
    why: Cow<'static, str>,
}

/// Maximum length of a unix socket's path in bytes. The kernel's field has one more byte, for the NUL.
const MAX_PATH_BYTES: usize = 107;

impl ServiceAddress {
    /// The ports of the list. A unix socket has no port.
    pub fn hosts(&self) -> &[HostPort] {
        match self {
            Self::Tcp { hosts } | Self::Tls { hosts, .. } => hosts,
            Self::Unix { .. } => &[],
        }
    }

    /// Whether the service, or each service of the list, is on this machine.
    pub fn is_local(&self) -> bool {
        self.hosts().iter().all(HostPort::is_local)
    }

    /// Returns this address with a TLS identity that was given separately from the address.
    ///
    /// # Errors
    ///
    /// The address already has an identity, or is not a TLS address, or a part of the identity is invalid.
    pub fn with_identity(self, given: TlsIdentity) -> Result<Self, AddressError> {
        let text = self.to_string();
        let refuse = |why: &'static str| AddressError { text: text.clone(), why: why.into() };
        if given == TlsIdentity::default() {
            return Ok(self);
        }
        match self {
            Self::Tls { hosts, identity } if *identity == TlsIdentity::default() => {
                let address = Self::Tls { hosts, identity: Box::new(given) };
                address.check_identity().map_err(refuse)?;
                Ok(address)
            }
            Self::Tls { .. } => {
                Err(refuse("certificates and names stand in the address already: give them in one place"))
            }
            Self::Tcp { .. } | Self::Unix { .. } => {
                Err(refuse("authorities, certificate, key and server_name are for tls://HOST:PORT"))
            }
        }
    }

    /// The whole address as text that can be parsed again. `Display` omits the TLS identity.
    pub fn to_text(&self) -> String {
        let mut text = self.to_string();
        let Self::Tls { identity, .. } = self else { return text };
        let mut separator = '?';
        for (name, value) in identity.parts() {
            let Some(value) = value else { continue };
            text.push(separator);
            text.push_str(name);
            text.push('=');
            push_escaped(&mut text, value);
            separator = '&';
        }
        text
    }

    fn check_identity(&self) -> Result<(), &'static str> {
        let Self::Tls { identity, .. } = self else { return Ok(()) };
        if identity.certificate.is_some() != identity.key.is_some() {
            return Err("a certificate and its key come together");
        }
        let files = [&identity.authorities, &identity.certificate, &identity.key];
        if files.into_iter().flatten().any(|path| !path.starts_with('/') || path.contains('\0')) {
            return Err("authorities, certificate and key are files with an absolute path");
        }
        let is_host = |name: &String| is_name(name) || name.parse::<IpAddr>().is_ok();
        if !identity.server_name.iter().all(is_host) {
            return Err("server_name is the name of a host, or its number");
        }
        Ok(())
    }
}

impl TlsIdentity {
    fn parts(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("authorities", &self.authorities),
            ("certificate", &self.certificate),
            ("key", &self.key),
            ("server_name", &self.server_name),
        ]
    }

    /// Parses the part of an address after the `?`.
    fn parse(text: &str) -> Option<Self> {
        let mut identity = Self::default();
        for part in text.split('&') {
            let (name, value) = part.split_once('=')?;
            let place = match name {
                "authorities" => &mut identity.authorities,
                "certificate" => &mut identity.certificate,
                "key" => &mut identity.key,
                "server_name" => &mut identity.server_name,
                _ => return None,
            };
            if place.replace(unescaped(value)?).is_some() {
                return None;
            }
        }
        Some(identity)
    }
}

/// Whether the text can be a host name.
fn is_name(host: &str) -> bool {
    !host.is_empty() && !host.contains([':', '/', '@', '?', '#', ' ', '\0'])
}

const FORM: &str = "it must be tcp://HOST:PORT or tls://HOST:PORT, the port from 1 to 65535";

impl FromStr for ServiceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refuse = |why: Cow<'static, str>| AddressError { text: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix://") {
            if !path.starts_with('/') || path.len() > MAX_PATH_BYTES || path.contains('\0') {
                let form = "a socket has an absolute path of at most 107 bytes: unix:///run/logspool.sock";
                return Err(refuse(form.into()));
            }
            return Ok(Self::Unix { path: path.to_owned() });
        }
        let (places, identity) = match (text.strip_prefix("tcp://"), text.strip_prefix("tls://")) {
            (Some(places), _) => (places, None),
            (None, Some(_)) if !cfg!(feature = "tls") => {
                return Err(refuse("this build of logspool has no TLS; tcp:// and unix:// work".into()));
            }
            (None, Some(rest)) => {
                let (places, identity) =
                    rest.split_once('?').map_or((rest, None), |(places, rest)| (places, Some(rest)));
                let identity = identity.map_or(Some(TlsIdentity::default()), TlsIdentity::parse);
                let known = "after the ? come authorities, certificate, key or server_name, each once: \
                             ?authorities=/etc/ca.pem&server_name=logs";
                (places, Some(identity.ok_or_else(|| refuse(known.into()))?))
            }
            (None, None) => return Err(refuse("it must begin with tcp://, tls:// or unix://".into())),
        };
        if places.contains(',') && places.split(',').any(str::is_empty) {
            let why = "an item of the list is empty (fix: HOST:PORT on both sides of each comma, none at the end)";
            return Err(refuse(why.into()));
        }
        let mut hosts = places.split(',').map(str::parse).collect::<Result<Vec<HostPort>, _>>().map_err(refuse)?;
        hosts.sort();
        hosts.dedup();
        let Some(identity) = identity else { return Ok(Self::Tcp { hosts }) };
        let address = Self::Tls { hosts, identity: Box::new(identity) };
        address.check_identity().map_err(|why| refuse(why.into()))?;
        Ok(address)
    }
}

impl HostPort {
    fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

impl FromStr for HostPort {
    type Err = Cow<'static, str>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains("://") {
            return Err("a list has one scheme, at its beginning: tcp://a:9020,b:9020".into());
        }
        let refuse = || Cow::from(format!("{FORM}; {text:?} is not"));
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(refuse)?;
        let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match number {
            Some(number) if number.parse::<Ipv6Addr>().is_ok() => number,
            Some(_) => return Err("there is no IPv6 address between the brackets".into()),
            None if is_name(host) => host,
            None => return Err(refuse()),
        };
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(to, "[{host}]:{port}") } else { write!(to, "{host}:{port}") }
    }
}

/// Writes the address without its TLS identity.
impl fmt::Display for ServiceAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self {
            Self::Tcp { .. } => "tcp",
            Self::Tls { .. } => "tls",
            Self::Unix { path } => return write!(to, "unix://{path}"),
        };
        let mut separator = "://";
        to.write_str(scheme)?;
        for host in self.hosts() {
            write!(to, "{separator}{host}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:?} is no address of a service: {}", self.text, self.why)
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_back_unchanged() {
        for (text, local) in [
            ("tcp://127.0.0.1:9020", true),
            ("tcp://127.9.9.9:1", true),
            ("tcp://localhost:9020", true),
            ("tcp://[::1]:9020", true),
            ("tcp://[2001:db8::1]:9020", false),
            ("tcp://logs.example.org:65535", false),
            ("tcp://10.0.0.1:9020", false),
            ("unix:///run/logspool.sock", true),
            ("unix:///run/a,b", true),
            ("tcp://127.0.0.1:9020,localhost:9020", true),
            ("tcp://127.0.0.1:9020,b:9020", false),
            ("tcp://[::1]:9020,a:1,a:9020,b:9020", false),
            #[cfg(feature = "tls")]
            ("tls://a:9443,b:9443", false),
            #[cfg(feature = "tls")]
            ("tls://logs.example.org:9443", false),
            #[cfg(feature = "tls")]
            ("tls://[::1]:9443", true),
        ] {
            let address: ServiceAddress = text.parse().unwrap();

            assert_eq!((text, text), (&*address.to_string(), &*address.to_text()));
            assert_eq!(local, address.is_local(), "{text}");
        }
    }

    #[test]
    fn the_order_of_a_list_makes_no_other_address() {
        let address: ServiceAddress = "tcp://b:9020,a:9021,a:9020,b:9020".parse().unwrap();

        assert_eq!(Ok(address.clone()), "tcp://a:9020,b:9020,a:9021".parse());
        assert_eq!("tcp://a:9020,a:9021,b:9020", address.to_text());
        assert_ne!(Ok(address), "tcp://a:9020,b:9020".parse());
    }

    #[test]
    fn an_invalid_address_is_refused_with_a_fix() {
        for (text, why) in [
            ("", "it must begin with tcp://, tls:// or unix://"),
            ("localhost:9020", "it must begin with tcp://, tls:// or unix://"),
            #[cfg(not(feature = "tls"))]
            ("tls://host:9020", "this build of logspool has no TLS"),
            ("tcp://host", "tcp://HOST:PORT"),
            ("tcp://host:0", "tcp://HOST:PORT"),
            ("tcp://host:65536", "tcp://HOST:PORT"),
            ("tcp://:9020", "tcp://HOST:PORT"),
            ("tcp://::1:9020", "tcp://HOST:PORT"),
            ("tcp://user@host:9020", "tcp://HOST:PORT"),
            ("tcp://[host]:9020", "no IPv6 address"),
            ("unix://run/x", "absolute path"),
            ("unix://", "absolute path"),
            ("tcp://a:9020,", "an item of the list is empty (fix:"),
            ("tcp://,a:9020", "an item of the list is empty (fix:"),
            ("tcp://a:9020,,b:9020", "an item of the list is empty (fix:"),
            ("tcp://a:9020,tls://b:9443", "a list has one scheme, at its beginning: tcp://a:9020,b:9020"),
            ("tcp://a:9020,tcp://b:9020", "a list has one scheme"),
            ("tcp://a:9020,b:99999", "the port from 1 to 65535; \"b:99999\" is not"),
            ("tcp://a,b:9020", "the port from 1 to 65535; \"a\" is not"),
            ("tcp://a:9020, b:9020", "\" b:9020\" is not"),
        ] {
            let error = text.parse::<ServiceAddress>().unwrap_err().to_string();

            assert!(error.contains(why), "{error}");
        }
        assert!(format!("unix:///{}", "x".repeat(107)).parse::<ServiceAddress>().is_err());
    }
    #[cfg(feature = "tls")]
    #[test]
    fn the_full_address_has_the_tls_identity_and_the_shown_one_has_not() {
        let identity = TlsIdentity {
            authorities: Some("/etc/our ca/ü&=?%.pem".to_owned()),
            certificate: Some("/c.pem".to_owned()),
            key: Some("/k.pem".to_owned()),
            server_name: Some("::1".to_owned()),
        };
        let plain: ServiceAddress = "tls://logs:9443".parse().unwrap();
        let address = plain.clone().with_identity(identity.clone()).unwrap();
        let text = "tls://logs:9443?authorities=/etc/our%20ca/%C3%BC%26%3D%3F%25.pem&certificate=/c.pem&key=/k.pem\
                    &server_name=::1";

        assert_eq!("tls://logs:9443", address.to_string());
        assert_eq!(text, address.to_text());
        assert_eq!(Ok(address.clone()), text.parse());
        assert_eq!(Ok(plain.clone()), plain.clone().with_identity(TlsIdentity::default()));
        let refused = |address: ServiceAddress| address.with_identity(identity.clone()).unwrap_err().to_string();
        assert!(refused(address).contains("give them in one place"));
        assert!(refused("tcp://logs:9443".parse().unwrap()).contains("are for tls://"));
        for (behind, why) in [
            ("", "after the ? come"),
            ("authorities", "after the ? come"),
            ("ca=/x", "after the ? come"),
            ("key=/x&key=/y", "after the ? come"),
            ("authorities=%", "after the ? come"),
            ("authorities=%ff", "after the ? come"),
            ("authorities=ca.pem", "an absolute path"),
            ("certificate=/c.pem", "come together"),
            ("server_name=", "server_name is the name"),
            ("server_name=a%20b", "server_name is the name"),
        ] {
            let error = format!("tls://logs:9443?{behind}").parse::<ServiceAddress>().unwrap_err().to_string();

            assert!(error.contains(why), "{error}");
        }
    }
}
