//! The compressed entries of a message, some of them decompressed at a time.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use super::problem::Problem;
use crate::decoders::inflate::InflateError;

/// Bytes that are decompressed at once. Chosen: they stay in the cache of a core while their entries are decoded, and a
/// message that is refused for its first entries costs no more than these.
const PIECE_BYTES: usize = 64 * 1024;

/// Decompresses entries into a buffer, from which those that have been read are removed.
#[derive(Debug)]
pub struct Inflating<'a> {
    from: MultiGzDecoder<&'a [u8]>,
    buffer: &'a mut Vec<u8>,
    /// Where in the buffer the first entry begins that has not been read.
    at: usize,
    /// Bytes that were removed from the buffer.
    removed: usize,
    most_buffer: usize,
    most_bytes: usize,
    has_ended: bool,
}

impl<'a> Inflating<'a> {
    /// Begins with `gzip`, also several members one after the other. The buffer may grow to `most_buffer` bytes, and all
    /// entries come to `most_bytes` at most.
    pub fn new(gzip: &'a [u8], buffer: &'a mut Vec<u8>, most_buffer: usize, most_bytes: usize) -> Self {
        buffer.clear();
        let from = MultiGzDecoder::new(gzip);
        Self { from, buffer, at: 0, removed: 0, most_buffer, most_bytes, has_ended: false }
    }

    /// What is decompressed and has not been read.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Whether nothing follows these bytes.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// How many decompressed bytes have been read.
    pub fn passed(&self) -> usize {
        self.removed + self.at
    }

    /// Passes over so many bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Decompresses more.
    ///
    /// # Errors
    ///
    /// What is in the buffer fills it, the entries are too large together, or the bytes are not gzip.
    pub fn fill(&mut self) -> Result<(), Problem> {
        self.buffer.drain(..self.at);
        self.removed += std::mem::take(&mut self.at);
        let length = self.buffer.len();
        if length >= self.most_buffer {
            return Err(Problem::LongEntry(self.most_buffer));
        }
        // Doubled, so that a long entry is not looked at again and again for each piece of it.
        let more = length.max(PIECE_BYTES).min(self.most_buffer - length);
        self.buffer.reserve_exact(more);
        let read = self.from.by_ref().take(more as u64).read_to_end(self.buffer);
        let read = read.map_err(|error| Problem::Inflate(InflateError::Malformed(error)))?;
        self.has_ended = read < more;
        match self.removed + self.buffer.len() > self.most_bytes {
            true => Err(Problem::Inflate(InflateError::TooLarge(self.most_bytes))),
            false => Ok(()),
        }
    }
}
