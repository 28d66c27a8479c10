//! The limits of a pickle, and why a frame is none.

use std::fmt;

/// What a pickle may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Values in values.
    pub depth: usize,
    /// Values in all, each as often as it is shown.
    pub items: usize,
    /// Bytes of text in all, each as often as it is shown, for each byte of the frame.
    pub expansion: usize,
}

impl Default for Limits {
    /// 32 deep, 10,000 values, four bytes of text for a byte of the frame.
    fn default() -> Self {
        Self { depth: 32, items: 10_000, expansion: 4 }
    }
}

/// Why a frame is no pickle that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickleError {
    /// Position in the frame, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// See [`PickleError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The frame ends before the pickle does.
    Truncated,
    /// There is no such instruction.
    Unknown(u8),
    /// An instruction wants values that are not there, or others.
    Stack,
    /// A number, a name or a text is none.
    Malformed,
    /// It refers to other buffers, an extension registry or an object outside of it.
    Outside,
    /// More values than [`Limits::items`] allows.
    TooMany,
}

impl fmt::Display for PickleError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.problem {
            Problem::Truncated => write!(to, "the pickle is cut off at byte {at}"),
            Problem::Unknown(code) => write!(to, "byte {at} of the pickle is no instruction: {code:#04x}"),
            Problem::Stack => write!(to, "the instruction at byte {at} of the pickle finds other values than it wants"),
            Problem::Malformed => write!(to, "what stands at byte {at} of the pickle is malformed"),
            Problem::Outside => write!(to, "the pickle refers at byte {at} to something outside of it"),
            Problem::TooMany => write!(to, "the pickle holds too many values, the last at byte {at}"),
        }
    }
}

impl std::error::Error for PickleError {}
