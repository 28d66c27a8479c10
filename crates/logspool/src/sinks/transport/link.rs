//! One open socket to a receiver: datagrams or a stream, with TLS or without. After it is open, no call waits except
//! [`Link::wait`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::address::PeerAddress;
use super::opened;
use super::stream::{self, Socket};
use super::tls::Session;
use logspool_record::address::{HostPort, ServiceAddress};
use logspool_sys::kept::KeptDescriptor;

/// How long one write waits for room. Then the writer checks whether it has a new order.
const POLL_MS: i32 = 50;

/// Maximum bytes of a datagram, as UDP over IPv4 specifies.
const MAX_UDP_BYTES: usize = 65_507;

/// Maximum time for the last bytes of a TLS session.
const FINISH_LIMIT: Duration = Duration::from_millis(100);

/// Maximum bytes that are encrypted before they are sent. A TLS record has at most this length.
const TLS_PIECE_BYTES: usize = 16 * 1024;

/// An open socket.
#[derive(Debug)]
pub enum Link {
    Udp(KeptDescriptor<UdpSocket>),
    Datagram(KeptDescriptor<UnixDatagram>),
    Stream(Socket),
    Tls(TlsLink),
}

/// A stream with TLS.
#[derive(Debug)]
pub struct TlsLink {
    socket: Socket,
    /// `None` only while the link is dropped.
    session: Option<Session>,
    /// Bytes that the session has accepted and the system has not.
    unsent: usize,
}

impl Link {
    /// Opens a socket. Of the addresses of a host, UDP uses number `turn`, or the next one that can be used. TCP tries
    /// the addresses of a host in turn, and uses number `turn` of several hosts.
    ///
    /// # Errors
    ///
    /// The system's error, or a file of the TLS identity that cannot be used.
    pub fn open(address: &PeerAddress, turn: usize) -> io::Result<Self> {
        match address {
            PeerAddress::Udp(HostPort { host, port }) => {
                let places = stream::resolve(host, *port)?;
                Ok(Self::Udp(open_udp(&places.collect::<Vec<_>>(), turn)?))
            }
            PeerAddress::Service(ServiceAddress::Tcp { hosts }) => {
                let HostPort { host, port } = &hosts[turn % hosts.len()];
                Ok(Self::Stream(Socket::tcp(host, *port)?))
            }
            PeerAddress::Service(ServiceAddress::Tls { hosts, identity }) => {
                let HostPort { host, port } = &hosts[turn % hosts.len()];
                let socket = Socket::tcp(host, *port)?;
                Ok(Self::Tls(TlsLink { socket, session: Some(Session::begin(host, identity)?), unsent: 0 }))
            }
            PeerAddress::Service(ServiceAddress::Unix { path }) => match opened::unix_datagram(path) {
                Ok(kept) => Ok(Self::Datagram(kept)),
                Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => Ok(Self::Stream(Socket::unix(path)?)),
                Err(error) => Err(error),
            },
        }
    }

