//! Finds the ends of frames in a stream.
//!
//! A [`Framer`] looks at each byte of a frame once, however small the pieces are in which it arrives. Each protocol has
//! its own framer in [`crate::protocols`].

use std::fmt;

/// Reason why a stream cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// A frame is longer than the limit, in bytes.
    TooLong(usize),
    /// No protocol begins with this byte.
    Unknown(u8),
    /// The peer speaks TLS to a listener without TLS.
    Tls,
    /// A length is not a positive number.
    Length,
    /// The bytes are not a message of the protocol with this name.
    Malformed(&'static str),
}

impl fmt::Display for FrameError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(to, "a frame is longer than {limit} bytes (limits.frame_bytes)"),
            Self::Unknown(byte) => write!(to, "no known protocol begins with the byte {byte:#04x}"),
            Self::Tls => to.write_str("the peer speaks TLS: let it connect to a tls:// listener"),
            Self::Length => to.write_str("the length before a frame is not a number from 1"),
            Self::Malformed(protocol) => write!(to, "what came is no message of the protocol {protocol}"),
        }
    }
}

impl std::error::Error for FrameError {}

impl FrameError {
    /// The kind of the error, for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "too_long",
            Self::Unknown(_) => "unknown_protocol",
            Self::Tls => "tls",
            Self::Length => "length",
            Self::Malformed(_) => "malformed",
        }
    }
}

/// The first frame in the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A frame at `from..to`; the next frame begins at `next`. An empty range has nothing to decode.
    Frame {
        /// Position of its first byte.
        from: usize,
        /// Position after its last byte.
        to: usize,
        /// Position of the next frame.
        next: usize,
    },
    /// The frame is not complete yet.
    Incomplete,
}

/// The end that [`Framer::rest`] is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The peer has been silent for a moment.
    Burst,
    /// The peer has closed.
    Stream,
}

/// Finds the ends of the frames of one connection.
pub trait Framer: Send {
    /// Finds the first frame in `bytes`, which are all received bytes that have not been taken yet.
    ///
    /// # Errors
    ///
    /// The stream cannot be read any further.
    fn step(&mut self, bytes: &[u8]) -> Result<Step, FrameError>;

    /// True if the frame in `bytes` is complete when the peer pauses.
    fn ends_in_silence(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// The frame in the bytes when nothing follows for a while, or ever. `None`: the frame is incomplete.
    fn rest(&mut self, _bytes: &[u8], _ended: Ended) -> Option<Step> {
        None
    }
}

/// Returns `step`, unless its frame in `bytes` is longer than `limit` bytes.
pub fn within(limit: usize, step: Step, bytes: &[u8]) -> Result<Step, FrameError> {
    let length = match step {
        Step::Frame { to, .. } => to,
        Step::Incomplete => bytes.len(),
    };
    if length > limit { Err(FrameError::TooLong(limit)) } else { Ok(step) }
}
