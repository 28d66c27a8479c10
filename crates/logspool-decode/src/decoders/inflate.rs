//! Decompresses bytes up to a limit.

use std::fmt;
use std::io::{self, Read};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use zstd::stream::read::Decoder as ZstdDecoder;

/// Maximum window of zstd, as a power of two: 8 MiB. RFC 9659 allows no larger window in HTTP.
const ZSTD_WINDOW_LOG: u32 = 23;

/// A way in which bytes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// gzip, which may have several members.
    Gzip,
    /// zlib, or the raw deflate that some senders call `deflate` too.
    Deflate,
    /// zstd, which may have several frames.
    Zstd,
}

impl Coding {
    /// The names that HTTP has for codings, for messages.
    pub const NAMES: &str = "gzip, deflate, zstd or identity";

    /// The coding with this name in HTTP, in any case. `None`: the name is unknown.
    pub fn of(name: &str) -> Option<Self> {
        let names = [("gzip", Self::Gzip), ("x-gzip", Self::Gzip), ("deflate", Self::Deflate), ("zstd", Self::Zstd)];
        names.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, coding)| *coding)
    }

    /// Decompresses bytes. The result replaces the content of `into`.
    ///
    /// # Errors
    ///
    /// See [`gzip`].
    pub fn inflate(self, bytes: &[u8], limit: usize, into: &mut Vec<u8>) -> Result<(), InflateError> {
        match self {
            Self::Gzip => gzip(bytes, limit, into),
            Self::Deflate if is_zlib(bytes) => zlib(bytes, limit, into),
            Self::Deflate => read(DeflateDecoder::new(bytes), limit, into),
            Self::Zstd => {
                let decoder = ZstdDecoder::with_buffer(bytes).and_then(|mut decoder| {
                    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                    Ok(decoder)
                });
                read(decoder.map_err(InflateError::Malformed)?, limit, into)
            }
        }
    }
}

/// True if bytes begin with the header of zlib (RFC 1950, 2.2).
pub(super) fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [method, flags, ..] if method & 0x0F == 8 && (usize::from(*method) * 256 + usize::from(*flags)).is_multiple_of(31))
}

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
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

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
    fn each_coding_of_http_is_read_by_any_of_its_names() {
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(b"text").unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(b"text").unwrap();
        let zstd = zstd::encode_all(&b"text"[..], 3).unwrap();
        let (raw, zlib) = (raw.finish().unwrap(), zlib.finish().unwrap());

        for (name, bytes) in [
            ("X-Gzip", &gzipped(b"text")),
            ("GZIP", &gzipped(b"text")),
            ("deflate", &raw),
            ("Deflate", &zlib),
            ("zstd", &zstd),
        ] {
            let (coding, mut into) = (Coding::of(name).unwrap(), Vec::new());
            coding.inflate(bytes, 4, &mut into).unwrap();
            assert_eq!(b"text", &*into, "{name}");
            assert!(matches!(coding.inflate(bytes, 3, &mut into), Err(InflateError::TooLarge(3))), "{name}");
            assert!(coding.inflate(&bytes[..bytes.len() - 1], 4, &mut into).is_err() || name == "deflate", "{name}");
        }
        assert_eq!(None, Coding::of("br"));
    }

    #[test]
    fn a_zstd_frame_with_a_huge_window_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(b"text").unwrap();
        let bytes = encoder.finish().unwrap();

        assert!(matches!(Coding::Zstd.inflate(&bytes, 1000, &mut Vec::new()), Err(InflateError::Malformed(_))));
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
