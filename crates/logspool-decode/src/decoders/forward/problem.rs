//! Errors of Forward messages.

use std::fmt;

use crate::decoders::density::MIN_RECORD_BYTES;
use crate::decoders::inflate::InflateError;

/// Reason why a message cannot be read.
#[derive(Debug)]
pub struct ForwardError {
    /// Position of the error in bytes: in the message, or in its entries if they are packed.
    pub at: usize,
    /// The problem at that position.
    pub problem: ForwardProblem,
}

/// The problem of a [`ForwardError`].
#[derive(Debug)]
pub enum ForwardProblem {
    /// The message ends within a value.
    Truncated,
    /// The bytes are not MessagePack.
    Malformed,
    /// This value was expected, but another one was found.
    Unexpected(&'static str),
    /// The message is longer than [`super::ForwardLimits::frame`].
    TooLong(usize),
    /// An entry has more values than [`super::ForwardLimits::items`].
    TooMany,
    /// The message has this number of entries in this number of bytes. That is too dense: see `decoders/density.rs`.
    TooDense(usize, usize),
    /// A compressed entry is longer than the buffer, which has this number of bytes.
    LongEntry(usize),
    /// The compression is unknown.
    Compression(String),
    /// The entries cannot be decompressed.
    Inflate(InflateError),
}

impl ForwardProblem {
    pub(super) fn at(self, at: usize) -> ForwardError {
        ForwardError { at, problem: self }
    }
}

impl fmt::Display for ForwardError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match &self.problem {
            ForwardProblem::Truncated => write!(to, "the Forward message is cut off at byte {at}"),
            ForwardProblem::Malformed => write!(to, "byte {at} of the Forward message is not MessagePack"),
            ForwardProblem::Unexpected(wanted) => {
                write!(to, "the Forward message has another value instead of {wanted} before byte {at}")
            }
            ForwardProblem::TooLong(limit) => write!(to, "the Forward message is longer than {limit} bytes"),
            ForwardProblem::TooMany => {
                write!(to, "an entry of the Forward message has too many values, at byte {at}")
            }
            ForwardProblem::TooDense(entries, bytes) => write!(
                to,
                "the Forward message has {entries} entries in {bytes} bytes, more than one per \
                 {MIN_RECORD_BYTES} bytes"
            ),
            ForwardProblem::LongEntry(bytes) => {
                write!(to, "an entry of the Forward message is longer than {bytes} bytes, decompressed")
            }
            ForwardProblem::Compression(name) => {
                write!(to, "the Forward message is compressed with {name:?}: send gzip or zstd")
            }
            ForwardProblem::Inflate(error) => {
                write!(to, "cannot decompress the entries of the Forward message: {error}")
            }
        }
    }
}

impl std::error::Error for ForwardError {}
