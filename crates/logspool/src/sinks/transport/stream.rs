//! The socket of a connection. Connecting has a time limit. Afterwards, reads and writes do not block.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use logspool_sys::kept::KeptDescriptor;

use super::opened;

/// Maximum time for connecting to one address of a host.
///
/// Chosen: a lost SYN is sent again after a second. Doubling the limit would delay the next address for longer.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Maximum bytes of a connection that the kernel keeps and has not sent. They are lost if the receiver restarts.
///
/// Chosen: the kernel alone would keep megabytes. With less, a fast connection would wait for the writer thread.
const UNSENT_BYTES: libc::c_int = 128 * 1024;

/// A stream socket to a service.
#[derive(Debug)]
pub enum Socket {
    /// A connection to a port of a host.
    Tcp(KeptDescriptor<TcpStream>),
    /// A connection to a unix socket of this machine.
    Unix(KeptDescriptor<UnixStream>),
}

impl Socket {
    /// Connects to a port of a host.
    ///
    /// # Errors
    ///
    /// The system's error for the last address of the host.
    pub fn tcp(host: &str, port: u16) -> io::Result<Self> {
        let kept = opened::tcp(resolve(host, port)?, CONNECT_LIMIT)?;
        kept.get()?.set_nonblocking(true)?;
        Self::prepared(kept)
    }

    /// Begins to connect to an address, without waiting. Use [`is_connected`](Self::is_connected) before the first read
    /// or write.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn begin_tcp(place: SocketAddr) -> io::Result<Self> {
        Self::prepared(opened::begun_tcp(place)?)
    }

    fn prepared(kept: KeptDescriptor<TcpStream>) -> io::Result<Self> {
        let socket = kept.get()?;
        socket.set_nodelay(true)?;
        limit_unsent(socket);
        Ok(Self::Tcp(kept))
    }

    /// Whether the connection is established.
    ///
    /// # Errors
    ///
    /// The reason why it is not and will not be.
    pub fn is_connected(&self) -> io::Result<bool> {
        let Self::Tcp(kept) = self else { return Ok(true) };
        let socket = kept.get()?;
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        match socket.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// How long ago the receiver's system last confirmed that it exists, if this system has to send bytes again because
    /// they were not confirmed. `None` also for a receiver that exists and reads nothing.
    ///
    /// The option `TCP_USER_TIMEOUT` does not make this difference: it ends the connection to such a receiver, too.
    pub fn unconfirmed_for(&self) -> Option<Duration> {
        let Self::Tcp(kept) = self else { return None };
        // SAFETY: integers and padding, for which zeros are valid.
        let mut facts: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&facts) as libc::socklen_t;
        let (socket, to) = (kept.get().ok()?.as_raw_fd(), (&raw mut facts).cast());
        // SAFETY: the kernel writes at most `length` bytes of `facts`, and the length that it wrote.
        let status = unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) };
        let resends = status == 0 && facts.tcpi_unacked > 0 && facts.tcpi_retransmits > 0;
        resends.then(|| Duration::from_millis(facts.tcpi_last_ack_recv.into()))
    }

    /// Connects to a unix socket of this machine.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn unix(path: &str) -> io::Result<Self> {
        opened::unix_stream(path).map(Self::Unix)
    }

    /// From now on, writes wait for room for at most `limit`.
    pub fn block_for(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => {
                let socket = socket.get()?;
                socket.set_nonblocking(false).and_then(|()| socket.set_write_timeout(Some(limit)))
            }
            Self::Unix(socket) => {
                let socket = socket.get()?;
                socket.set_nonblocking(false).and_then(|()| socket.set_write_timeout(Some(limit)))
            }
        }
    }

    /// The file descriptor; −1 if the program has closed it. Each use then fails with EBADF, and the sink connects
    /// again.
    pub fn descriptor(&self) -> RawFd {
        match self {
            Self::Tcp(socket) => socket.get().map_or(-1, AsRawFd::as_raw_fd),
            Self::Unix(socket) => socket.get().map_or(-1, AsRawFd::as_raw_fd),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.get_mut()?.read(bytes),
            Self::Unix(socket) => socket.get_mut()?.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.get_mut()?.write(bytes),
            Self::Unix(socket) => socket.get_mut()?.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.get_mut()?.write_vectored(parts),
            Self::Unix(socket) => socket.get_mut()?.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// First bytes of a TLS alert. A receiver that expects a TLS handshake answers other bytes with an alert.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// The error for an answer that shows that the receiver expects TLS.
pub fn wanted_tls(answer: &[u8]) -> Option<io::Error> {
    let why = "the service wants TLS (fix: tls:// in the address)";
    answer.starts_with(&TLS_ALERT).then(|| io::Error::new(ErrorKind::InvalidData, why))
}

/// Has no effect on a system without this option.
fn limit_unsent(socket: &TcpStream) {
    let bytes = UNSENT_BYTES;
    let (level, option, length) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, size_of_val(&bytes) as libc::socklen_t);
    // SAFETY: the descriptor is open, and the value is read only during the call.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const bytes).cast(), length) };
}

/// Returns the addresses of a host.
///
/// # Errors
///
/// `NotFound` if the resolver does not know the host; else the system's error.
pub fn resolve(host: &str, port: u16) -> io::Result<impl Iterator<Item = SocketAddr> + use<>> {
    (host, port).to_socket_addrs().map_err(|error| {
        // Errors of the resolver have no error number.
        if error.raw_os_error().is_some() {
            return error;
        }
        let why = format!("cannot find the host {host:?}: {error} (fix: the name in the address, or the resolver)");
        io::Error::new(ErrorKind::NotFound, why)
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_receiver_that_reads_nothing_leaves_little_in_the_sender() {
        const SIOCOUTQNSD: libc::c_ulong = 0x894B;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Socket::Tcp(mut socket) = Socket::tcp("127.0.0.1", listener.local_addr().unwrap().port()).unwrap() else {
            unreachable!("it is a connection to a port");
        };
        let mut unsent: libc::c_int = 0;
        let piece = [0; 4096];
        while socket.get_mut().unwrap().write(&piece).is_ok() {}
        // SAFETY: the descriptor is open, and the call writes one integer.
        assert_eq!(0, unsafe { libc::ioctl(socket.number(), SIOCOUTQNSD, &raw mut unsent) });

        // The kernel fills the segment that it has begun. Without the limit it keeps 3.8 MB.
        assert!(unsent > 0 && unsent <= 2 * UNSENT_BYTES, "{unsent}");
    }
}
