//! Fluent Forward v1, server side: Message, Forward, PackedForward and CompressedPackedForward.
//!
//! A [`Scanner`] finds the end of a message in the bytes of a connection. [`read`] parses the message, and
//! [`Message::records`] reads its entries one by one, in bounded memory. An entry may have the keys of JSON lines
//! (`json_line.rs`), and `log`, which Docker sends. If a record has no logger, the tag is its logger.
//!
//! logspool's own client uses this protocol too, with a `chunk` that [`ChunkId`] parses.

mod chunk_id;
mod damage;
mod entry;
mod group;
pub mod handshake;
mod inflater;
mod long;
mod msgpack;
mod problem;
mod records;

use std::borrow::Cow;

use super::convert;
use crate::record::Record;

pub use chunk_id::ChunkId;
pub use damage::DamagedEntry;
use entry::{Entry, EntryReader};
use inflater::{Compression, ZSTD_WINDOW_LOG};
use logspool_record::msgpack::push_text;
pub use long::{LongMessage, MessageEnd};
use msgpack::{Token, TokenReader};
pub use problem::{ForwardError, ForwardProblem};
pub use records::{ReadProgress, RecordFlow, Records};

/// Limits of a message.
#[derive(Debug, Clone, Copy)]
pub struct ForwardLimits {
    /// Maximum bytes of a message as sent.
    pub frame: usize,
    /// Maximum bytes of one compressed entry, decompressed.
    pub expanded_entry: usize,
    /// Maximum number of values in an entry.
    pub items: usize,
}

impl Default for ForwardLimits {
    /// 10 MiB as sent, 16 MiB for an entry, 10,000 values in an entry. The entries of a message are read in parts, so
    /// their sum has no limit.
    ///
    /// Chosen: Fluentd sends messages of up to 8 MiB from a buffer in memory, Fluent Bit of up to 2 MiB.
    fn default() -> Self {
        Self { frame: 10 << 20, expanded_entry: 16 << 20, items: 10_000 }
    }
}

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScannedFrame {
    /// The message is not complete yet.
    Incomplete,
    /// The message is complete.
    Complete {
        /// Length of the message in bytes.
        length: usize,
    },
}

/// Finds the end of a message while its bytes arrive. Looks at each byte once.
#[derive(Debug, Clone, Copy)]
pub struct Scanner {
    at: usize,
    values: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { at: 0, values: 1 }
    }
}

impl Scanner {
    /// Scans the bytes of a message received until now; `bytes` begins with the message and may contain more after it.
    /// After a complete message the scanner starts again with the next one.
    ///
    /// # Errors
    ///
    /// The message is longer than [`ForwardLimits::frame`], or is not a Forward message. The start of the next message
    /// is unknown then.
    pub fn frame(&mut self, bytes: &[u8], limits: &ForwardLimits) -> Result<ScannedFrame, ForwardError> {
        let mut reader = TokenReader::from(bytes, self.at);
        while self.values > 0 {
            match reader.token() {
                Ok(token) if self.at == 0 && !matches!(token, Token::List(_) | Token::Nil) => {
                    return Err(ForwardProblem::Unexpected("a list").at(0));
                }
                Ok(token) => self.values = self.values - 1 + token.values(),
                Err(ForwardProblem::Truncated) if bytes.len().max(self.at + reader.announced()) < limits.frame => {
                    return Ok(ScannedFrame::Incomplete);
                }
                Err(ForwardProblem::Truncated) => return Err(ForwardProblem::TooLong(limits.frame).at(self.at)),
                Err(problem) => return Err(problem.at(self.at)),
            }
            self.at = reader.at();
            // Each missing value takes at least one byte, so the message would exceed the limit.
            if self.values > limits.frame.saturating_sub(self.at) as u64 {
                return Err(ForwardProblem::TooLong(limits.frame).at(self.at));
            }
        }
        let length = self.at;
        *self = Self::default();
        if length > limits.frame {
            return Err(ForwardProblem::TooLong(limits.frame).at(length));
        }
        Ok(ScannedFrame::Complete { length })
    }
}

