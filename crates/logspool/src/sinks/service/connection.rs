//! One connection to a service: sends without blocking and reads answers.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use logspool_record::address::{ServiceAddress, TlsIdentity};
use logspool_record::msgpack::{Item, ReadError, Reader};

use super::dialer::Dialer;
use super::handshake::{self, KeyHandshake};
use crate::sinks::transport::stream::{self, CONNECT_LIMIT, Socket};
use crate::sinks::transport::tls::Session;

/// Maximum time for sending the last message.
const FINISH_LIMIT: Duration = Duration::from_millis(100);

/// Maximum bytes of an answer. Chosen: an ack has about a hundred bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// How long bytes are sent again while the service's machine confirms nothing. Then the connection is closed.
///
/// Specified: another service is asked within 6 s.
const SILENCE_LIMIT: Duration = Duration::from_secs(5);

/// A connection to a service.
#[derive(Debug)]
pub struct Connection {
    socket: Socket,
    /// When the connection was begun, until it is established.
    begun: Option<Instant>,
    /// The host and the identity for the TLS session that begins when the connection is established.
    wanted: Option<(String, Box<TlsIdentity>)>,
    /// Since when bytes are sent again because they were not confirmed.
    resends_since: Option<Instant>,
    /// The TLS session on the socket, if the address asks for TLS.
    session: Option<Session>,
    /// The handshake with a shared key, if the options have one.
    handshake: Option<KeyHandshake>,
    /// Bytes of an answer that is not complete yet.
    answer: Vec<u8>,
    /// Whether the service has sent anything.
    has_answered: bool,
}

impl Connection {
    /// Begins to connect to the next address of the dialer, or connects to a unix socket. Later calls that send or
    /// receive continue with the connection and the handshakes of TLS and with a shared key.
    ///
    /// # Errors
    ///
    /// The system's error, if there is one at once.
    pub fn open(address: &ServiceAddress, dialer: &mut Dialer, handshake: Option<KeyHandshake>) -> io::Result<Self> {
        let (socket, wanted) = match address {
            ServiceAddress::Tcp { hosts } => (Socket::begin_tcp(dialer.advance(hosts)?.1)?, None),
            ServiceAddress::Tls { hosts, identity } => {
                let (host, place) = dialer.advance(hosts)?;
                (Socket::begin_tcp(place)?, Some((hosts[host].host.clone(), identity.clone())))
            }
            ServiceAddress::Unix { path } => (Socket::unix(path)?, None),
        };
        Ok(Self {
            socket,
            begun: Some(Instant::now()),
            wanted,
            resends_since: None,
            session: None,
            handshake,
            answer: Vec::new(),
            has_answered: false,
        })
    }

    /// Whether the connection is not established yet, or a handshake is not complete. No entries are sent before that.
    pub fn is_beginning(&self) -> bool {
        self.begun.is_some() || self.session.as_ref().is_some_and(Session::is_beginning) || self.awaits_key()
    }

    /// Whether the connection is established.
    pub fn is_established(&self) -> bool {
        self.begun.is_none()
    }

    /// Returns whether the connection is established. Begins the TLS session then.
    fn establish(&mut self) -> io::Result<bool> {
        let Some(begun) = self.begun else { return Ok(true) };
        if !self.socket.is_connected()? {
            return if begun.elapsed() > CONNECT_LIMIT { Err(ErrorKind::TimedOut.into()) } else { Ok(false) };
        }
        self.begun = None;
        // The files of the identity are read only now. For an unreachable service they are not needed.
        let wanted = self.wanted.take();
        self.session = wanted.map(|(host, identity)| Session::begin(&host, &identity)).transpose()?;
        Ok(true)
    }

