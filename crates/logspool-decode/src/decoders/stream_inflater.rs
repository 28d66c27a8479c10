//! Decompresses a body while it arrives, in bounded memory.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use zstd::stream::write::Decoder as ZstdDecoder;

use super::inflate::{Coding, is_zlib};

/// Compressed bytes that are decompressed at once. Chosen: a block of zstd takes four bytes or more and gives at most
/// 128 KiB, so the result has at most 2 MiB.
const STEP_BYTES: usize = 64;

/// Maximum window of zstd, as a power of two: 2 MiB. Chosen: the usual levels of zstd need no more for a stream.
const WINDOW_LOG: u32 = 21;

/// Bytes of memory that a decoder may take, with the result of one step: the window, its buffers, and 2 MiB.
pub const INFLATER_BYTES: usize = 5 << 20;

/// Decompresses the pieces of a body.
pub struct StreamInflater(State);

enum State {
    /// `deflate`, of which nothing has arrived: its first bytes decide about the header.
    Deflate(Vec<u8>),
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
    Zstd(ZstdDecoder<'static, Vec<u8>>),
}

impl StreamInflater {
    /// A decoder for a body.
    ///
    /// # Errors
    ///
    /// There is no memory for the decoder.
    pub fn new(coding: Coding) -> io::Result<Self> {
        Ok(Self(match coding {
            Coding::Gzip => State::Gzip(MultiGzDecoder::new(Vec::new())),
            Coding::Deflate => State::Deflate(Vec::new()),
            Coding::Zstd => {
                let mut zstd = ZstdDecoder::new(Vec::new())?;
                zstd.window_log_max(WINDOW_LOG)?;
                State::Zstd(zstd)
            }
        }))
    }

    /// Decompresses some of the bytes, appends the result to `to`, and returns the number of bytes that were used.
    ///
    /// # Errors
    ///
    /// The bytes are not in the format.
    pub fn push(&mut self, bytes: &[u8], to: &mut impl Extend<u8>) -> io::Result<usize> {
        let step = &bytes[..bytes.len().min(STEP_BYTES)];
        if let State::Deflate(first) = &mut self.0 {
            first.extend_from_slice(step);
            if first.len() < 2 {
                return Ok(step.len());
            }
            let first = std::mem::take(first);
            self.0 = match is_zlib(&first) {
                true => State::Zlib(ZlibDecoder::new(Vec::new())),
                false => State::Raw(DeflateDecoder::new(Vec::new())),
            };
            self.write(&first, to)?;
            return Ok(step.len());
        }
        self.write(step, to)?;
        Ok(step.len())
    }

    /// Ends the body, and appends the rest of the result to `to`.
    ///
    /// # Errors
    ///
    /// The body is cut off.
    pub fn end(&mut self, to: &mut impl Extend<u8>) -> io::Result<()> {
        match &mut self.0 {
            State::Deflate(_) => {}
            State::Gzip(gzip) => gzip.try_finish()?,
            State::Zlib(zlib) => zlib.try_finish()?,
            State::Raw(raw) => raw.try_finish()?,
            State::Zstd(zstd) => zstd.do_finish()?,
        }
        to.extend(std::mem::take(self.output()));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], to: &mut impl Extend<u8>) -> io::Result<()> {
        match &mut self.0 {
            State::Deflate(first) => first.extend_from_slice(bytes),
            State::Gzip(gzip) => {
                gzip.write_all(bytes)?;
                gzip.flush()?;
            }
            State::Zlib(zlib) => {
                zlib.write_all(bytes)?;
                zlib.flush()?;
            }
            State::Raw(raw) => {
                raw.write_all(bytes)?;
                raw.flush()?;
            }
            State::Zstd(zstd) => {
                zstd.write_all(bytes)?;
                zstd.flush()?;
            }
        }
        to.extend(std::mem::take(self.output()));
        Ok(())
    }

    fn output(&mut self) -> &mut Vec<u8> {
        match &mut self.0 {
            State::Deflate(first) => first,
            State::Gzip(gzip) => gzip.get_mut(),
            State::Zlib(zlib) => zlib.get_mut(),
            State::Raw(raw) => raw.get_mut(),
            State::Zstd(zstd) => zstd.get_mut(),
        }
    }
}

impl std::fmt::Debug for StreamInflater {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("StreamInflater")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn inflated(coding: Coding, pieces: &[&[u8]]) -> io::Result<Vec<u8>> {
        let (mut inflater, mut to) = (StreamInflater::new(coding)?, Vec::new());
        for mut piece in pieces.iter().copied() {
            while !piece.is_empty() {
                piece = &piece[inflater.push(piece, &mut to)?..];
            }
        }
        inflater.end(&mut to)?;
        Ok(to)
    }

    #[test]
    fn pieces_of_any_size_and_several_frames_are_read() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        let (first, second) = text.split_at(text.len() / 2);
        let gzip = |bytes: &[u8]| {
            let mut to = GzEncoder::new(Vec::new(), Compression::default());
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        };
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).unwrap();
        let zstd = |bytes| zstd::encode_all(bytes, 3).unwrap();
        for (coding, bytes) in [
            (Coding::Gzip, [gzip(first), gzip(second)].concat()),
            (Coding::Zstd, [zstd(first), zstd(second)].concat()),
            (Coding::Deflate, zlib.finish().unwrap()),
            (Coding::Deflate, raw.finish().unwrap()),
        ] {
            for size in [1, 63, 100_000] {
                let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
                assert!(text == inflated(coding, &pieces).unwrap(), "{coding:?} {size}");
            }
            for cut in [bytes.len() - 1, bytes.len() / 3] {
                assert!(inflated(coding, &[&bytes[..cut]]).is_err(), "{coding:?} cut at {cut} of {}", bytes.len());
            }
            let (mut bad, middle) = (bytes.clone(), bytes.len() / 2);
            bad[middle..].fill(0xFF);
            assert!(inflated(coding, &[&bad]).is_err() || inflated(coding, &[&bad]).unwrap() != text, "{coding:?}");
        }
    }

    #[test]
    fn a_step_of_a_bomb_gives_bounded_bytes() {
        let bomb = zstd::encode_all(io::repeat(0).take(64 << 20), 3).unwrap();
        let (mut inflater, mut rest) = (StreamInflater::new(Coding::Zstd).unwrap(), &bomb[..]);
        while !rest.is_empty() {
            let mut to = Vec::new();
            rest = &rest[inflater.push(rest, &mut to).unwrap()..];
            assert!(to.len() <= 2 << 20, "{}", to.len());
        }
    }
}