/// A parsed message.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// The tag, by which senders route messages.
    pub tag: Cow<'a, str>,
    /// The id of the message if the sender wants an ack.
    pub chunk: Option<Cow<'a, str>>,
    /// Number of entries as given by the sender.
    pub size: Option<u64>,
    /// True for the last message of a stream. Only logspool's own client sends it.
    pub end: bool,
    ack: Option<&'a [u8]>,
    entries: EntryBytes<'a>,
    limits: ForwardLimits,
}

#[derive(Debug, Clone)]
enum EntryBytes<'a> {
    /// A single entry without a list around it.
    Bare(TokenReader<'a>),
    /// A list with this number of entries.
    List(TokenReader<'a>, u32),
    /// A byte string of entries, without their number.
    Packed(&'a [u8]),
    /// Entries in the form of `Packed`, compressed.
    Compressed(Compression, &'a [u8]),
}

/// Parses a message whose end a [`Scanner`] has found. The entries are only read by [`Message::records`].
///
/// # Errors
///
/// The frame is not a Forward message, or its compression is unknown.
pub fn read<'a>(frame: &'a [u8], limits: &ForwardLimits) -> Result<Message<'a>, ForwardError> {
    let mut reader = TokenReader::new(frame);
    let mut options = MessageOptions::default();
    let result = parts(&mut reader, &mut options);
    let (tag, mut entries) = result.map_err(|problem| problem.at(reader.at()))?;
    if let EntryBytes::Packed(packed) = entries {
        match options.compressed.as_deref() {
            None | Some("text") => {}
            Some("gzip") => entries = EntryBytes::Compressed(Compression::Gzip, packed),
            Some("zstd") => entries = EntryBytes::Compressed(Compression::Zstd, packed),
            Some(other) => return Err(ForwardProblem::Compression(other.to_owned()).at(0)),
        }
    }
    let MessageOptions { chunk, ack, size, end, .. } = options;
    Ok(Message { tag, chunk, size, end, ack, entries, limits: *limits })
}

/// Reads only the id of a message that [`read`] refuses. By the id the caller can acknowledge the message, so that the
/// sender does not repeat it for ever. The result has no records. `None`: the id cannot be read either.
pub fn read_id<'a>(frame: &'a [u8], limits: &ForwardLimits) -> Option<Message<'a>> {
    let mut options = MessageOptions::default();
    let (tag, _) = parts(&mut TokenReader::new(frame), &mut options).ok()?;
    let MessageOptions { chunk, ack, size, end, .. } = options;
    Some(Message { tag, chunk, size, end, ack, entries: EntryBytes::Packed(b""), limits: *limits })
}

fn parts<'a>(
    reader: &mut TokenReader<'a>,
    options: &mut MessageOptions<'a>,
) -> Result<(Cow<'a, str>, EntryBytes<'a>), ForwardProblem> {
    let mut left = match reader.token()? {
        // Fluentd sends nil as a heartbeat.
        Token::Nil if reader.is_at_end() => return Ok((Cow::Borrowed(""), EntryBytes::Packed(b""))),
        Token::List(count @ 2..=4) => count,
        _ => return Err(ForwardProblem::Unexpected("a list of two to four values")),
    };
    let Token::Text(tag) = reader.token()? else { return Err(ForwardProblem::Unexpected("a tag")) };
    let begin = *reader;
    let entries = match reader.token()? {
        Token::Text(packed) => EntryBytes::Packed(packed),
        list @ Token::List(count) => {
            let begin = *reader;
            reader.skip(list.values())?;
            EntryBytes::List(begin, count)
        }
        // The value is the time of a single entry, so the map of the entry follows.
        time if left > 2 => {
            reader.skip(time.values() + 1)?;
            left -= 1;
            EntryBytes::Bare(begin)
        }
        _ => return Err(ForwardProblem::Unexpected("entries")),
    };
    if left > 2 {
        options.read(reader)?;
    }
    if left > 3 || !reader.is_at_end() {
        return Err(ForwardProblem::Unexpected("the end of the message"));
    }
    Ok((convert::lossy(tag), entries))
}

