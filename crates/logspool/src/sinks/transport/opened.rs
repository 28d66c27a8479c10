//! New sockets. Each has a high number before it connects, since connecting can take seconds. In that time the program
//! may close and reuse a low number.
//!
//! Only [`tcp`] waits.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use logspool_sys::descriptor::open_high;
use logspool_sys::kept::KeptDescriptor;
use socket2::{Domain, SockAddr, Socket, Type};

fn socket(domain: Domain, kind: Type) -> io::Result<Socket> {
    let is_socket = |status: &libc::stat| status.st_mode & libc::S_IFMT == libc::S_IFSOCK;
    open_high(|| Socket::new(domain, kind, None).map(OwnedFd::from), is_socket).map(Socket::from)
}

/// Connects to the first of the addresses that answers, each within `limit`.
///
/// # Errors
///
/// The system's error for the last address.
pub fn tcp(places: impl IntoIterator<Item = SocketAddr>, limit: Duration) -> io::Result<KeptDescriptor<TcpStream>> {
    connect_to_any(places, |place| {
        let socket = socket(Domain::for_address(place), Type::STREAM)?;
        socket.connect_timeout(&place.into(), limit)?;
        Ok(kept(socket))
    })
}

/// Begins to connect to an address. The socket does not block.
///
/// # Errors
///
/// The system's error, if connecting fails at once.
pub fn begun_tcp(place: SocketAddr) -> io::Result<KeptDescriptor<TcpStream>> {
    let socket = socket(Domain::for_address(place), Type::STREAM)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&place.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(kept(socket)),
    }
}

/// Opens a socket for datagrams to the first of the addresses that can be used.
///
/// # Errors
///
/// The system's error for the last address.
pub fn udp(places: impl IntoIterator<Item = SocketAddr>) -> io::Result<KeptDescriptor<UdpSocket>> {
    connect_to_any(places, |place| {
        let socket = socket(Domain::for_address(place), Type::DGRAM)?;
        socket.connect(&place.into())?;
        socket.set_nonblocking(true)?;
        Ok(kept(socket))
    })
}

/// Connects to a stream socket of this machine. The socket does not block.
///
/// # Errors
///
/// The system's error; `WouldBlock` if the listener has no room for another connection.
pub fn unix_stream(path: &str) -> io::Result<KeptDescriptor<UnixStream>> {
    unix(path, Type::STREAM).map(kept)
}

/// Connects to a datagram socket of this machine. The socket does not block.
///
/// # Errors
///
/// The system's error; EPROTOTYPE if it is a stream socket.
pub fn unix_datagram(path: &str) -> io::Result<KeptDescriptor<UnixDatagram>> {
    unix(path, Type::DGRAM).map(kept)
}

fn unix(path: &str, kind: Type) -> io::Result<Socket> {
    let socket = socket(Domain::UNIX, kind)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(socket)
}

fn kept<T: AsRawFd + From<OwnedFd> + Into<OwnedFd>>(socket: Socket) -> KeptDescriptor<T> {
    KeptDescriptor::new(OwnedFd::from(socket).into())
}

fn connect_to_any<T>(
    places: impl IntoIterator<Item = SocketAddr>,
    connect: impl Fn(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    for place in places {
        match connect(place) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    #[test]
    fn the_address_that_answers_is_used_for_a_host_with_several() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let four = listener.local_addr().unwrap();
        // `localhost` may resolve to this address first. Connecting fails because nothing listens there, or IPv6 is
        // off.
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, four.port()));

        for places in [[six, four], [four, six]] {
            let connected = tcp(places, LIMIT).unwrap();
            assert_eq!(four, connected.get().unwrap().peer_addr().unwrap());
            assert!(connected.number() > 15);
        }
        assert!(tcp([six], LIMIT).is_err());
        assert_eq!(ErrorKind::NotFound, tcp([], LIMIT).unwrap_err().kind());
    }
}
