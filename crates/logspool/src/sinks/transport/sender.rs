//! The sink that sends each record as a message. The form of the messages is the only difference between the kinds.

use std::io::{self, ErrorKind};

use super::address::PeerAddress;
use super::link::Link;
use crate::sink::{Lines, Sink, SinkError};

/// Bytes of messages after which a stream gets no more of them in one write.
///
/// Chosen: above it, a system call costs less than copying its bytes.
const GATHER_BYTES: usize = 64 * 1024;

/// Minimum size of datagrams in bytes that every receiver must accept, as RFC 5424, section 6.1, specifies.
const MIN_DATAGRAM_BYTES: usize = 480;

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// One after the other. The message must show where it ends.
    Stream,
    /// As datagrams of at most `most` bytes.
    Datagrams {
        /// Maximum bytes of one datagram.
        most: usize,
    },
}

/// The encoded messages of some records.
#[derive(Debug, Default)]
pub struct EncodedMessages {
    /// The bytes of all messages.
    pub bytes: Vec<u8>,
    /// Where each datagram ends in `bytes`. Unused for a stream.
    pub ends: Vec<usize>,
    /// Number of records that were cut.
    pub cut: u64,
}

/// The form of a kind's messages.
pub trait RecordForm: Send {
    /// Whether a datagram that is too long is passed as a memory file, as journald reads it.
    const PASSES_FILES: bool = false;

    /// Appends the message of a record. `number` is the number of records that were sent before it. The same arguments
    /// must always give the same message.
    fn encode(&mut self, record: &[u8], carrier: Carrier, number: u64, out: &mut EncodedMessages);
}

/// A sink that sends each record to one address.
#[derive(Debug)]
pub struct PeerSink<F> {
    address: PeerAddress,
    form: F,
    link: Option<Link>,
    /// Which address of a host UDP uses.
    turn: usize,
    /// Maximum bytes of a datagram that the open socket accepts.
    most: usize,
    /// What the system has accepted of the first unwritten record's message: bytes of a stream, or number of datagrams.
    begun: usize,
    /// The records that may have been sent in part.
    partial: Vec<u8>,
    encoded: EncodedMessages,
    /// An error after which this call had sent records.
    trouble: Option<io::Error>,
    sent_records: u64,
    cut_records: u64,
}

impl<F: RecordForm> PeerSink<F> {
    /// A sink for the receiver at `address`. The first record opens the socket.
    pub fn new(address: PeerAddress, form: F) -> Self {
        Self {
            address,
            form,
            link: None,
            turn: 0,
            most: usize::MAX,
            begun: 0,
            partial: Vec::new(),
            encoded: EncodedMessages::default(),
            trouble: None,
            sent_records: 0,
            cut_records: 0,
        }
    }

    /// Closes the socket. A message that was sent in part must be sent again from its beginning.
    fn leave(&mut self) {
        self.link = None;
        self.begun = 0;
        self.partial.clear();
    }

    /// Opens the socket if it is not open, or if the receiver has closed it. Returns whether records can be sent.
    fn prepare(&mut self) -> io::Result<bool> {
        if let Some(link) = &mut self.link {
            match link.check() {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && error.get_ref().is_none() => self.leave(),
                other => return other,
            }
        }
        let link = Link::open(&self.address, self.turn)?;
        self.most = link.most();
        self.link.insert(link).check()
    }

    /// Sends as much as possible without waiting. Returns the number of bytes of the records that were sent.
    fn send(&mut self, lines: Lines<'_>) -> (usize, io::Result<()>) {
        match self.prepare() {
            Ok(true) => {}
            Ok(false) => return (0, Ok(())),
            Err(error) => return (0, Err(error)),
        }
        if !lines.bytes.starts_with(&self.partial) {
            // The record that was sent in part was given up.
            self.leave();
            return (0, Ok(()));
        }
        if self.link.as_ref().is_some_and(Link::is_stream) { self.send_stream(lines) } else { self.send_each(lines) }
    }

    fn send_stream(&mut self, lines: Lines<'_>) -> (usize, io::Result<()>) {
        let Some(link) = &mut self.link else { return (0, Ok(())) };
        let encoded = &mut self.encoded;
        encoded.bytes.clear();
        // For each record: its end in `lines`, the end of its message, and the number of records cut so far.
        let mut ends = Vec::new();
        encoded.cut = 0;
        let mut from = 0;
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            let number = self.sent_records + ends.len() as u64;
            self.form.encode(&lines.bytes[from..end], Carrier::Stream, number, encoded);
            ends.push((end, encoded.bytes.len(), encoded.cut));
            from = end;
            if encoded.bytes.len() >= GATHER_BYTES {
                break;
            }
        }
        let result = loop {
            let rest = match encoded.bytes.get(self.begun..) {
                Some([]) => break Ok(()),
                Some(rest) => rest,
                // The same records have the same messages, so this connection can be used no longer.
                None => return (0, Err(ErrorKind::InvalidData.into())),
            };
            match link.send(rest) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.begun += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let whole = ends.partition_point(|(_, end, _)| *end <= self.begun);
        let (taken, sent, cut) = whole.checked_sub(1).map_or((0, 0, 0), |last| ends[last]);
        self.begun -= sent;
        self.sent_records += whole as u64;
        self.cut_records += cut;
        self.partial.clear();
        self.partial.extend_from_slice(&lines.bytes[taken..from]);
        (taken, result)
    }

