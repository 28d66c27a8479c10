//! Where a service listens, as users write it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The address of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ServiceAddress {
    /// `tcp://host:port`
    Tcp {
        /// Name or number of the host.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:///path`
    Unix {
        /// Absolute path of the socket.
        path: String,
    },
}

/// Why a text is no address of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    text: String,
    why: &'static str,
}

/// Longest path of a unix socket in bytes; the kernel's field has room for a NUL besides.
const MAX_PATH_BYTES: usize = 107;

impl ServiceAddress {
    /// Whether it leads to this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
            Self::Unix { .. } => true,
        }
    }
}

impl FromStr for ServiceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refuse = |why| AddressError { text: text.to_owned(), why };
        if let Some(path) = text.strip_prefix("unix://") {
            if !path.starts_with('/') || path.len() > MAX_PATH_BYTES || path.contains('\0') {
                return Err(refuse("a socket has an absolute path of at most 107 bytes: unix:///run/logspool.sock"));
            }
            return Ok(Self::Unix { path: path.to_owned() });
        }
        let Some(place) = text.strip_prefix("tcp://") else {
            let why = if text.starts_with("tls://") {
                "tls:// is not supported yet; tcp:// and unix:// work"
            } else {
                "it must begin with tcp:// or unix://"
            };
            return Err(refuse(why));
        };
        const FORM: &str = "it must be tcp://HOST:PORT, the port from 1 to 65535";
        let (host, port) = place.rsplit_once(':').ok_or_else(|| refuse(FORM))?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(|| refuse(FORM))?;
        let number = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match number {
            Some(number) if number.parse::<std::net::Ipv6Addr>().is_ok() => number,
            Some(_) => return Err(refuse("there is no IPv6 address between the brackets")),
            None => host,
        };
        let is_name = |host: &str| !host.is_empty() && !host.contains([':', '/', '@', '?', '#', ' ', '\0']);
        if number.is_none() && !is_name(host) {
            return Err(refuse(FORM));
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(to, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(to, "tcp://{host}:{port}"),
            Self::Unix { path } => write!(to, "unix://{path}"),
        }
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
    fn an_address_comes_back_as_it_was_written() {
        for (text, local) in [
            ("tcp://127.0.0.1:9020", true),
            ("tcp://127.9.9.9:1", true),
            ("tcp://localhost:9020", true),
            ("tcp://[::1]:9020", true),
            ("tcp://[2001:db8::1]:9020", false),
            ("tcp://logs.example.org:65535", false),
            ("tcp://10.0.0.1:9020", false),
            ("unix:///run/logspool.sock", true),
        ] {
            let address: ServiceAddress = text.parse().unwrap();

            assert_eq!(text, address.to_string());
            assert_eq!(local, address.is_local(), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_mend() {
        for (text, why) in [
            ("", "it must begin with tcp:// or unix://"),
            ("localhost:9020", "it must begin with tcp:// or unix://"),
            ("tls://host:9020", "tls:// is not supported yet"),
            ("tcp://host", "tcp://HOST:PORT"),
            ("tcp://host:0", "tcp://HOST:PORT"),
            ("tcp://host:65536", "tcp://HOST:PORT"),
            ("tcp://:9020", "tcp://HOST:PORT"),
            ("tcp://::1:9020", "tcp://HOST:PORT"),
            ("tcp://user@host:9020", "tcp://HOST:PORT"),
            ("tcp://[host]:9020", "no IPv6 address"),
            ("unix://run/x", "absolute path"),
            ("unix://", "absolute path"),
        ] {
            let error = text.parse::<ServiceAddress>().unwrap_err().to_string();

            assert!(error.contains(why), "{error}");
        }
        assert!(format!("unix:///{}", "x".repeat(107)).parse::<ServiceAddress>().is_err());
    }
}
