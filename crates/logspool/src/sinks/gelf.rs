//! GELF 1.1, as Graylog, Logstash and others read it: over UDP in chunks, over TCP and TLS with a NUL after each message.
//!
//! Each record is one message (`gelf/message.rs`). A message that one datagram cannot hold is sent in chunks: two bytes of
//! magic, eight of a message id, the number of the chunk and the number of chunks. The format allows 128 chunks. A
//! longer message is made of cut texts, and counted as cut.
//!
//! GELF has no acks; `transport.rs` says when a record counts as written and what can be lost.

mod message;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::parts::RecordParts;
use super::transport::{Carrier, EncodedMessages, PeerAddress, PeerSink, RecordForm};
use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue};

crate::options! {
    /// Sends records as GELF 1.1 messages, to Graylog and others.
    pub struct GelfOptions {
        /// `udp://host:port`, `tcp://host:port`, `tls://host:port` or `unix:///path`. At a unix path a datagram socket is
        /// tried first, then a stream socket.
        pub address: PeerAddress,
        /// Longest datagram; a longer message is sent in up to 128 chunks. Use 1,420 where datagrams leave the local
        /// network.
        pub chunk_bytes: u32 ["bytes", 480..=65507] = Whole(8192),
        /// How messages in datagrams are compressed. Streams are never compressed.
        pub compression: GelfCompression = Text("none"),
        /// Longest message before compression. Texts of a longer one are cut and end with `...`. Graylog accepts 2 MiB.
        pub max_bytes: u32 ["bytes", 1024..=16777216] = Whole(2097152),
    }
}

impl SinkOptions for GelfOptions {
    const KIND: &'static str = "gelf";
    const TRAITS: Traits = Traits::REMOTE;

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        let form = GelfForm {
            chunk_bytes: self.chunk_bytes as usize,
            compression: self.compression,
            max_bytes: self.max_bytes as usize,
            ids: RandomState::new(),
        };
        Ok(Box::new(PeerSink::new(self.address.clone(), form)))
    }

    fn place(&self) -> Place {
        self.address.place()
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        // The contract tests look for texts in the datagrams: no message is compressed or in chunks.
        let address = PeerAddress::unix(format!("{path}.socket"));
        vec![Self { address, chunk_bytes: 65_507, compression: GelfCompression::None, max_bytes: 1 << 20 }]
    }
}

/// How messages in datagrams are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GelfCompression {
    /// Not at all.
    None,
    /// By gzip.
    Gzip,
    /// By zlib.
    Zlib,
}

/// Names of the compressions, in their order.
const COMPRESSIONS: [&str; 3] = ["none", "gzip", "zlib"];

