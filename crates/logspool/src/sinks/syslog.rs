//! A syslog server, by RFC 5424: over UDP (RFC 5426), over TCP with octet counting (RFC 6587), or at a unix socket.
//!
//! Each record is one message (`syslog/message.rs`). Over UDP and at a unix datagram socket, each message is one
//! datagram. In a stream, the length of the message precedes it, so a line end does not end a message.
//!
//! Syslog has no acks: a record counts as written when the system has accepted its whole message. If a connection ends
//! inside a message, the whole message is sent again over the next connection. The receiver drops the part that it has.
//! Before each message, the sink checks whether the receiver has closed the connection.

mod message;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape};
use crate::sink::{Lines, Sink, SinkError};
use logspool_record::address::ServiceAddress;
use logspool_record::definition::{Descriptor, OptionValue};
use message::{Facility, Header};

crate::options! {
    /// Sends records to a syslog server, by RFC 5424.
    pub struct SyslogOptions {
        /// `udp://host:port`, `tcp://host:port` or `unix:///path`. At a unix path a datagram socket is tried first, then
        /// a stream socket; the receiver there has to read RFC 5424.
        pub address: SyslogAddress,
        /// Which part of the system the records come from.
        pub facility: Facility = Text("user"),
        /// The APP-NAME of each message, at most 48 printable ASCII characters; without it the message has none.
        pub app_name: Option<String> = Nothing,
        /// The SD-ID under which a message carries the extra and bound fields of its record.
        pub sd_id: String = Text("logspool@32473"),
        /// Longest message. The text of a longer one is cut, at a character, and ends with `...`; fields that leave no
        /// room for text are left out. A datagram has at most 65,507 bytes.
        pub max_bytes: u32 ["bytes", 480..=1048576] = Whole(8192),
    }
}

/// The address of a syslog server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogAddress {
    /// `udp://host:port`
    Udp(String, u16),
    /// `tcp://host:port`
    Tcp(String, u16),
    /// `unix:///path`
    Unix(String),
}

impl SinkOptions for SyslogOptions {
    const KIND: &'static str = "syslog";
    const TRAITS: Traits = Traits::REMOTE;

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(SyslogSink {
            address: self.address.clone(),
            header: Header::new(self.facility, self.app_name.as_deref(), &self.sd_id),
            max_bytes: self.max_bytes as usize,
            socket: None,
            begun: 0,
            message: Vec::new(),
        }))
    }

    fn place(&self) -> Place {
        Place::Address(self.address.text())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self {
            address: SyslogAddress::Unix(format!("{path}.socket")),
            facility: Facility::default(),
            app_name: Some("contract".to_owned()),
            sd_id: "logspool@32473".to_owned(),
            max_bytes: 8192,
        }]
    }
}

impl SyslogAddress {
    fn text(&self) -> String {
        match self {
            Self::Udp(host, port) if host.contains(':') => format!("udp://[{host}]:{port}"),
            Self::Udp(host, port) => format!("udp://{host}:{port}"),
            Self::Tcp(host, port) if host.contains(':') => format!("tcp://[{host}]:{port}"),
            Self::Tcp(host, port) => format!("tcp://{host}:{port}"),
            Self::Unix(path) => format!("unix://{path}"),
        }
    }
}

impl OptionField for SyslogAddress {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        let refused = || format!("{text:?} is none: it must be udp://HOST:PORT, tcp://HOST:PORT or unix:///PATH");
        // Hosts, ports and paths are written as in the address of a service.
        let as_tcp = text.strip_prefix("udp://").map(|place| format!("tcp://{place}"));
        let address = as_tcp.as_ref().unwrap_or(&text).parse().map_err(|_| refused())?;
        match (as_tcp, address) {
            (Some(_), ServiceAddress::Tcp { host, port }) => Ok(Self::Udp(host, port)),
            (None, ServiceAddress::Tcp { host, port }) => Ok(Self::Tcp(host, port)),
            (None, ServiceAddress::Unix { path }) => Ok(Self::Unix(path)),
            _ => Err(refused()),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.text())
    }
}

/// Maximum time for connecting to one address of a host.
///
/// Chosen: a SYN that is lost once is sent again after a second. Doubling the limit would delay the next address for
/// longer.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How long one write waits for room. Then the writer checks whether it has a new order.
const POLL_MS: i32 = 50;

/// Minimum size of datagrams in bytes that every receiver must accept, as RFC 5424, section 6.1, specifies.
const MIN_BYTES: usize = 480;

/// Maximum bytes of a datagram, as UDP over IPv4 specifies.
const MAX_DATAGRAM_BYTES: usize = 65_507;

/// The sink for a syslog server; see the module documentation.
#[derive(Debug)]
pub struct SyslogSink {
    address: SyslogAddress,
    header: Header,
    max_bytes: usize,
    /// The open socket to the server.
    socket: Option<SyslogSocket>,
    /// Number of bytes of the first message, including its length, that the stream has already accepted.
    begun: usize,
    message: Vec<u8>,
}

