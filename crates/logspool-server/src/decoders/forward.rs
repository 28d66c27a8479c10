//! Fluent Forward v1, as servers see it: Message, Forward, PackedForward and CompressedPackedForward.
//!
//! A [`Scanner`] tells where a message ends in what a connection has sent, [`read`] takes it apart, and
//! [`Message::records`] reads its entries one after the other, in bounded memory. The keys of an entry are those that JSON lines have
//! (`json_line.rs`), and `log`, which Docker sends. A record that names no logger has the tag as its logger.
//!
//! logspool's own client sends this protocol too, with a `chunk` as [`ChunkId`] reads it.

mod chunk_id;
mod entry;
pub mod handshake;
mod inflating;
mod msgpack;
mod problem;
mod records;

use std::borrow::Cow;

use super::words;
use crate::record::Record;

pub use chunk_id::ChunkId;
use entry::Entry;
use msgpack::{Reader, Token};
pub use problem::{ForwardError, Problem};
pub use records::{Next, Progress, Records};

/// What a message may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a message as it is sent.
    pub frame: usize,
    /// Bytes of its entries, decompressed.
    pub expanded: usize,
    /// Bytes of the rows of its records (`batch::ROW_BYTES`), and of its tag, as often as it is the logger or a field of one.
    pub repeated: usize,
    /// Values in an entry.
    pub items: usize,
}

impl Default for Limits {
    /// 10 MiB as it is sent, 16 MiB decompressed, 64 MiB of rows, 10,000 values in an entry.
    ///
    /// Chosen: Fluentd sends up to 8 MiB from a buffer in memory, Fluent Bit 2 MiB. The rows are those of 400,000 records.
    fn default() -> Self {
        Self { frame: 10 << 20, expanded: 16 << 20, repeated: 64 << 20, items: 10_000 }
    }
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// More of it is needed.
    Incomplete,
    /// It is the first so many bytes.
    Complete {
        /// The length of the message.
        length: usize,
    },
}

/// Finds the end of a message while it comes in, and looks at each byte once.
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
    /// Looks at all bytes of a message that have come so far, and at what may come behind it. After a complete message
    /// the scanner begins with the next one.
    ///
    /// # Errors
    ///
    /// It is longer than [`Limits::frame`], or no Forward message. What follows cannot be told any more.
    pub fn frame(&mut self, bytes: &[u8], limits: &Limits) -> Result<Frame, ForwardError> {
        let mut reader = Reader::from(bytes, self.at);
        while self.values > 0 {
            match reader.token() {
                Ok(token) if self.at == 0 && !matches!(token, Token::List(_) | Token::Nil) => {
                    return Err(Problem::Unexpected("a list").at(0));
                }
                Ok(token) => self.values = self.values - 1 + token.values(),
                Err(Problem::Truncated) if bytes.len().max(self.at + reader.announced()) < limits.frame => {
                    return Ok(Frame::Incomplete);
                }
                Err(Problem::Truncated) => return Err(Problem::TooLong(limits.frame).at(self.at)),
                Err(problem) => return Err(problem.at(self.at)),
            }
            self.at = reader.at();
            // Each value is a byte at least.
            if self.values > limits.frame.saturating_sub(self.at) as u64 {
                return Err(Problem::TooLong(limits.frame).at(self.at));
            }
        }
        let length = self.at;
        *self = Self::default();
        if length > limits.frame {
            return Err(Problem::TooLong(limits.frame).at(length));
        }
        Ok(Frame::Complete { length })
    }
}

/// A message.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// Where the sender wants it to go.
    pub tag: Cow<'a, str>,
    /// Its id, where the sender wants an ack.
    pub chunk: Option<Cow<'a, str>>,
    /// How many entries the sender says it has.
    pub size: Option<u64>,
    /// Whether it ends its stream. Only logspool's own client says so.
    pub end: bool,
    ack: Option<&'a [u8]>,
    entries: Entries<'a>,
    limits: Limits,
}

