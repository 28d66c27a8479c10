//! The socket of a connection. Connecting has a time limit. Afterwards, reads and writes do not block.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use logspool_sys::kept::KeptDescriptor;

use super::opened;

/// Maximum time for connecting to one address of a host.
///
/// Chosen: a lost SYN is sent again after a second. Doubling the limit would delay the next address for longer.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

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
        let kept = opened::tcp((host, port).to_socket_addrs().map_err(unknown_host)?, CONNECT_LIMIT)?;
        let socket = kept.get()?;
        socket.set_nodelay(true)?;
        limit_unsent(socket);
        socket.set_nonblocking(true)?;
        Ok(Self::Tcp(kept))
    }

    /// Connects to a unix socket of this machine.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn unix(path: &str) -> io::Result<Self> {
        let kept = opened::unix_stream(path)?;
        kept.get()?.set_nonblocking(true)?;
        Ok(Self::Unix(kept))
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

/// Gives the kind `NotFound` to errors of the resolver, which have no error number.
pub(super) fn unknown_host(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { io::Error::new(ErrorKind::NotFound, error) }
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
