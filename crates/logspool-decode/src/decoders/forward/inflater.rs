//! Decompresses the entries of a message, a part at a time.

use std::fmt;
use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use super::problem::ForwardProblem;
use crate::decoders::inflate::InflateError;

/// Number of bytes decompressed at a time. Chosen: these bytes stay in a core's cache while their entries are decoded.
/// If a message is refused because of its first entries, no more than this number of bytes was decompressed.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum window of zstd, as a power of two: 8 MiB. RFC 8878 recommends this limit. A frame that asks for more memory
/// is an error.
pub const ZSTD_WINDOW_LOG: u32 = 23;

/// How entries are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, which may have several members.
    Gzip,
    /// zstd, which may have several frames.
    Zstd,
}

/// Decompresses entries into a buffer, and removes entries from the buffer after they were read.
pub struct EntryInflater<'a> {
    from: Box<dyn Read + Send + 'a>,
    buffer: &'a mut Vec<u8>,
    /// Position of the first unread entry in the buffer.
    at: usize,
    /// Bytes removed from the buffer.
    removed: usize,
    most_buffer: usize,
    has_ended: bool,
    /// An error after bytes that were decompressed. It is reported after their entries were read.
    failed: Option<ForwardProblem>,
}

impl<'a> EntryInflater<'a> {
    /// Begins to decompress `bytes`. The buffer may grow to `most_buffer` bytes.
    pub fn new(compression: Compression, bytes: &'a [u8], buffer: &'a mut Vec<u8>, most_buffer: usize) -> Self {
        buffer.clear();
        let (from, failed) = match open(compression, bytes) {
            Ok(from) => (from, None),
            Err(error) => (Box::new(std::io::empty()) as _, Some(malformed(error))),
        };
        Self { from, buffer, at: 0, removed: 0, most_buffer, has_ended: false, failed }
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
    /// An entry fills the whole buffer, or the bytes cannot be decompressed.
    pub fn fill(&mut self) -> Result<(), ForwardProblem> {
        if let Some(problem) = self.failed.take() {
            return Err(problem);
        }
        self.buffer.drain(..self.at);
        self.removed += std::mem::take(&mut self.at);
        let length = self.buffer.len();
        if length >= self.most_buffer {
            return Err(ForwardProblem::LongEntry(self.most_buffer));
        }
        // Double the buffer each time, so that a long entry is not scanned again for every piece of 64 KiB.
        let more = length.max(PIECE_BYTES).min(self.most_buffer - length);
        self.buffer.reserve_exact(more);
        match self.from.by_ref().take(more as u64).read_to_end(self.buffer) {
            Ok(read) => self.has_ended = read < more,
            // The bytes before the error may have whole entries.
            Err(error) => self.failed = Some(malformed(error)),
        }
        Ok(())
    }
}

fn open<'a>(compression: Compression, bytes: &'a [u8]) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(bytes)),
        Compression::Zstd => {
            let mut zstd = ZstdDecoder::with_buffer(bytes)?;
            zstd.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(zstd)
        }
    })
}

fn malformed(error: io::Error) -> ForwardProblem {
    ForwardProblem::Inflate(InflateError::Malformed(error))
}

impl fmt::Debug for EntryInflater<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("EntryInflater").field("passed", &self.passed()).finish_non_exhaustive()
    }
}