#[derive(Debug, Clone)]
enum Entries<'a> {
    /// The only one, without a list around it.
    Bare(Reader<'a>),
    /// So many.
    List(Reader<'a>, u32),
    /// As many as there are.
    Packed(&'a [u8]),
    /// The same, compressed.
    Gzip(&'a [u8]),
}

/// Reads a message whose end a [`Scanner`] has found. Its entries are read by [`Message::records`] only.
///
/// # Errors
///
/// It is no Forward message, or compressed in an unknown way.
pub fn read<'a>(frame: &'a [u8], limits: &Limits) -> Result<Message<'a>, ForwardError> {
    let mut reader = Reader::new(frame);
    let mut options = Options::default();
    let result = parts(&mut reader, &mut options);
    let (tag, mut entries) = result.map_err(|problem| problem.at(reader.at()))?;
    if let Entries::Packed(packed) = entries {
        match options.compressed.as_deref() {
            None | Some("text") => {}
            Some("gzip") => entries = Entries::Gzip(packed),
            Some(other) => return Err(Problem::Compression(other.to_owned()).at(0)),
        }
    }
    let Options { chunk, ack, size, end, .. } = options;
    Ok(Message { tag, chunk, size, end, ack, entries, limits: *limits })
}

/// What can be told of a message that [`read`] cannot read: its id, so that its sender need not send it again and again.
/// It has no records. `None`: not even that.
pub fn read_id<'a>(frame: &'a [u8], limits: &Limits) -> Option<Message<'a>> {
    let mut options = Options::default();
    let (tag, _) = parts(&mut Reader::new(frame), &mut options).ok()?;
    let Options { chunk, ack, size, end, .. } = options;
    Some(Message { tag, chunk, size, end, ack, entries: Entries::Packed(b""), limits: *limits })
}

fn parts<'a>(reader: &mut Reader<'a>, options: &mut Options<'a>) -> Result<(Cow<'a, str>, Entries<'a>), Problem> {
    let mut left = match reader.token()? {
        // What Fluentd takes for a heartbeat.
        Token::Nil if reader.is_at_end() => return Ok((Cow::Borrowed(""), Entries::Packed(b""))),
        Token::List(count @ 2..=4) => count,
        _ => return Err(Problem::Unexpected("a list of two to four values")),
    };
    let Token::Text(tag) = reader.token()? else { return Err(Problem::Unexpected("a tag")) };
    let begin = *reader;
    let entries = match reader.token()? {
        Token::Text(packed) => Entries::Packed(packed),
        list @ Token::List(count) => {
            let begin = *reader;
            reader.skip(list.values())?;
            Entries::List(begin, count)
        }
        // A time: the map comes next.
        time if left > 2 => {
            reader.skip(time.values() + 1)?;
            left -= 1;
            Entries::Bare(begin)
        }
        _ => return Err(Problem::Unexpected("entries")),
    };
    if left > 2 {
        options.read(reader)?;
    }
    if left > 3 || !reader.is_at_end() {
        return Err(Problem::Unexpected("the end of the message"));
    }
    Ok((words::lossy(tag), entries))
}

#[derive(Default)]
struct Options<'a> {
    chunk: Option<Cow<'a, str>>,
    ack: Option<&'a [u8]>,
    size: Option<u64>,
    end: bool,
    compressed: Option<Cow<'a, str>>,
}

impl<'a> Options<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), Problem> {
        let count = match reader.token()? {
            Token::Nil => 0,
            Token::Map(count) => count,
            _ => return Err(Problem::Unexpected("a map of options")),
        };
        for _ in 0..count {
            let name = reader.token()?;
            reader.skip(name.values())?;
            let begin = reader.at();
            match (name, reader.token()?) {
                (Token::Text(b"chunk"), Token::Text(id)) => {
                    self.chunk = Some(words::lossy(id));
                    self.ack = Some(reader.since(begin));
                }
                (Token::Text(b"size"), Token::Int(size)) => self.size = u64::try_from(size).ok(),
                (Token::Text(b"end"), Token::Bool(end)) => self.end = end,
                (Token::Text(b"compressed"), Token::Text(name)) => self.compressed = Some(words::lossy(name)),
                (_, other) => reader.skip(other.values())?,
            }
        }
        Ok(())
    }
}

impl<'a> Message<'a> {
    /// What the sender waits for once the records are safe; `None`: it waits for nothing. The id goes back as it came.
    pub fn ack(&self) -> Option<Vec<u8>> {
        self.ack.map(|id| [b"\x81\xa3ack", id].concat())
    }

    /// Whether its entries are compressed.
    pub fn is_compressed(&self) -> bool {
        matches!(self.entries, Entries::Gzip(_))
    }

    /// Reads its records from the one after the first `skip` of them. Where they are compressed, `buffer` holds some of
    /// them at a time; it never grows beyond `most_buffer` bytes.
    pub fn records<'b>(&'b self, buffer: &'b mut Vec<u8>, most_buffer: usize, skip: usize) -> Records<'b> {
        Records::new(self, buffer, most_buffer, skip)
    }
}

/// Reads one entry of a message that our own client made.
///
/// # Errors
///
/// It is none, or more than one.
pub fn entry<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Record<'a>, ForwardError> {
    let mut reader = Reader::new(bytes);
    let entry = Entry { is_bare: false, keeps_tag: false, tag: "", items: limits.items };
    let (record, _) = entry.read(&mut reader).map_err(|problem| problem.at(reader.at()))?;
    match reader.is_at_end() {
        true => Ok(record),
        false => Err(Problem::Unexpected("the end of the entry").at(reader.at())),
    }
}
