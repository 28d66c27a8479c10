//! Sockets that the service manager has opened for the service (socket activation of systemd).
//!
//! Such a socket takes the place of the one that the service would open at the same address. It stays open in the
//! service manager, so senders that connect while the service restarts wait and are not refused.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};

use listenfd::ListenFd;
use socket2::SockRef;

use crate::address::{Endpoint, ListenAddress};

/// Maximum number of sockets that are accepted. Chosen: far above the number of listeners of any configuration.
const MAX_SOCKETS: usize = 1024;

/// The sockets of the service manager that no listener has taken yet, each with its address.
#[derive(Debug, Default)]
pub struct InheritedSockets(Vec<(Endpoint, InheritedSocket)>);

/// A socket of the service manager. It does not block.
#[derive(Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum InheritedSocket {
    Tcp(TcpListener),
    Udp(UdpSocket),
    Unix(UnixListener),
    UnixDatagram(UnixDatagram),
}

impl InheritedSockets {
    /// Takes over the sockets that the environment names, and removes its variables (LISTEN_FDS, LISTEN_PID). Call this
    /// before the process has a second thread.
    ///
    /// # Errors
    ///
    /// A descriptor is no socket that the service can use. The text says how to fix it.
    pub fn from_environment() -> Result<Self, String> {
        let count = std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse::<usize>().ok());
        if count.is_some_and(|count| count > MAX_SOCKETS) {
            return Err(format!("LISTEN_FDS names more than {MAX_SOCKETS} sockets"));
        }
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            sockets.push(InheritedSocket::take(&mut passed, index).map_err(|why| {
                format!(
                    "socket {index} of the service manager (LISTEN_FDS) cannot be used: {why} (fix: the .socket unit)"
                )
            })?);
        }
        Ok(Self(sockets))
    }

    /// The socket with this address, if there is one. A TLS listener takes a TCP socket.
    pub fn take(&mut self, endpoint: &Endpoint) -> Option<InheritedSocket> {
        let wanted = match endpoint {
            Endpoint::Tls(at) => &Endpoint::Tcp(*at),
            other => other,
        };
        let place = self.0.iter().position(|(at, _)| at == wanted)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Checks that every socket has its listener: records that arrive at another one would stay in the kernel.
    ///
    /// # Errors
    ///
    /// The addresses that are left, and how to fix it.
    pub fn expect_none_left(&self) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        let addresses: Vec<_> = self.0.iter().map(|(at, _)| ListenAddress::any(at.clone()).to_string()).collect();
        Err(format!(
            "no listener of the configuration has the address of {}, which the service manager has opened (fix: add it \
             to `listen`, written as here, or remove it from the .socket unit)",
            addresses.join(", ")
        ))
    }
}

impl InheritedSocket {
    fn take(passed: &mut ListenFd, index: usize) -> io::Result<(Endpoint, Self)> {
        let none = || io::Error::other("it is no socket for TCP, UDP or unix addresses");
        if let Ok(Some(socket)) = passed.take_tcp_listener(index) {
            let is_listening = SockRef::from(&socket).is_listener()?;
            socket.set_nonblocking(true)?;
            let at = Endpoint::Tcp(socket.local_addr()?);
            return if is_listening { Ok((at, Self::Tcp(socket))) } else { Err(connection()) };
        }
        if let Ok(Some(socket)) = passed.take_udp_socket(index) {
            socket.set_nonblocking(true)?;
            return Ok((Endpoint::Udp(socket.local_addr()?), Self::Udp(socket)));
        }
        if let Ok(Some(socket)) = passed.take_unix_listener(index) {
            let is_listening = SockRef::from(&socket).is_listener()?;
            socket.set_nonblocking(true)?;
            let at = Endpoint::Unix(socket.local_addr()?.as_pathname().ok_or_else(none)?.to_owned());
            return if is_listening { Ok((at, Self::Unix(socket))) } else { Err(connection()) };
        }
        if let Ok(Some(socket)) = passed.take_unix_datagram(index) {
            socket.set_nonblocking(true)?;
            let at = Endpoint::UnixDatagram(socket.local_addr()?.as_pathname().ok_or_else(none)?.to_owned());
            return Ok((at, Self::UnixDatagram(socket)));
        }
        Err(none())
    }
}

fn connection() -> io::Error {
    io::Error::other("it does not listen (Accept=yes passes connections; the service needs Accept=no)")
}
