//! Reads pickles of protocols 0 to 5 without executing anything.
//!
//! A pickle is a program for a small stack machine (CPython's `Lib/pickletools.py` describes its instructions). This
//! machine runs all instructions except those that import, call or set state. It records these instead. An object of a
//! common type is shown as text (`objects.rs`), any other as `<module.Class>`.
//!
//! Recursion is bounded. Memoised values are not copied. Memory is bounded by the size of the frame: each instruction
//! creates a few nodes at most.

pub mod flat;
mod machine;
mod objects;
mod show;
mod text;

use std::borrow::Cow;
use std::fmt;

use machine::Machine;
use objects::Object;

/// Limits of a pickle.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum nesting depth.
    pub depth: usize,
    /// Maximum number of values; a value counts each time it is shown.
    pub items: usize,
    /// Maximum bytes of text for each byte of the frame; text counts each time it is shown.
    pub expansion: usize,
}

impl Default for Limits {
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
    pub problem: Problem,
}

/// See [`PickleError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The frame ends before the pickle does.
    Truncated,
    /// The instruction does not exist.
    Unknown(u8),
    /// An instruction needs values that are not on the stack, or values of other types.
    Stack,
    /// A number, name or text is invalid.
    Malformed,
    /// The pickle refers to external buffers, an extension registry or a persistent object.
    Outside,
    /// The pickle has more values than [`Limits::items`].
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

/// Index of a node in [`Pickle::nodes`].
type Id = u32;

#[derive(Debug)]
enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer beyond 64 bits, in decimal.
    Long(Cow<'a, str>),
    Float(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// A list, tuple or set.
    Items(Vec<Id>),
    Map(Vec<(Id, Id)>),
    Object(Box<Object>),
}

/// A parsed pickle: nodes that refer to each other.
#[derive(Debug)]
pub struct Pickle<'a> {
    nodes: Vec<Node<'a>>,
    root: Id,
    limits: Limits,
    bytes: usize,
}

/// Parses a frame.
///
/// # Errors
///
/// The first problem of the frame.
pub fn read(frame: &[u8], limits: Limits) -> Result<Pickle<'_>, PickleError> {
    let (nodes, root) = Machine::new(frame, limits).run()?;
    Ok(Pickle { nodes, root, limits, bytes: frame.len() })
}
