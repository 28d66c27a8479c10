//! Finds the ends of frames in a stream.
//!
//! A [`Framer`] inspects each byte of a frame only once, even if the frame arrives in many small pieces. Each protocol
//! has its own framer in [`crate::protocols`].

use std::fmt;

/// Reason why a stream cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameError {
    /// A frame is longer than the limit. The value is the limit in bytes.
    TooLong(usize),
    /// No protocol begins with this byte.
    Unknown(u8),
    /// The peer speaks TLS to a listener without TLS.
    Tls,
    /// The length before a frame is not a positive number.
    Length,
    /// The bytes are not a message of the protocol with this name.
    Malformed(&'static str),
}

impl fmt::Display for FrameError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(limit) => write!(to, "a frame is longer than {limit} bytes (limits.frame_bytes)"),
            Self::Unknown(byte) => write!(to, "no known protocol begins with the byte {byte:#04x}"),
            Self::Tls => to.write_str("the peer uses TLS: connect it to a tls:// listener"),
            Self::Length => to.write_str("the length before a frame is not a positive number"),
            Self::Malformed(protocol) => write!(to, "the received bytes are not a message of the protocol {protocol}"),
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

/// The result of the search for the first frame in the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameScan {
    /// The frame is in `from..to`, and the next frame begins at `next`. An empty range contains nothing to decode.
    Frame {
        /// Position of the first byte of the frame.
        from: usize,
        /// Position after the last byte of the frame.
        to: usize,
        /// Position of the next frame.
        next: usize,
    },
    /// The frame is not complete yet.
    Incomplete,
}

/// The event after which [`Framer::last_frame`] is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEnd {
    /// The peer has sent nothing for a short time.
    Pause,
    /// The peer has closed the connection.
    Stream,
}

/// Finds the ends of the frames of one connection.
pub trait Framer: Send {
    /// Finds the first frame in `bytes`. `bytes` are all received bytes that are not part of an earlier frame.
    ///
    /// # Errors
    ///
    /// The stream cannot be read any further.
    fn scan(&mut self, bytes: &[u8]) -> Result<FrameScan, FrameError>;

    /// True if the frame in `bytes` is complete as soon as the peer pauses.
    fn ends_at_pause(&self, _bytes: &[u8]) -> bool {
        false
    }

    /// Returns the frame in the bytes, after the peer has paused or closed. `None`: the frame is incomplete.
    fn last_frame(&mut self, _bytes: &[u8], _ended: InputEnd) -> Option<FrameScan> {
        None
    }
}

/// Returns `step`, or an error if its frame in `bytes` is longer than `limit` bytes.
pub fn check_length(limit: usize, step: FrameScan, bytes: &[u8]) -> Result<FrameScan, FrameError> {
    let length = match step {
        FrameScan::Frame { to, .. } => to,
        FrameScan::Incomplete => bytes.len(),
    };
    if length > limit { Err(FrameError::TooLong(limit)) } else { Ok(step) }
}
