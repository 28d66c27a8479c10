//! Limits of a pickle, and the errors of parsing one.

use std::fmt;

/// Limits of a pickle.
#[derive(Debug, Clone, Copy)]
pub struct PickleLimits {
    /// Maximum nesting depth.
    pub depth: usize,
    /// Maximum number of values; a value counts each time it is shown.
    pub items: usize,
    /// Maximum bytes of shown text per byte of the frame; text counts each time it is shown.
    pub expansion: usize,
}

impl Default for PickleLimits {
    /// Depth 32, 10,000 values, four bytes of text for each byte of the frame.
    fn default() -> Self {
        Self { depth: 32, items: 10_000, expansion: 4 }
    }
}

/// Reason why a frame cannot be read as a pickle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickleError {
    /// Position in the frame, in bytes.
    pub at: usize,
    /// The problem at that position.
    pub problem: PickleProblem,
}

/// The problem of a [`PickleError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PickleProblem {
    /// The frame ends before the pickle does.
    Truncated,
    /// The instruction does not exist.
    Unknown(u8),
    /// An instruction needs values that are not on the stack, or values of other types.
    Stack,
    /// A number, name or text is invalid.
    Malformed,
    /// The pickle refers to values outside it: external buffers, an extension registry or a persistent object.
    Outside,
    /// The pickle has more values than [`PickleLimits::items`].
    TooMany,
}

impl fmt::Display for PickleError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at;
        match self.problem {
            PickleProblem::Truncated => write!(to, "the pickle is cut off at byte {at}"),
            PickleProblem::Unknown(code) => write!(to, "byte {at} of the pickle is not an instruction: {code:#04x}"),
            PickleProblem::Stack => {
                write!(to, "the instruction at byte {at} of the pickle needs other values than it finds")
            }
            PickleProblem::Malformed => write!(to, "the value at byte {at} of the pickle is malformed"),
            PickleProblem::Outside => write!(to, "the pickle refers at byte {at} to something outside itself"),
            PickleProblem::TooMany => write!(to, "the pickle has too many values, the last at byte {at}"),
        }
    }
}

impl std::error::Error for PickleError {}
