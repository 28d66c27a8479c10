//! Decompresses the entries of a message, a part at a time.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use super::problem::ForwardProblem;
use crate::decoders::inflate::InflateError;

/// Number of bytes decompressed at a time. Chosen: these bytes stay in a core's cache while their entries are decoded.
/// If a message is refused because of its first entries, no more than this number of bytes was decompressed.
const PIECE_BYTES: usize = 64 * 1024;

/// Decompresses entries into a buffer, and removes entries from the buffer after they were read.
#[derive(Debug)]
pub struct EntryInflater<'a> {
    from: MultiGzDecoder<&'a [u8]>,
    buffer: &'a mut Vec<u8>,
    /// Position of the first unread entry in the buffer.
    at: usize,
    /// Bytes removed from the buffer.
    removed: usize,
    most_buffer: usize,
    most_bytes: usize,
    has_ended: bool,
}

impl<'a> EntryInflater<'a> {
    /// Begins to decompress `gzip`, which may have several members. The buffer may grow to `most_buffer` bytes. All
    /// entries together may have `most_bytes` bytes.
    pub fn new(gzip: &'a [u8], buffer: &'a mut Vec<u8>, most_buffer: usize, most_bytes: usize) -> Self {
        buffer.clear();
        let from = MultiGzDecoder::new(gzip);
        Self { from, buffer, at: 0, removed: 0, most_buffer, most_bytes, has_ended: false }
    }

    /// The decompressed bytes that have not been read.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// True if the buffer holds the last bytes of the entries.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Number of decompressed bytes that have been read.
    pub fn passed(&self) -> usize {
        self.removed + self.at
    }

    /// Marks `bytes` as read.
    pub fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Decompresses more bytes.
    ///
    /// # Errors
    ///
    /// An entry fills the whole buffer, all entries together are too large, or the bytes are not gzip.
    pub fn fill(&mut self) -> Result<(), ForwardProblem> {
        self.buffer.drain(..self.at);
        self.removed += std::mem::take(&mut self.at);
        let length = self.buffer.len();
        if length >= self.most_buffer {
            return Err(ForwardProblem::LongEntry(self.most_buffer));
        }
        // Double the buffer each time, so that a long entry is not scanned again for every piece of 64 KiB.
        let more = length.max(PIECE_BYTES).min(self.most_buffer - length);
        self.buffer.reserve_exact(more);
        let read = self.from.by_ref().take(more as u64).read_to_end(self.buffer);
        let read = read.map_err(|error| ForwardProblem::Inflate(InflateError::Malformed(error)))?;
        self.has_ended = read < more;
        match self.removed + self.buffer.len() > self.most_bytes {
            true => Err(ForwardProblem::Inflate(InflateError::TooLarge(self.most_bytes))),
            false => Ok(()),
        }
    }
}