impl OptionField for GelfCompression {
    const SHAPE: OptionShape = OptionShape::Choice(&COMPRESSIONS);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match &*String::from_value(value)? {
            "none" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            "zlib" => Ok(Self::Zlib),
            other => Err(format!("there is no compression {other:?}")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(COMPRESSIONS[*self as usize].to_owned())
    }
}

/// Bytes before the part of a message in each chunk.
const CHUNK_HEAD_BYTES: usize = 12;

/// Maximum number of chunks of a message, as GELF specifies.
const MAX_CHUNKS: usize = 128;

/// Encodes records as messages.
#[derive(Debug)]
struct GelfForm {
    chunk_bytes: usize,
    compression: GelfCompression,
    max_bytes: usize,
    /// Makes the ids of messages.
    ids: RandomState,
}

impl RecordForm for GelfForm {
    fn encode(&mut self, record: &[u8], carrier: Carrier, number: u64, out: &mut EncodedMessages) {
        let parts = RecordParts::read(record);
        let Carrier::Datagrams { most } = carrier else {
            let (message, is_cut) =
                message::fitting(&parts, |message| (message.len() <= self.max_bytes).then_some(message));
            out.bytes.extend_from_slice(&message);
            out.bytes.push(0);
            out.cut += u64::from(is_cut);
            return;
        };
        let chunk_bytes = self.chunk_bytes.min(most);
        let most = MAX_CHUNKS * (chunk_bytes - CHUNK_HEAD_BYTES);
        let (message, is_cut) = message::fitting(&parts, |message| {
            let sent = if message.len() <= self.max_bytes { self.compressed(message) } else { return None };
            (sent.len() <= most).then_some(sent)
        });
        out.cut += u64::from(is_cut);
        if message.len() <= chunk_bytes {
            out.bytes.extend_from_slice(&message);
            out.ends.push(out.bytes.len());
            return;
        }
        // A message that is sent again after a lost connection keeps its id.
        let id = self.ids.hash_one((number, record));
        let pieces = message.chunks(chunk_bytes - CHUNK_HEAD_BYTES);
        let count = pieces.len() as u8;
        for (index, piece) in pieces.enumerate() {
            out.bytes.extend_from_slice(&[0x1e, 0x0f]);
            out.bytes.extend_from_slice(&id.to_be_bytes());
            out.bytes.extend_from_slice(&[index as u8, count]);
            out.bytes.extend_from_slice(piece);
            out.ends.push(out.bytes.len());
        }
    }
}

impl GelfForm {
    fn compressed(&self, message: Vec<u8>) -> Vec<u8> {
        // Writing to a vector never fails.
        let compressed = match self.compression {
            GelfCompression::None => return message,
            GelfCompression::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&message).and_then(|()| encoder.finish())
            }
            GelfCompression::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&message).and_then(|()| encoder.finish())
            }
        };
        compressed.unwrap_or(message)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::{GzDecoder, ZlibDecoder};
    use serde_json::Value;

    use super::*;
    use crate::sinks::parts::tests::entry;

    fn form(chunk_bytes: usize, compression: GelfCompression) -> GelfForm {
        GelfForm { chunk_bytes, compression, max_bytes: 1 << 20, ids: RandomState::new() }
    }

    fn datagrams(form: &mut GelfForm, record: &[u8], number: u64) -> (Vec<Vec<u8>>, u64) {
        let mut out = EncodedMessages::default();
        form.encode(record, Carrier::Datagrams { most: 65_507 }, number, &mut out);
        let starts = [0].into_iter().chain(out.ends.iter().copied());
        (starts.zip(&out.ends).map(|(from, end)| out.bytes[from..*end].to_vec()).collect(), out.cut)
    }

    /// Joins the chunks of a message.
    fn joined(chunks: &[Vec<u8>]) -> Vec<u8> {
        let mut message = Vec::new();
        for (index, chunk) in chunks.iter().enumerate() {
            assert_eq!([0x1e, 0x0f], chunk[..2]);
            assert_eq!(chunks[0][2..10], chunk[2..10]);
            assert_eq!([index as u8, chunks.len() as u8], chunk[10..12]);
            message.extend_from_slice(&chunk[12..]);
        }
        message
    }

    #[test]
    fn a_long_message_is_sent_in_chunks_with_one_id() {
        let text = "0123456789".repeat(1000);
        let record = entry(&[("message", &text)]);
        let mut form = form(1420, GelfCompression::None);
        let (chunks, cut) = datagrams(&mut form, &record, 7);

        assert_eq!((8, 0), (chunks.len(), cut));
        assert!(chunks.iter().all(|chunk| chunk.len() <= 1420));
        let message: Value = serde_json::from_slice(&joined(&chunks)).unwrap();
        assert_eq!(text, message["short_message"]);
        assert_eq!(chunks, datagrams(&mut form, &record, 7).0, "a message that is sent again stays the same");
        assert_ne!(chunks[0][2..10], datagrams(&mut form, &record, 8).0[0][2..10], "the next message has another id");
        let (short, _) = datagrams(&mut form, &entry(&[("message", "short")]), 0);
        assert!(short.len() == 1 && short[0].starts_with(b"{"));
    }

    #[test]
    fn compressed_messages_are_read_back() {
        let record = entry(&[("message", &"compressible ".repeat(1000))]);
        let plain = datagrams(&mut form(65_507, GelfCompression::None), &record, 0).0.remove(0);
        let gzip = datagrams(&mut form(8192, GelfCompression::Gzip), &record, 0).0.remove(0);
        let zlib = datagrams(&mut form(8192, GelfCompression::Zlib), &record, 0).0.remove(0);

        let (mut one, mut other) = (Vec::new(), Vec::new());
        GzDecoder::new(&gzip[..]).read_to_end(&mut one).unwrap();
        ZlibDecoder::new(&zlib[..]).read_to_end(&mut other).unwrap();
        assert!(one == plain && other == plain && gzip.len() < plain.len() / 10);
    }

    #[test]
    fn a_message_of_more_than_128_chunks_is_cut_and_counted() {
        let record = entry(&[("message", &"\u{e9}".repeat(100_000)), ("exception", "Traceback"), ("user", "ann")]);
        let (chunks, cut) = datagrams(&mut form(480, GelfCompression::None), &record, 0);
        let message: Value = serde_json::from_slice(&joined(&chunks)).unwrap();

        assert_eq!(1, cut);
        assert!(chunks.len() <= 128);
        assert!(message["short_message"].as_str().unwrap().ends_with("\u{e9}..."));
        assert_eq!("ann", message["_user"]);
    }

    #[test]
    fn a_stream_has_a_nul_after_each_message() {
        let mut out = EncodedMessages::default();
        let mut form = form(480, GelfCompression::Gzip);
        for text in ["one", "two\u{0}"] {
            form.encode(&entry(&[("message", text)]), Carrier::Stream, 0, &mut out);
        }
        let messages: Vec<&[u8]> = out.bytes.split_inclusive(|byte| *byte == 0).collect();

        assert_eq!(2, messages.len());
        let second: Value = serde_json::from_slice(&messages[1][..messages[1].len() - 1]).unwrap();
        assert_eq!("two\u{0}", second["short_message"]);
    }
}
