//! Decompresses bytes up to a limit.

use std::fmt;
use std::io::{self, Read};

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

/// Reason why bytes cannot be decompressed.
#[derive(Debug)]
pub enum InflateError {
    /// The result is larger than this number of bytes.
    TooLarge(usize),
    /// The bytes are cut off, or not in this format.
    Malformed(io::Error),
}

impl fmt::Display for InflateError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(to, "the decompressed bytes exceed {limit} bytes"),
            Self::Malformed(error) => write!(to, "cannot decompress: {error}"),
        }
    }
}

impl std::error::Error for InflateError {}

/// Decompresses gzip, which may have several members. The result replaces the content of `into`.
///
/// # Errors
///
/// The bytes are not gzip, or the result is larger than `limit` bytes. `into` is empty then.
pub fn gzip(bytes: &[u8], limit: usize, into: &mut Vec<u8>) -> Result<(), InflateError> {
    read(MultiGzDecoder::new(bytes), limit, into)
}

/// Decompresses zlib as [`gzip`] does. Bytes after its end are ignored.
///
/// # Errors
///
/// See [`gzip`].
pub fn zlib(bytes: &[u8], limit: usize, into: &mut Vec<u8>) -> Result<(), InflateError> {
    read(ZlibDecoder::new(bytes), limit, into)
}

fn read(from: impl Read, limit: usize, into: &mut Vec<u8>) -> Result<(), InflateError> {
    into.clear();
    // Read one byte more than allowed, to detect a result above the limit.
    let result = from.take(limit as u64 + 1).read_to_end(into);
    let error = match result {
        Ok(_) if into.len() > limit => InflateError::TooLarge(limit),
        Ok(_) => return Ok(()),
        Err(error) => InflateError::Malformed(error),
    };
    into.clear();
    Err(error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn gzipped(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_are_read_one_after_the_other() {
        let mut into = b"what was there".to_vec();
        gzip(&[gzipped(b"first "), gzipped(b"second")].concat(), 12, &mut into).unwrap();
        assert_eq!(b"first second", &*into);

        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"text").unwrap();
        zlib(&encoder.finish().unwrap(), 4, &mut into).unwrap();
        assert_eq!(b"text", &*into);
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let bomb = gzipped(&vec![0; 10_000_000]);
        let mut into = Vec::new();
        let error = gzip(&bomb, 1000, &mut into).unwrap_err();

        assert_eq!("the decompressed bytes exceed 1000 bytes", error.to_string());
        assert!(into.is_empty() && into.capacity() < 100_000, "{}", into.capacity());
    }

    #[test]
    fn truncated_or_other_bytes_are_an_error() {
        let whole = gzipped(b"a text of some length, a text of some length");
        for length in 1..whole.len() {
            assert!(gzip(&whole[..length], 1000, &mut Vec::new()).is_err(), "{length} bytes");
        }
        assert!(gzip(b"no gzip", 1000, &mut Vec::new()).is_err());
        assert!(zlib(&whole, 1000, &mut Vec::new()).is_err());
    }
}