    fn send_each(&mut self, lines: Lines<'_>) -> (usize, io::Result<()>) {
        let mut taken = 0;
        for mark in lines.marks {
            let end = mark.end as usize - lines.before;
            let record = &lines.bytes[taken..end];
            match self.send_datagrams(record) {
                Ok(true) => {}
                Ok(false) => {
                    self.partial.clear();
                    self.partial.extend_from_slice(record);
                    return (taken, Ok(()));
                }
                Err(error) => return (taken, Err(error)),
            }
            self.sent_records += 1;
            self.cut_records += self.encoded.cut;
            self.begun = 0;
            taken = end;
        }
        self.partial.clear();
        (taken, Ok(()))
    }

    /// Sends the datagrams of one record. Returns false if there is no room now.
    fn send_datagrams(&mut self, record: &[u8]) -> io::Result<bool> {
        let Some(link) = &mut self.link else { return Ok(false) };
        'again: loop {
            let encoded = &mut self.encoded;
            encoded.bytes.clear();
            encoded.ends.clear();
            encoded.cut = 0;
            self.form.encode(record, Carrier::Datagrams { most: self.most }, self.sent_records, encoded);
            while let Some(end) = encoded.ends.get(self.begun) {
                let from = self.begun.checked_sub(1).map_or(0, |last| encoded.ends[last]);
                let datagram = &encoded.bytes[from..*end];
                let error = match link.send(datagram) {
                    Ok(_) => {
                        self.begun += 1;
                        continue;
                    }
                    Err(error) => error,
                };
                let is_long = matches!(error.raw_os_error(), Some(libc::EMSGSIZE | libc::ENOBUFS));
                match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(false),
                    _ if is_long && F::PASSES_FILES => {
                        super::memory_file::send(link.descriptor(), datagram)?;
                        self.begun += 1;
                    }
                    // The socket accepts only shorter datagrams.
                    _ if error.raw_os_error() == Some(libc::EMSGSIZE) && datagram.len() > MIN_DATAGRAM_BYTES => {
                        self.most = (datagram.len() / 2).max(MIN_DATAGRAM_BYTES);
                        self.begun = 0;
                        continue 'again;
                    }
                    _ => return Err(error),
                }
            }
            return Ok(true);
        }
    }
}

impl<F: RecordForm> Sink for PeerSink<F> {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        for has_waited in [false, true] {
            let (taken, result) = self.send(lines);
            if let Err(error) = result {
                self.leave();
                self.turn = self.turn.wrapping_add(1);
                if taken == 0 {
                    return Err(SinkError::Retry(error));
                }
                // The error is counted. If it persists, the next call reports it.
                self.trouble = Some(error);
                return Ok(taken);
            }
            if taken > 0 {
                return Ok(taken);
            }
            if !has_waited {
                self.link.iter().for_each(Link::wait);
            }
        }
        Err(SinkError::Retry(ErrorKind::WouldBlock.into()))
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.trouble.take()
    }

    fn cut_count(&self) -> u64 {
        self.cut_records
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::sink::Mark;
    use logspool_record::address::ServiceAddress;

    /// Sends records as they are. A datagram that is too long is cut.
    struct PlainForm;

    impl RecordForm for PlainForm {
        fn encode(&mut self, record: &[u8], carrier: Carrier, _: u64, out: &mut EncodedMessages) {
            let most = if let Carrier::Datagrams { most } = carrier { most } else { usize::MAX };
            out.cut += u64::from(record.len() > most);
            out.bytes.extend_from_slice(&record[..record.len().min(most)]);
            out.ends.push(out.bytes.len());
        }
    }

    fn write(sink: &mut PeerSink<PlainForm>, record: &[u8]) -> Result<usize, SinkError> {
        let marks = [Mark { end: record.len() as u32, level: 20, class: 2, member: 0, seconds: 0 }];
        sink.write(Lines { bytes: record, marks: &marks, before: 0 })
    }

    #[test]
    fn dropping_a_partially_sent_record_closes_the_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
        let mut sink = PeerSink::new(PeerAddress::Service(address), PlainForm);
        let long = vec![b'a'; 50_000_000];
        assert!(matches!(write(&mut sink, &long), Err(SinkError::Retry(_))));
        assert!(sink.begun > 0);
        while let Err(SinkError::Retry(error)) = write(&mut sink, b"next") {
            assert_eq!(ErrorKind::WouldBlock, error.kind());
        }
        drop(sink);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        listener.accept().unwrap().0.read_to_end(&mut first).unwrap();
        listener.accept().unwrap().0.read_to_end(&mut second).unwrap();

        assert!(first.len() < long.len() && first.iter().all(|byte| *byte == b'a'));
        assert_eq!(b"next", &second[..]);
    }

    #[test]
    fn datagrams_become_shorter_until_the_socket_accepts_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log").to_str().unwrap().to_owned();
        let receiver = UnixDatagram::bind(&path).unwrap();
        let mut sink = PeerSink::new(PeerAddress::Service(ServiceAddress::Unix { path }), PlainForm);
        let record = vec![b'x'; 40_000_000];
        assert_eq!(record.len(), write(&mut sink, &record).unwrap());
        let mut datagram = vec![0; record.len()];
        let length = receiver.recv(&mut datagram).unwrap();

        assert!((480..record.len()).contains(&length), "{length}");
        assert_eq!(1, sink.cut_count());
    }

    #[test]
    fn each_write_to_a_gone_receiver_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log").to_str().unwrap().to_owned();
        let receiver = UnixDatagram::bind(&path).unwrap();
        let mut sink = PeerSink::new(PeerAddress::Service(ServiceAddress::Unix { path }), PlainForm);
        write(&mut sink, b"one").unwrap();
        drop(receiver);

        assert!(matches!(write(&mut sink, b"two"), Err(SinkError::Retry(_))));
        assert!(matches!(write(&mut sink, b"two"), Err(SinkError::Retry(_))));
    }
}