/// An open socket.
#[derive(Debug)]
enum SyslogSocket {
    Udp(UdpSocket),
    Datagram(UnixDatagram),
    Tcp(TcpStream),
    Stream(UnixStream),
}

impl SyslogSocket {
    fn open(address: &SyslogAddress) -> io::Result<Self> {
        let socket = match address {
            SyslogAddress::Udp(host, port) => {
                let place = (host.as_str(), *port).to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
                let socket = UdpSocket::bind(if place.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
                socket.connect(place)?;
                Self::Udp(socket)
            }
            SyslogAddress::Tcp(host, port) => {
                let mut result = Err(ErrorKind::AddrNotAvailable.into());
                for place in (host.as_str(), *port).to_socket_addrs()? {
                    result = TcpStream::connect_timeout(&place, CONNECT_LIMIT);
                    if result.is_ok() {
                        break;
                    }
                }
                Self::Tcp(result?)
            }
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                match socket.connect(path) {
                    Ok(()) => Self::Datagram(socket),
                    Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => {
                        Self::Stream(UnixStream::connect(path)?)
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        match &socket {
            Self::Udp(socket) => socket.set_nonblocking(true)?,
            Self::Datagram(socket) => socket.set_nonblocking(true)?,
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
            Self::Stream(socket) => socket.set_nonblocking(true)?,
        }
        Ok(socket)
    }

    fn is_stream(&self) -> bool {
        matches!(self, Self::Tcp(_) | Self::Stream(_))
    }

    fn descriptor(&self) -> RawFd {
        match self {
            Self::Udp(socket) => socket.as_raw_fd(),
            Self::Datagram(socket) => socket.as_raw_fd(),
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Stream(socket) => socket.as_raw_fd(),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.send(bytes),
            Self::Datagram(socket) => socket.send(bytes),
            Self::Tcp(socket) => socket.write(bytes),
            Self::Stream(socket) => socket.write(bytes),
        }
    }

    /// Waits for room, at most [`POLL_MS`].
    fn wait(&self) {
        let mut poll = libc::pollfd { fd: self.descriptor(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&mut poll, 1, POLL_MS) };
    }

    /// Whether the receiver has closed the connection. The receiver sends no data, so a successful read means the end.
    fn is_closed(&mut self) -> bool {
        let mut bytes = [0; 64];
        let read = match self {
            Self::Udp(_) | Self::Datagram(_) => return false,
            Self::Tcp(socket) => socket.read(&mut bytes),
            Self::Stream(socket) => socket.read(&mut bytes),
        };
        !matches!(read, Ok(1..)) && !matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

impl SyslogSink {
    /// Returns the open socket. Opens a new one if none is open, or if the receiver has closed it.
    fn open_socket(&mut self) -> io::Result<&mut SyslogSocket> {
        if self.socket.as_mut().is_some_and(SyslogSocket::is_closed) {
            self.leave();
        }
        match &mut self.socket {
            Some(socket) => Ok(socket),
            none => Ok(none.insert(SyslogSocket::open(&self.address)?)),
        }
    }

    /// Drops the connection. A message that was sent in part must be sent again from its beginning.
    fn leave(&mut self) {
        self.socket = None;
        self.begun = 0;
    }

    /// Encodes the message of an entry. For a stream, the length of the message precedes it.
    fn make(&mut self, entry: &[u8], is_stream: bool) {
        let most = if is_stream { self.max_bytes } else { self.max_bytes.min(MAX_DATAGRAM_BYTES) };
        self.message.clear();
        self.header.push_message(&mut self.message, entry, most);
        if is_stream {
            let length = format!("{} ", self.message.len());
            self.message.splice(..0, length.into_bytes());
        }
    }

    /// Sends the message of one record. Returns false if there is no room now.
    fn send(&mut self, entry: &[u8]) -> io::Result<bool> {
        let is_stream = self.open_socket()?.is_stream();
        self.make(entry, is_stream);
        while self.begun < self.message.len() {
            let socket = self.socket.as_mut().ok_or(ErrorKind::NotConnected)?;
            match socket.send(&self.message[self.begun..]) {
                Ok(count) if is_stream => self.begun += count,
                Ok(_) => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                // The socket accepts only shorter datagrams than were configured.
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && self.max_bytes > MIN_BYTES => {
                    self.max_bytes = (self.max_bytes.min(MAX_DATAGRAM_BYTES) / 2).max(MIN_BYTES);
                    self.make(entry, is_stream);
                }
                Err(error) => return Err(error),
            }
        }
        self.begun = 0;
        Ok(true)
    }
}

impl Sink for SyslogSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        let mut taken = 0;
        let mut waited = false;
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            loop {
                match self.send(&lines.bytes[taken..end]) {
                    Ok(true) => break,
                    Ok(false) if taken > 0 => return Ok(taken),
                    Ok(false) if waited => return Err(SinkError::Retry(ErrorKind::WouldBlock.into())),
                    Ok(false) => {
                        waited = true;
                        self.socket.iter().for_each(SyslogSocket::wait);
                    }
                    Err(error) => {
                        self.leave();
                        // This call reports the bytes that were sent. If the error persists, the next call reports it.
                        return if taken > 0 { Ok(taken) } else { Err(SinkError::Retry(error)) };
                    }
                }
            }
            taken = end;
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::sink::Mark;
    use crate::sinks::parts::tests::entry;

    fn sink(address: &str, max_bytes: u32) -> Box<dyn Sink> {
        let address = SyslogAddress::from_value(&OptionValue::Text(address.to_owned())).unwrap();
        let sd_id = "logspool@32473".to_owned();
        let options = SyslogOptions { address, facility: Facility::default(), app_name: None, sd_id, max_bytes };
        options.open(Descriptor::Open).unwrap()
    }

    fn write(sink: &mut dyn Sink, entry: &[u8]) -> Result<usize, SinkError> {
        let marks = [Mark { end: entry.len() as u32, level: 20, class: 2, seconds: 0 }];
        sink.write(Lines { bytes: entry, marks: &marks, before: 0 })
    }

    /// Repeats the write until the sink accepts the entry.
    fn write_all(sink: &mut dyn Sink, entry: &[u8]) {
        for _ in 0..1000 {
            match write(sink, entry) {
                Ok(count) => return assert_eq!(entry.len(), count),
                Err(SinkError::Retry(_)) => std::thread::sleep(Duration::from_millis(5)),
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("it never took the entry");
    }

    #[test]
    fn addresses_are_read_and_others_refused_with_the_mend() {
        for text in ["udp://127.0.0.1:514", "udp://[::1]:514", "tcp://logs:601", "tcp://[::1]:1", "unix:///dev/log"] {
            let value = OptionValue::Text(text.to_owned());
            assert_eq!(Ok(value.clone()), SyslogAddress::from_value(&value).map(|address| address.to_value()));
        }
        for text in ["", "udp://", "udp://host", "tls://host:1", "unix://x", "/dev/log"] {
            let error = SyslogAddress::from_value(&OptionValue::Text(text.to_owned())).unwrap_err();
            assert!(error.ends_with("it must be udp://HOST:PORT, tcp://HOST:PORT or unix:///PATH"), "{error}");
        }
    }

    #[test]
    fn a_message_cut_by_the_end_of_its_connection_is_sent_whole_over_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = sink(&format!("tcp://{}", listener.local_addr().unwrap()), 1 << 20);
        let long = |letter: &str| entry(&[("message", &letter.repeat(500_000))]);
        // Write until the socket buffers are full, so that the last message is sent only in part over the first
        // connection.
        let (mut before, mut count) = (long("a"), 0);
        while write(sink.as_mut(), &before).is_ok() {
            count += 1;
        }
        let (mut first, _) = listener.accept().unwrap();
        let mut beginning = [0; 1000];
        first.read_exact(&mut beginning).unwrap();
        drop(first);
        let reader = std::thread::spawn(move || {
            let (mut second, _) = listener.accept().unwrap();
            let mut text = String::new();
            second.read_to_string(&mut text).unwrap();
            text
        });
        write_all(sink.as_mut(), &before);
        before = long("b");
        write_all(sink.as_mut(), &before);
        drop(sink);
        let text = reader.join().unwrap();

        assert!(count > 0);
        let (length, rest) = text.split_once(' ').unwrap();
        let (first, second) = rest.split_at(length.parse().unwrap());
        assert!(first.starts_with("<14>1 ") && first.ends_with("aaaa"), "it begins with a whole message");
        let (length, second) = second.split_once(' ').unwrap();
        assert_eq!(length.parse(), Ok(second.len()));
        assert!(second.ends_with("bbbb"));
    }

    #[test]
    fn a_connection_that_the_receiver_has_closed_takes_no_message() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = sink(&format!("tcp://{}", listener.local_addr().unwrap()), 8192);
        let entry = entry(&[("message", "one")]);
        write_all(sink.as_mut(), &entry);
        drop(listener.accept().unwrap());
        // On loopback, the end of the connection arrives at once.
        write_all(sink.as_mut(), &entry);
        let (mut second, _) = listener.accept().unwrap();
        drop(sink);
        let mut text = String::new();
        second.read_to_string(&mut text).unwrap();

        assert_eq!(1, text.matches(" one").count(), "{text}");
    }

    #[test]
    fn a_unix_socket_may_take_a_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut sink = sink(&format!("unix://{}", path.display()), 8192);
        write_all(sink.as_mut(), &entry(&[("message", "two\nlines")]));
        drop(sink);
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();

        assert!(text.ends_with(" - two\nlines"), "{text}");
    }
}