#[derive(Default)]
struct MessageOptions<'a> {
    chunk: Option<Cow<'a, str>>,
    ack: Option<&'a [u8]>,
    size: Option<u64>,
    end: bool,
    compressed: Option<Cow<'a, str>>,
}

impl<'a> MessageOptions<'a> {
    fn read(&mut self, reader: &mut TokenReader<'a>) -> Result<(), ForwardProblem> {
        let count = match reader.token()? {
            Token::Nil => 0,
            Token::Map(count) => count,
            _ => return Err(ForwardProblem::Unexpected("a map of options")),
        };
        for _ in 0..count {
            let name = reader.token()?;
            reader.skip(name.values())?;
            let begin = reader.at();
            match (name, reader.token()?) {
                (Token::Text(b"chunk"), Token::Text(id)) => {
                    self.chunk = Some(convert::lossy(id));
                    self.ack = Some(reader.since(begin));
                }
                (Token::Text(b"size"), Token::Int(size)) => self.size = u64::try_from(size).ok(),
                (Token::Text(b"end"), Token::Bool(end)) => self.end = end,
                (Token::Text(b"compressed"), Token::Text(name)) => self.compressed = Some(convert::lossy(name)),
                (_, other) => reader.skip(other.values())?,
            }
        }
        Ok(())
    }
}

/// Adds to an ack the reason why none of its records can ever be stored.
pub fn dropped_ack(ack: Vec<u8>, why: &str) -> Vec<u8> {
    let mut answer = ack;
    // A map with two entries.
    answer[0] = 0x82;
    push_text(&mut answer, b"dropped");
    push_text(&mut answer, why.as_bytes());
    answer
}

impl<'a> Message<'a> {
    /// The ack that the sender expects once the records are safe. The id is returned unchanged. `None`: the sender
    /// expects no ack.
    pub fn ack(&self) -> Option<Vec<u8>> {
        self.ack.map(|id| [b"\x81\xa3ack", id].concat())
    }

    /// True if the entries are compressed.
    pub fn is_compressed(&self) -> bool {
        matches!(self.entries, EntryBytes::Compressed(..))
    }

    /// Bytes of memory that decompression takes in addition to its buffer; 0 if the entries are not compressed.
    pub fn inflater_bytes(&self) -> usize {
        match self.entries {
            // A window of 32 KiB, and tables.
            EntryBytes::Compressed(Compression::Gzip, _) => 64 * 1024,
            // The window, and its tables and buffers of less than 1 MiB.
            EntryBytes::Compressed(Compression::Zstd, _) => (1 << ZSTD_WINDOW_LOG) + (1 << 20),
            _ => 0,
        }
    }

    /// Reads the records of the message, except the first `skip`. `buffer` holds decompressed entries, a part at a
    /// time. It never grows beyond `most_buffer` bytes.
    pub fn records<'b>(&'b self, buffer: &'b mut Vec<u8>, most_buffer: usize, skip: usize) -> Records<'b> {
        Records::new(self, buffer, most_buffer, skip)
    }
}

/// Reads one entry of a message from our own client.
///
/// # Errors
///
/// The bytes are not exactly one entry.
pub fn entry<'a>(bytes: &'a [u8], limits: &ForwardLimits) -> Result<Record<'a>, ForwardError> {
    let mut reader = TokenReader::new(bytes);
    let entry = EntryReader { is_bare: false, keeps_tag: false, tag: "", items: limits.items };
    let entry = entry.read(&mut reader).map_err(|problem| problem.at(reader.at()))?;
    match entry {
        Entry::Record(record) if reader.is_at_end() => Ok(record),
        Entry::GroupStart(_) | Entry::GroupEnd => Err(ForwardProblem::Unexpected("a record").at(reader.at())),
        Entry::Record(_) => Err(ForwardProblem::Unexpected("the end of the entry").at(reader.at())),
    }
}
