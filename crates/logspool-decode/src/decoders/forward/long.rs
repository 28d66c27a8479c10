//! A message that is too long to be received as a whole, or that is damaged: its entries are read while they arrive.
//!
//! The options of a message, with its id, come after its entries. So the compression is known by the first bytes of the
//! entries, and whether the sender wants an ack only at the end.

use std::io;

use super::damage::EntrySearch;
use super::entry::EntryReader;
use super::msgpack::{Token, TokenReader};
use super::{EntryBytes, ForwardLimits, ForwardProblem, Message, MessageOptions};
use crate::decoders::convert::lossy;
use crate::decoders::inflate::Coding;
use crate::decoders::stream_inflater::StreamInflater;

/// Bytes of entries that are decoded together. Chosen: some thousand records, so that the cost of handing them over is
/// small.
const PIECE_BYTES: usize = 256 * 1024;

/// The entries of a message while they arrive.
#[derive(Debug)]
pub struct LongMessage {
    tag: String,
    /// Number of values of the message after its entries: 0, or 1 for the options.
    after: u32,
    source: LongSource,
    /// Bytes of entries that no [`Self::piece`] has returned.
    entries: Vec<u8>,
    /// Why the entries cannot be decompressed any further.
    problem: Option<io::Error>,
    /// Maximum bytes of one entry.
    max_entry: usize,
    items: usize,
}

#[derive(Debug)]
enum LongSource {
    /// A list with this number of entries left.
    List(u32),
    /// Packed entries, of which this number of bytes has not arrived.
    Packed(usize),
    /// Packed entries of which nothing has arrived, so that their compression is unknown.
    Unknown(usize),
    /// Compressed entries.
    Compressed(usize, Box<StreamInflater>),
    /// Entries that cannot be decompressed any further.
    Failed(usize),
}

/// The end of a message, after its entries.
#[derive(Debug)]
pub struct MessageEnd {
    /// The ack that the sender wants.
    pub ack: Option<Vec<u8>>,
    /// Its length in bytes.
    pub length: usize,
}

impl LongMessage {
    /// Reads the begin of a message. Returns the length of the begin, too. `None`: it is not the begin of a message
    /// with several entries.
    pub fn begin(bytes: &[u8], max_entry: usize, limits: &ForwardLimits) -> Option<(Self, usize)> {
        let mut reader = TokenReader::new(bytes);
        let Ok(Token::List(values @ 2..=3)) = reader.token() else { return None };
        let Ok(Token::Text(tag)) = reader.token() else { return None };
        let source = match { reader }.token() {
            Ok(Token::List(count)) => {
                reader.token().ok()?;
                LongSource::List(count)
            }
            _ => {
                let (header, length) = text_header(reader.rest())?;
                reader.advance(header);
                LongSource::Unknown(length)
            }
        };
        let (tag, after) = (lossy(tag).into_owned(), values - 2);
        let long = Self { tag, after, source, entries: Vec::new(), problem: None, max_entry, items: limits.items };
        Some((long, reader.at()))
    }

    /// True if all entries have arrived.
    pub fn has_ended(&self) -> bool {
        matches!(
            self.source,
            LongSource::List(0)
                | LongSource::Packed(0)
                | LongSource::Unknown(0)
                | LongSource::Compressed(0, _)
                | LongSource::Failed(0)
        )
    }