    /// Whether bytes are sent as a stream, and not as datagrams.
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Tls(_))
    }

    /// Maximum bytes of a datagram.
    pub fn most(&self) -> usize {
        if matches!(self, Self::Udp(_)) { MAX_UDP_BYTES } else { usize::MAX }
    }

    /// Checks that the receiver has not closed the connection, and continues a TLS handshake. Returns whether records
    /// can be sent. Bytes that the receiver sends are ignored.
    ///
    /// # Errors
    ///
    /// The connection is closed, lost or was refused.
    pub fn check(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 256];
        let read = match self {
            Self::Udp(_) | Self::Datagram(_) => return Ok(true),
            Self::Stream(socket) => socket.read(&mut bytes),
            Self::Tls(TlsLink { socket, session: Some(session), .. }) => session.receive(socket, &mut bytes),
            Self::Tls(TlsLink { session: None, .. }) => Ok(0),
        };
        match read {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) if matches!(self, Self::Stream(_)) => {
                stream::wanted_tls(&bytes[..count]).map_or(Ok(()), Err)?;
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(match self {
            Self::Tls(TlsLink { session: Some(session), .. }) => session.is_accepted(),
            _ => true,
        })
    }

    /// Sends a datagram, or the first bytes of a stream. Returns how many bytes the system has accepted. After
    /// `WouldBlock`, the next call must have the same bytes, or more after them.
    ///
    /// # Errors
    ///
    /// The system's error; `WouldBlock` if there is no room now.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.get()?.send(bytes),
            Self::Datagram(socket) => socket.get()?.send(bytes),
            Self::Stream(socket) => socket.write(bytes),
            Self::Tls(link) => link.send(bytes),
        }
    }

    /// Waits for room, or for an answer of a TLS handshake, at most [`POLL_MS`].
    pub fn wait(&self) {
        let events = match self {
            Self::Tls(TlsLink { session: Some(session), .. }) if session.has_to_send() => libc::POLLIN | libc::POLLOUT,
            Self::Tls(_) => libc::POLLIN,
            _ => libc::POLLOUT,
        };
        let mut poll = libc::pollfd { fd: self.descriptor(), events, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, POLL_MS) };
    }

    /// The file descriptor; −1 if the program has closed it.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::Udp(socket) => socket.get().map_or(-1, AsRawFd::as_raw_fd),
            Self::Datagram(socket) => socket.get().map_or(-1, AsRawFd::as_raw_fd),
            Self::Stream(socket) => socket.descriptor(),
            Self::Tls(link) => link.socket.descriptor(),
        }
    }
}

impl TlsLink {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let session = self.session.as_mut().ok_or(ErrorKind::NotConnected)?;
        // A session accepts more bytes than the system has room for. Only the system's room counts.
        let given = if self.unsent > 0 { &[][..] } else { &bytes[..bytes.len().min(TLS_PIECE_BYTES)] };
        self.unsent += session.send(&mut self.socket, given)?;
        if self.unsent == 0 || session.has_to_send() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(std::mem::take(&mut self.unsent))
    }
}

impl Drop for Link {
    /// Reads what the receiver has sent: closing a socket with unread bytes would discard the last sent bytes. Then
    /// ends the TLS session.
    fn drop(&mut self) {
        let mut bytes = [0; 4096];
        match self {
            Self::Udp(_) | Self::Datagram(_) => {}
            Self::Stream(socket) => while matches!(socket.read(&mut bytes), Ok(1..)) {},
            Self::Tls(TlsLink { socket, session, .. }) => {
                let Some(mut session) = session.take() else { return };
                while matches!(session.receive(socket, &mut bytes), Ok(1..)) {}
                // Errors are ignored: the receiver also notices the end of the connection without this message.
                let _ = socket.block_for(FINISH_LIMIT).and_then(|()| session.finish(socket, &[]));
            }
        }
    }
}

fn open_udp(places: &[SocketAddr], turn: usize) -> io::Result<KeptDescriptor<UdpSocket>> {
    opened::udp((0..places.len()).map(|index| places[(turn + index) % places.len()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_uses_the_addresses_of_a_host_in_turn() {
        let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let places = [first.local_addr().unwrap(), second.local_addr().unwrap()];

        let used = |turn| open_udp(&places, turn).unwrap().get().unwrap().peer_addr().unwrap();
        assert_eq!([places[0], places[1], places[0]], [0, 1, 2].map(used));
        // A datagram socket cannot be connected to port 0 of the broadcast address, so the next address is used.
        let unusable = "255.255.255.255:9".parse().unwrap();
        assert_eq!(places[0], open_udp(&[unusable, places[0]], 0).unwrap().get().unwrap().peer_addr().unwrap());
        assert_eq!(ErrorKind::NotFound, open_udp(&[], 0).unwrap_err().kind());
    }
}
