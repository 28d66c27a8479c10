//! The socket of a connection: made with a limit on the time, never waiting afterwards.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long one address of a host may take to answer a connection.
///
/// Chosen: a SYN lost once is sent again after a second; double would keep the sink longer from the next address.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// See the file head.
#[derive(Debug)]
pub enum Socket {
    /// To a host.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Socket {
    /// Connects to a port of a host.
    ///
    /// # Errors
    ///
    /// What the system said about the last address of the host.
    pub fn tcp(host: &str, port: u16) -> io::Result<Self> {
        let socket = connect_to_any((host, port).to_socket_addrs().map_err(unknown_host)?)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Tcp(socket))
    }

    /// Connects to a socket of this machine.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn unix(path: &str) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_nonblocking(true)?;
        Ok(Self::Unix(socket))
    }

    /// From now on a write waits for room, at most so long.
    pub fn block_for(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_nonblocking(false).and_then(|()| socket.set_write_timeout(Some(limit))),
            Self::Unix(socket) => socket.set_nonblocking(false).and_then(|()| socket.set_write_timeout(Some(limit))),
        }
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(bytes),
            Self::Unix(socket) => socket.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write_vectored(parts),
            Self::Unix(socket) => socket.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connect_to_any(places: impl Iterator<Item = SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::from(ErrorKind::NotFound);
    for place in places {
        match TcpStream::connect_timeout(&place, CONNECT_LIMIT) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The resolver's errors have no number and no kind.
fn unknown_host(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { io::Error::new(ErrorKind::NotFound, error) }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, TcpListener};

    use super::*;

    #[test]
    fn of_a_host_with_several_addresses_the_one_that_answers_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let four = listener.local_addr().unwrap();
        // What `localhost` may come first with: nobody listens there, or there is no such family.
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, four.port()));

        for places in [[six, four], [four, six]] {
            let connected = connect_to_any(places.into_iter()).unwrap();
            assert_eq!(four, connected.peer_addr().unwrap());
        }
        assert!(connect_to_any([six].into_iter()).is_err());
        assert_eq!(ErrorKind::NotFound, connect_to_any(std::iter::empty()).unwrap_err().kind());
    }
}
