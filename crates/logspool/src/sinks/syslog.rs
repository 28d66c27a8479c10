//! A syslog server, by RFC 5424: over UDP (RFC 5426), over TCP with octet counting (RFC 6587), over TLS (RFC 5425), or at
//! a unix socket.
//!
//! Each record is one message (`syslog/message.rs`). Over UDP and at a unix datagram socket, each message is one
//! datagram. In a stream, the length of the message precedes it, so a line end does not end a message.
//!
//! Syslog has no acks; `transport.rs` says when a record counts as written and what can be lost.

mod message;

use std::io;

use super::parts::RecordParts;
use super::transport::{Carrier, EncodedMessages, PeerAddress, PeerSink, RecordForm};
use super::{Place, SinkOptions, Traits};
use crate::sink::Sink;
use logspool_record::definition::Descriptor;
use message::{Facility, Header};

crate::options! {
    /// Sends records to a syslog server, by RFC 5424.
    pub struct SyslogOptions {
        /// `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram socket is
        /// tried first, then a stream socket; the receiver there has to read RFC 5424.
        pub address: PeerAddress,
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

impl SinkOptions for SyslogOptions {
    const KIND: &'static str = "syslog";
    const TRAITS: Traits = Traits::REMOTE;

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        let header = Header::new(self.facility, self.app_name.as_deref(), &self.sd_id);
        Ok(Box::new(PeerSink::new(self.address.clone(), SyslogForm { header, max_bytes: self.max_bytes as usize })))
    }

    fn place(&self) -> Place {
        self.address.place()
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self {
            address: PeerAddress::unix(format!("{path}.socket")),
            facility: Facility::default(),
            app_name: Some("contract".to_owned()),
            sd_id: "logspool@32473".to_owned(),
            max_bytes: 8192,
        }]
    }
}

/// Maximum bytes of a datagram, as UDP over IPv4 specifies.
const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Encodes records as messages. In a stream, the length of a message precedes it.
#[derive(Debug)]
struct SyslogForm {
    header: Header,
    max_bytes: usize,
}

impl RecordForm for SyslogForm {
    fn encode(&mut self, record: &[u8], carrier: Carrier, _: u64, out: &mut EncodedMessages) {
        let parts = RecordParts::read(record);
        let most = match carrier {
            Carrier::Stream => self.max_bytes,
            Carrier::Datagrams { most } => self.max_bytes.min(MAX_DATAGRAM_BYTES).min(most),
        };
        let (message, is_cut) = self.header.message(&parts, most);
        if carrier == Carrier::Stream {
            out.bytes.extend_from_slice(message.len().to_string().as_bytes());
            out.bytes.push(b' ');
        }
        out.bytes.extend_from_slice(message.as_bytes());
        out.ends.push(out.bytes.len());
        out.cut += u64::from(is_cut);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::option::OptionField;
    use crate::sink::{Lines, Mark, SinkError};
    use crate::sinks::parts::tests::entry;
    use logspool_record::definition::OptionValue;

    fn sink(address: &str, max_bytes: u32) -> Box<dyn Sink> {
        let address = PeerAddress::from_value(&OptionValue::Text(address.to_owned())).unwrap();
        let sd_id = "logspool@32473".to_owned();
        let options = SyslogOptions { address, facility: Facility::default(), app_name: None, sd_id, max_bytes };
        options.open(Descriptor::Open).unwrap()
    }

    fn write(sink: &mut dyn Sink, entry: &[u8]) -> Result<usize, SinkError> {
        let marks = [Mark { end: entry.len() as u32, level: 20, class: 2, member: 0, seconds: 0 }];
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
    fn a_message_cut_by_the_end_of_its_connection_is_sent_whole_over_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = sink(&format!("tcp://{}", listener.local_addr().unwrap()), 1 << 20);
        let long = |letter: &str| entry(&[("message", &letter.repeat(100_000))]);
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
    fn no_message_is_sent_over_a_connection_closed_by_the_receiver() {
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
    fn a_unix_socket_can_be_a_stream() {
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