    /// Checks that the service's machine confirms the sent bytes. A service that exists and reads nothing is no error.
    ///
    /// # Errors
    ///
    /// It has confirmed nothing for [`SILENCE_LIMIT`].
    pub fn check_silence(&mut self) -> io::Result<()> {
        let Some(unconfirmed) = self.socket.unconfirmed_for() else {
            self.resends_since = None;
            return Ok(());
        };
        // The last confirmation of a connection without traffic is old.
        let resends = self.resends_since.get_or_insert_with(Instant::now).elapsed();
        if unconfirmed.min(resends) < SILENCE_LIMIT { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    fn awaits_key(&self) -> bool {
        self.handshake.as_ref().is_some_and(|handshake| !handshake.is_done())
    }

    /// Sends the first bytes of `bytes`, as many as possible without blocking. Returns their number, which is 0 if
    /// nothing can be sent now.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_some() || self.awaits_key() {
            return Ok(0);
        }
        self.send_now(bytes)
    }

    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = match &mut self.session {
            Some(session) => session.send(&mut self.socket, bytes),
            None => self.socket.write(bytes),
        };
        none_if_would_block(sent).map(Option::unwrap_or_default)
    }

    /// Sends what the handshake with a shared key has to send, as much as possible without blocking.
    fn push_proof(&mut self) -> io::Result<()> {
        let Some(handshake) = &mut self.handshake else { return Ok(()) };
        handshake.check_time()?;
        let bytes = std::mem::take(&mut handshake.to_send);
        if bytes.is_empty() {
            return Ok(());
        }
        let sent = self.send_now(&bytes)?;
        if let Some(handshake) = &mut self.handshake {
            handshake.to_send.extend_from_slice(&bytes[sent..]);
        }
        Ok(())
    }

    /// The error for a connection on which sending failed with `lost`. If the service has sent a reason, the result is
    /// that reason.
    pub fn explain(&mut self, lost: io::Error) -> io::Error {
        match self.receive(|_, _| ()) {
            Err(said) if said.get_ref().is_some() => said,
            _ => self.unanswered(lost),
        }
    }

    /// Reads the bytes that have arrived, and calls `acked` with the id of each ack, and with the reason if the service
    /// drops the chunk. Also continues to connect, sends pending bytes of the TLS session, and continues the handshake
    /// with a shared key.
    ///
    /// # Errors
    ///
    /// The connection is lost, closed or was not established. For an identity: the file that cannot be used, and the
    /// reason. `InvalidData` if the service sends bytes that no Forward receiver sends.
    pub fn receive(&mut self, mut acked: impl FnMut(&[u8], Option<&[u8]>)) -> io::Result<()> {
        if !self.establish()? {
            return Ok(());
        }
        let mut part = [0; 4096];
        loop {
            let read = match &mut self.session {
                Some(session) => session.receive(&mut self.socket, &mut part),
                None => self.socket.read(&mut part),
            };
            match none_if_would_block(read).map_err(|lost| self.unanswered(lost))? {
                None => return self.push_proof(),
                Some(0) => return Err(self.unanswered(ErrorKind::UnexpectedEof.into())),
                Some(count) => self.answer.extend_from_slice(&part[..count]),
            }
            self.has_answered = true;
            let mut done = 0;
            loop {
                if let Some(handshake) = self.handshake.as_mut().filter(|handshake| !handshake.is_done()) {
                    match handshake.read(&self.answer[done..])? {
                        Some(len) => done += len,
                        None if self.answer.len() - done <= MAX_ANSWER_BYTES => break,
                        None => return Err(no_answer(&self.answer[done..])),
                    }
                    continue;
                }
                match read_answer(&self.answer[done..]) {
                    Ok(Answer { len, id, dropped }) => {
                        if let Some(id) = id {
                            acked(id, dropped);
                        }
                        done += len;
                    }
                    Err(ReadError::Incomplete) if self.answer.len() - done <= MAX_ANSWER_BYTES => break,
                    Err(_) => return Err(no_answer(&self.answer[done..])),
                }
            }
            self.answer.drain(..done);
        }
    }

    /// Returns the error. If a remote service has ended the connection without any answer, the error suggests TLS. Many
    /// services that expect TLS end connections in this way.
    fn unanswered(&self, lost: io::Error) -> io::Error {
        let is_plain = self.session.is_none() && matches!(self.socket, Socket::Tcp(_));
        let is_end = matches!(
            lost.kind(),
            ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
        );
        if !is_plain || self.has_answered || !is_end {
            return lost;
        }
        let why = "the service ended the connection without an answer (fix: look whether it runs, and whether it \
                   wants tls:// there)";
        io::Error::new(lost.kind(), why)
    }

    /// Waits at most `longest` until there are bytes to read, or the connection is established. With `for_room` it also
    /// ends when there is room to send.
    pub fn wait(&self, for_room: bool, longest: Duration) {
        // With TLS, only the session knows whether it waits for room: it buffers bytes, and accepts no entries before
        // the end of the handshake.
        let for_room = self.session.as_ref().map_or(for_room && !self.awaits_key(), Session::has_to_send)
            || self.handshake.as_ref().is_some_and(|handshake| !handshake.to_send.is_empty())
            || self.begun.is_some();
        let events = if for_room { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
        let mut poll = libc::pollfd { fd: self.socket.descriptor(), events, revents: 0 };
        // SAFETY: one valid pollfd. The result is ignored, because the caller tries to read and send in any case.
        unsafe { libc::poll(&mut poll, 1, longest.as_millis() as i32) };
    }

    /// Sends a last message, waiting only briefly, and closes the connection.
    pub fn finish(mut self, message: &[u8]) {
        if self.begun.is_some() || self.awaits_key() {
            return;
        }
        // Errors are ignored: the service also notices the end of the connection without this message.
        let _ = self.socket.block_for(FINISH_LIMIT).and_then(|()| match self.session {
            Some(session) => session.finish(&mut self.socket, message),
            None => self.socket.write_all(message),
        });
    }
}

