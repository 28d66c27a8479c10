//! Finished lines to an address: a datagram for each line, or a stream of lines.
//!
//! A datagram has the line without its newline. In a stream, each line ends as the handler ends it. Nothing confirms a
//! line; `transport.rs` says when it counts as written and what can be lost.

use std::io;

use super::parts::CUT_MARK;
use super::transport::{Carrier, EncodedMessages, PeerAddress, PeerSink, RecordForm};
use super::{Place, SinkInput, SinkOptions, Traits};
use crate::sink::Sink;
use logspool_record::definition::Descriptor;

crate::options! {
    /// Sends lines to an address: a datagram for each line, or a stream of lines.
    pub struct SocketOptions {
        /// `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram socket is
        /// tried first, then a stream socket.
        pub address: PeerAddress,
        /// Longest datagram. A longer line is cut, at a character, and ends with `...`. Lines of a stream are never cut.
        pub max_bytes: u32 ["bytes", 480..=65507] = Whole(65507),
    }
}

impl SinkOptions for SocketOptions {
    const KIND: &'static str = "socket";
    const TRAITS: Traits = Traits { takes: SinkInput::Lines, ..Traits::REMOTE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        let form = LineForm { max_bytes: self.max_bytes as usize };
        Ok(Box::new(PeerSink::new(self.address.clone(), form)))
    }

    fn place(&self) -> Place {
        self.address.place()
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![Self { address: PeerAddress::unix(format!("{path}.socket")), max_bytes: 65_507 }]
    }
}

/// Sends lines as they are.
#[derive(Debug)]
struct LineForm {
    max_bytes: usize,
}

impl RecordForm for LineForm {
    fn encode(&mut self, record: &[u8], carrier: Carrier, _: u64, out: &mut EncodedMessages) {
        let Carrier::Datagrams { most } = carrier else { return out.bytes.extend_from_slice(record) };
        let line = record.strip_suffix(b"\n").unwrap_or(record);
        let most = self.max_bytes.min(most);
        if line.len() <= most {
            out.bytes.extend_from_slice(line);
        } else {
            let mut end = most - CUT_MARK.len();
            // The bytes inside a character of UTF-8 have this form.
            while end > 0 && line[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            out.bytes.extend_from_slice(&line[..end]);
            out.bytes.extend_from_slice(CUT_MARK.as_bytes());
            out.cut += 1;
        }
        out.ends.push(out.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::option::OptionField;
    use crate::sink::{Lines, Mark, SinkError};
    use logspool_record::definition::OptionValue;

    fn sink(address: &str, max_bytes: u32) -> Box<dyn Sink> {
        let address = PeerAddress::from_value(&OptionValue::Text(address.to_owned())).unwrap();
        SocketOptions { address, max_bytes }.open(Descriptor::Open).unwrap()
    }

    fn write(sink: &mut dyn Sink, lines: &[&str]) -> Result<usize, SinkError> {
        let bytes = lines.concat();
        let mut end = 0;
        let marks = lines.iter().map(|line| {
            end += line.len() as u32;
            Mark { end, level: 20, class: 2, member: 0, seconds: 0 }
        });
        sink.write(Lines { bytes: bytes.as_bytes(), marks: &marks.collect::<Vec<_>>(), before: 0 })
    }

    #[test]
    fn a_datagram_is_one_line_without_its_newline_and_a_long_one_is_cut() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sink = sink(&format!("udp://{}", receiver.local_addr().unwrap()), 480);
        let long = format!("{}\n", "\u{e9}".repeat(240) + "x");
        let lines = ["one\n", "two\nlines\n", "\n", &long];

        assert_eq!(lines.concat().len(), write(sink.as_mut(), &lines).unwrap());
        let mut came = Vec::new();
        for _ in lines {
            let mut datagram = [0; 1000];
            let length = receiver.recv(&mut datagram).unwrap();
            came.push(String::from_utf8(datagram[..length].to_vec()).unwrap());
        }
        assert_eq!(["one", "two\nlines", "", &format!("{}...", "\u{e9}".repeat(238))], *came);
        assert_eq!(1, sink.cut_count());
    }

    #[test]
    fn a_stream_has_all_lines() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sink = sink(&format!("tcp://{}", listener.local_addr().unwrap()), 480);
        let long = format!("{}\n", "y".repeat(100_000));
        let lines = ["one\n", &long, "two\n"];
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        });
        let mut from = 0;
        while from < lines.len() {
            match write(sink.as_mut(), &lines[from..]) {
                Ok(mut count) => {
                    while count > 0 {
                        count -= lines[from].len();
                        from += 1;
                    }
                }
                Err(SinkError::Retry(error)) => assert_eq!(io::ErrorKind::WouldBlock, error.kind()),
                Err(error) => panic!("{error:?}"),
            }
        }
        assert_eq!(0, sink.cut_count());
        drop(sink);

        assert_eq!(lines.concat(), reader.join().unwrap());
    }

    #[test]
    fn a_full_unix_socket_keeps_the_line_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let receiver = UnixDatagram::bind(&path).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut sink = sink(&format!("unix://{}", path.display()), 480);
        let mut sent = 0;
        loop {
            match write(sink.as_mut(), &[&format!("line {sent}\n")]) {
                Ok(_) => sent += 1,
                Err(SinkError::Retry(error)) => {
                    assert_eq!(io::ErrorKind::WouldBlock, error.kind());
                    break;
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        let mut came = Vec::new();
        let mut take = || {
            let mut datagram = [0; 100];
            while let Ok(length) = receiver.recv(&mut datagram) {
                came.push(String::from_utf8(datagram[..length].to_vec()).unwrap());
            }
        };
        take();
        write(sink.as_mut(), &[&format!("line {sent}\n")]).unwrap();
        take();

        assert_eq!((0..=sent).map(|number| format!("line {number}")).collect::<Vec<_>>(), came);
    }
}