    /// Takes bytes of the message, and returns their number. 0: more bytes are needed, or [`Self::piece`] has to be
    /// called before.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        if self.entries.len() >= self.max_entry {
            return 0;
        }
        match &mut self.source {
            LongSource::List(_) => self.feed_list(bytes),
            LongSource::Packed(left) | LongSource::Failed(left) => {
                let taken = bytes.len().min(*left).min(PIECE_BYTES);
                self.entries.extend_from_slice(&bytes[..taken]);
                *left -= taken;
                taken
            }
            LongSource::Unknown(left) => {
                let left = *left;
                if bytes.len() < left.min(4) {
                    return 0;
                }
                let coding = match bytes {
                    [0x1F, 0x8B, ..] => Some(Coding::Gzip),
                    [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Coding::Zstd),
                    _ => None,
                };
                self.source = match coding.map(StreamInflater::new) {
                    Some(Ok(inflater)) => LongSource::Compressed(left, Box::new(inflater)),
                    Some(Err(error)) => {
                        self.problem = Some(error);
                        LongSource::Failed(left)
                    }
                    None => LongSource::Packed(left),
                };
                self.feed(bytes)
            }
            LongSource::Compressed(left, inflater) => {
                let mut taken = 0;
                let mut rest = &bytes[..bytes.len().min(*left)];
                while !rest.is_empty() && self.entries.len() < PIECE_BYTES {
                    match inflater.push(rest, &mut self.entries) {
                        Ok(used) => {
                            rest = &rest[used..];
                            *left -= used;
                            taken += used;
                        }
                        Err(error) => {
                            self.problem = Some(error);
                            self.source = LongSource::Failed(*left);
                            return taken;
                        }
                    }
                }
                if *left == 0
                    && let Err(error) = inflater.end(&mut self.entries)
                {
                    self.problem = Some(error);
                    self.source = LongSource::Failed(0);
                }
                taken
            }
        }
    }

    /// Returns the reason once if the entries cannot be decompressed any further. [`Self::rest`] has the entries before
    /// it; the pieces after it are bytes as they were sent.
    pub fn problem(&mut self) -> Option<io::Error> {
        self.problem.take()
    }

    /// Takes the next complete entries of a list.
    fn feed_list(&mut self, bytes: &[u8]) -> usize {
        let is_full = bytes.len() >= self.max_entry;
        let LongSource::List(left) = &mut self.source else { return 0 };
        let (length, count) = walk(bytes, *left, self.items, (EntryForm::Any, is_full));
        // The options are before the end of a list that has lost entries.
        let is_end = count == 0 && matches!(bytes.first(), Some(0x80..=0x8F | 0xDE | 0xDF));
        *left = if is_end { 0 } else { left.saturating_sub(count) };
        self.entries.extend_from_slice(&bytes[..length]);
        length
    }

    /// The next complete entries, packed. `None`: more bytes are needed.
    pub fn piece(&mut self) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let is_whole = self.has_ended() || matches!(self.source, LongSource::List(_));
        let length = match is_whole {
            true if self.entries.len() <= self.max_entry => self.entries.len(),
            _ => walk(&self.entries, u32::MAX, self.items, (EntryForm::List, self.entries.len() >= self.max_entry)).0,
        };
        let length = if length == 0 && is_whole { self.entries.len() } else { length };
        (length > 0).then(|| self.entries.drain(..length).collect())
    }

    /// Returns the bytes of entries that have not been returned, for a message that is cut off.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.entries)
    }

    /// True if the entries cannot be decompressed any further: pieces are bytes as they were sent.
    pub fn has_failed(&self) -> bool {
        matches!(self.source, LongSource::Failed(_))
    }

    /// A message with a piece as its entries.
    pub fn message<'a>(&'a self, piece: &'a [u8], limits: &ForwardLimits) -> Message<'a> {
        Message {
            tag: (&*self.tag).into(),
            chunk: None,
            size: None,
            end: false,
            ack: None,
            entries: EntryBytes::Packed(piece),
            limits: *limits,
        }
    }

    /// Reads what follows the entries. `None`: more bytes are needed.
    ///
    /// # Errors
    ///
    /// The bytes are not the options of a message.
    pub fn end(&self, bytes: &[u8]) -> Result<Option<MessageEnd>, ForwardProblem> {
        if self.after == 0 {
            return Ok(Some(MessageEnd { ack: None, length: 0 }));
        }
        let mut reader = TokenReader::new(bytes);
        let mut options = MessageOptions::default();
        match options.read(&mut reader) {
            Ok(()) => {
                let ack = options.ack.map(|id| [b"\x81\xa3ack", id].concat());
                Ok(Some(MessageEnd { ack, length: reader.at() }))
            }
            Err(ForwardProblem::Truncated) => Ok(None),
            Err(problem) => Err(problem),
        }
    }
}

/// What counts as an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryForm {
    /// A list: another value is damage, and the next entry may begin anywhere after it.
    List,
    /// Any value but a map: the number of entries is known, and after them come the options.
    Any,
}

/// The length of the complete entries at the start, at most `most` entries, and their number. An entry that cannot be
/// read counts if the next one is found, or if no more of it is waited for.
fn walk(bytes: &[u8], most: u32, items: usize, (form, is_full): (EntryForm, bool)) -> (usize, u32) {
    let entry = EntryReader { is_bare: false, keeps_tag: true, tag: "", items };
    let (mut end, mut count) = (0, 0);
    while count < most && end < bytes.len() && end < PIECE_BYTES {
        let mut reader = TokenReader::from(bytes, end);
        let next = match ({ reader }.token(), reader.skip(1)) {
            (Ok(Token::Map(_)), _) if form == EntryForm::Any => None,
            (Ok(Token::List(_)), Ok(())) => Some(reader.at()),
            (_, Ok(())) if form == EntryForm::Any => Some(reader.at()),
            (_, Err(ForwardProblem::Truncated)) if !is_full || end > 0 => None,
            _ => {
                let rest = &bytes[end..];
                let entry_at = EntrySearch::new(&entry).and_then(|mut search| search.next(rest, &entry));
                let options_at = if form == EntryForm::Any { options_at(rest) } else { None };
                let length = entry_at.into_iter().chain(options_at).min();
                length.or((is_full && end == 0).then_some(rest.len())).map(|length| end + length)
            }
        };
        let Some(next) = next else { break };
        (end, count) = (next, count + 1);
    }
    (end, count)
}

/// The position of a map with the options of a message.
fn options_at(bytes: &[u8]) -> Option<usize> {
    let is_name = |rest: &[u8]| rest.starts_with(b"\xA5chunk") || rest.starts_with(b"\xA4size");
    (1..bytes.len()).find(|at| matches!(bytes[*at], 0x81..=0x84) && is_name(&bytes[at + 1..]))
}

/// The length of the header of a text, and of its content.
fn text_header(bytes: &[u8]) -> Option<(usize, usize)> {
    let number = |from: usize, length: usize| -> Option<usize> {
        Some(bytes.get(from..from + length)?.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    let width = match bytes.first()? {
        short @ 0xA0..=0xBF => return Some((1, usize::from(short & 0x1F))),
        0xC4 | 0xD9 => 1,
        0xC5 | 0xDA => 2,
        0xC6 | 0xDB => 4,
        _ => return None,
    };
    Some((1 + width, number(1, width)?))
}
