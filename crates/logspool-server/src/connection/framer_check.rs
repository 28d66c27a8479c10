//! A test helper that checks framers with a stream that arrives in pieces.

use super::framing::{FrameScan, Framer};

/// Maximum length of a frame in these tests.
pub const LIMIT: usize = 64;

/// Checks that a framer finds the `expected` frames in a stream and leaves the bytes in `rest`, for pieces of every
/// size.
pub fn check(framer: fn(usize) -> Box<dyn Framer>, stream: &[u8], expected: &[&[u8]], rest: &[u8]) {
    for piece in 1..=stream.len() {
        let mut framer = framer(LIMIT);
        let (mut frames, mut waiting) = (Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            waiting.extend_from_slice(piece);
            while let FrameScan::Frame { from, to, next } = framer.scan(&waiting).unwrap() {
                frames.push(waiting[from..to].to_vec());
                waiting.drain(..next);
            }
        }
        assert_eq!(expected, frames, "in pieces of {piece}");
        assert_eq!(rest, waiting, "in pieces of {piece}");
    }
}