/// The error for bytes that are not an answer of a Forward receiver.
fn no_answer(bytes: &[u8]) -> io::Error {
    if handshake::is_helo(bytes) {
        return io::Error::new(ErrorKind::InvalidData, "the receiver wants a shared key (fix: shared_key=)");
    }
    stream::wanted_tls(bytes).unwrap_or_else(|| io::Error::from(ErrorKind::InvalidData))
}

/// `None` if the call would block.
fn none_if_would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An answer of the service.
#[derive(Debug, PartialEq, Eq)]
struct Answer<'a> {
    len: usize,
    /// The id of the chunk, if the answer is an ack.
    id: Option<&'a [u8]>,
    /// Why the service drops the chunk, if it does.
    dropped: Option<&'a [u8]>,
}

/// Parses the first answer.
fn read_answer(bytes: &[u8]) -> Result<Answer<'_>, ReadError> {
    let mut reader = Reader::new(bytes);
    let Item::Map(count) = reader.item()? else { return Err(ReadError::Invalid) };
    let (mut id, mut dropped) = (None, None);
    for _ in 0..count {
        let to = match reader.item()? {
            Item::Text(b"ack") | Item::Bytes(b"ack") => &mut id,
            Item::Text(b"dropped") | Item::Bytes(b"dropped") => &mut dropped,
            _ => {
                reader.skip()?;
                continue;
            }
        };
        *to = match reader.item()? {
            Item::Text(text) | Item::Bytes(text) => Some(text),
            _ => return Err(ReadError::Invalid),
        };
    }
    Ok(Answer { len: bytes.len() - reader.rest().len(), id, dropped })
}

#[cfg(test)]
mod tests {
    use logspool_record::msgpack::{push_array, push_int, push_map, push_nil, push_text};

    use super::*;

    #[test]
    fn an_answer_is_read_once_it_is_complete_and_unknown_keys_are_skipped() {
        let mut bytes = Vec::new();
        push_map(&mut bytes, 4);
        push_text(&mut bytes, b"load");
        push_array(&mut bytes, 2);
        push_int(&mut bytes, 1);
        push_nil(&mut bytes);
        push_text(&mut bytes, b"ack");
        push_text(&mut bytes, b"s/1/1-2");
        push_text(&mut bytes, b"dropped");
        push_text(&mut bytes, b"why");
        push_text(&mut bytes, b"x");
        push_nil(&mut bytes);
        for cut in 0..bytes.len() {
            assert_eq!(Err(ReadError::Incomplete), read_answer(&bytes[..cut]), "{cut}");
        }
        let len = bytes.len();
        bytes.push(0x80);

        let expected = Answer { len, id: Some(b"s/1/1-2"), dropped: Some(b"why") };
        assert_eq!(Ok(expected), read_answer(&bytes));
        assert_eq!(Ok(Answer { len: 1, id: None, dropped: None }), read_answer(&bytes[len..]));
    }

    #[test]
    fn connecting_to_a_machine_that_does_not_answer_does_not_wait() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        // A program of one instruction: keep 0 bytes of a packet. So the kernel drops the attempts to connect.
        let mut drop_all = libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut drop_all };
        let length = size_of_val(&program) as libc::socklen_t;
        let (socket, value) = (listener.as_raw_fd(), (&raw const program).cast());
        // SAFETY: the descriptor is open, and the value and its instruction are read only during the call.
        let status = unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, length) };
        assert_eq!(0, status);
        let address = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();

        let begun = Instant::now();
        let mut connection = Connection::open(&address, &mut Dialer::new(Duration::ZERO), None).unwrap();
        connection.receive(|_, _| ()).unwrap();
        assert_eq!(0, connection.send(b"entry").unwrap());
        assert!(connection.is_beginning() && begun.elapsed() < CONNECT_LIMIT, "{:?}", begun.elapsed());
        connection.begun = Instant::now().checked_sub(CONNECT_LIMIT + Duration::from_millis(1));
        assert_eq!(ErrorKind::TimedOut, connection.receive(|_, _| ()).unwrap_err().kind());
    }

    #[test]
    fn the_error_for_a_tls_alert_names_a_fix() {
        assert!(no_answer(b"\x15\x03\x03\0\x02\x02\x32").to_string().contains("tls://"));
        assert_eq!(ErrorKind::InvalidData, no_answer(b"HTTP/1.1 400").kind());
    }

    #[test]
    fn bytes_that_are_not_an_answer_are_refused() {
        for bytes in [&b"HTTP/1.1 400"[..], &[0x81, 0xa3, b'a', b'c', b'k', 5], &[0xc1], &[0x90]] {
            assert_eq!(Err(ReadError::Invalid), read_answer(bytes), "{bytes:?}");
        }
    }
}
