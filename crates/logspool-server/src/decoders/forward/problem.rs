//! Why bytes are no message of Forward.

use std::fmt;

use crate::decoders::density::MIN_RECORD_BYTES;
use crate::decoders::inflate::InflateError;

/// Why bytes are no message.
#[derive(Debug)]
pub struct ForwardError {
    /// Position in the message, or in its entries where they are packed, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// See [`ForwardError`].
#[derive(Debug)]
pub enum Problem {
    /// The bytes end before what they hold does.
    Truncated,
    /// It is no MessagePack.
    Malformed,
    /// It is something else than this.
    Unexpected(&'static str),
    /// The message is longer than [`Limits::frame`].
    TooLong(usize),
    /// An entry holds more values than [`Limits::items`].
    TooMany,
    /// The records come to more than [`Limits::repeated`].
    TooLarge,
    /// So many entries come in so many bytes: see `decoders/density.rs`.
    TooDense(usize, usize),
    /// A compressed entry is longer than the buffer of so many bytes.
    LongEntry(usize),
    /// The entries are compressed in a way that Forward v1 does not know.
    Compression(String),
    /// The entries cannot be decompressed.
    Inflate(InflateError),
}

impl Problem {
    pub(super) fn at(self, at: usize) -> ForwardError {
        ForwardError { at, problem: self }
    }
}

impl fmt::Display for ForwardError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.problem {
            Problem::Truncated => write!(to, "the Forward message is cut off at byte {at}"),
            Problem::Malformed => write!(to, "byte {at} of the Forward message is no MessagePack"),
            Problem::Unexpected(wanted) => {
                write!(to, "the Forward message holds something else than {wanted} before byte {at}")
            }
            Problem::TooLong(limit) => write!(to, "the Forward message is longer than {limit} bytes"),
            Problem::TooMany => write!(to, "an entry of the Forward message holds too many values, at byte {at}"),
            Problem::TooLarge => {
                to.write_str("the Forward message holds too many records, or its tag is too long to be in each")
            }
            Problem::TooDense(entries, bytes) => write!(
                to,
                "the Forward message holds {entries} entries in {bytes} bytes, which is more than one for \
                 {MIN_RECORD_BYTES} bytes"
            ),
            Problem::LongEntry(bytes) => {
                write!(to, "an entry of the Forward message is longer than {bytes} bytes, decompressed")
            }
            Problem::Compression(name) => write!(to, "the Forward message is compressed with {name:?}: send gzip"),
            Problem::Inflate(error) => write!(to, "the entries of the Forward message: {error}"),
        }
    }
}

impl std::error::Error for ForwardError {}
