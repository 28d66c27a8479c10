//! One connection to a service: sends without waiting, reads answers.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::address::ServiceAddress;
use crate::msgpack::{Item, Missing, Reader};

/// How long one address of a host may take to answer a connection.
///
/// Chosen: a SYN lost once is sent again after a second; double would keep the sink longer from the next address.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How long the last message may take to go out.
const FINISH_LIMIT: Duration = Duration::from_millis(100);

/// Most bytes of an answer. Chosen: an ack has a hundred.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// See the file head.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// The beginning of an answer whose rest is to come.
    answer: Vec<u8>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    ///
    /// What the system said about the last address of the host.
    pub fn open(address: &ServiceAddress) -> io::Result<Self> {
        let socket = match address {
            ServiceAddress::Tcp { host, port } => {
                let places = (host.as_str(), *port).to_socket_addrs().map_err(unknown_host)?;
                let socket = connect_to_any(places)?;
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                Socket::Tcp(socket)
            }
            ServiceAddress::Unix { path } => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Socket::Unix(socket)
            }
        };
        Ok(Self { socket, answer: Vec::new() })
    }

    /// Sends a leading part of `bytes`, as much as goes at once. Returns how much; 0: nothing goes now.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = match &mut self.socket {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        };
        not_now(sent).map(Option::unwrap_or_default)
    }

    /// Reads what has come, and calls `acked` with the id in each ack.
    ///
    /// # Errors
    ///
    /// The connection is lost or closed; `InvalidData` where the other side sends what no receiver of Forward sends.
    pub fn receive(&mut self, mut acked: impl FnMut(&[u8])) -> io::Result<()> {
        let mut part = [0; 4096];
        loop {
            let read = match &mut self.socket {
                Socket::Tcp(socket) => socket.read(&mut part),
                Socket::Unix(socket) => socket.read(&mut part),
            };
            match not_now(read)? {
                None => return Ok(()),
                Some(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof)),
                Some(count) => self.answer.extend_from_slice(&part[..count]),
            }
            let mut done = 0;
            loop {
                match read_answer(&self.answer[done..]) {
                    Ok((len, id)) => {
                        id.into_iter().for_each(&mut acked);
                        done += len;
                    }
                    Err(Missing::Incomplete) if self.answer.len() - done <= MAX_ANSWER_BYTES => break,
                    Err(_) => return Err(io::Error::from(ErrorKind::InvalidData)),
                }
            }
            self.answer.drain(..done);
        }
    }

    /// Waits until there is something to read, or, if wanted, room to send, at most for `longest`.
    pub fn wait(&self, for_room: bool, longest: Duration) {
        let events = if for_room { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let mut poll = libc::pollfd { fd: self.descriptor(), events, revents: 0 };
        // SAFETY: one valid pollfd. Whatever it says, the caller tries.
        unsafe { libc::poll(&mut poll, 1, longest.as_millis() as i32) };
    }

    /// Sends a last message, at most for a moment, and ends the connection.
    pub fn finish(self, message: &[u8]) {
        // What fails here the service finds out by itself: the connection ends.
        let _ = match self.socket {
            Socket::Tcp(mut socket) => socket
                .set_nonblocking(false)
                .and_then(|()| socket.set_write_timeout(Some(FINISH_LIMIT)))
                .and_then(|()| socket.write_all(message)),
            Socket::Unix(mut socket) => socket
                .set_nonblocking(false)
                .and_then(|()| socket.set_write_timeout(Some(FINISH_LIMIT)))
                .and_then(|()| socket.write_all(message)),
        };
    }

    fn descriptor(&self) -> RawFd {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_raw_fd(),
            Socket::Unix(socket) => socket.as_raw_fd(),
        }
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

/// `None`: not now.
fn not_now(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads an answer off the front: its length, and the id in it if it is an ack.
fn read_answer(bytes: &[u8]) -> Result<(usize, Option<&[u8]>), Missing> {
    let mut reader = Reader::new(bytes);
    let Item::Map(count) = reader.item()? else { return Err(Missing::Invalid) };
    let mut id = None;
    for _ in 0..count {
        let is_ack = matches!(reader.item()?, Item::Text(b"ack") | Item::Bytes(b"ack"));
        let value = reader;
        reader.skip()?;
        if is_ack {
            id = match { value }.item()? {
                Item::Text(id) | Item::Bytes(id) => Some(id),
                _ => return Err(Missing::Invalid),
            };
        }
    }
    Ok((bytes.len() - reader.rest().len(), id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msgpack::{push_array, push_int, push_map, push_nil, push_text};

    #[test]
    fn an_answer_is_read_once_it_is_whole_and_unknown_keys_are_passed_over() {
        let mut bytes = Vec::new();
        push_map(&mut bytes, 3);
        push_text(&mut bytes, b"load");
        push_array(&mut bytes, 2);
        push_int(&mut bytes, 1);
        push_nil(&mut bytes);
        push_text(&mut bytes, b"ack");
        push_text(&mut bytes, b"s/1/1-2");
        push_text(&mut bytes, b"x");
        push_nil(&mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(Err(Missing::Incomplete), read_answer(&bytes[..cut]), "{cut}");
        }
        let len = bytes.len();
        bytes.push(0x80);

        assert_eq!(Ok((len, Some(&b"s/1/1-2"[..]))), read_answer(&bytes));
        assert_eq!(Ok((1, None)), read_answer(&bytes[len..]));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for bytes in [&b"HTTP/1.1 400"[..], &[0x81, 0xa3, b'a', b'c', b'k', 5], &[0xc1], &[0x90]] {
            assert_eq!(Err(Missing::Invalid), read_answer(bytes), "{bytes:?}");
        }
    }
}
