//! Reads pickles of protocols 0 to 5 without executing anything.
//!
//! A pickle is a program for a small stack machine (CPython's `Lib/pickletools.py` describes its instructions). This
//! one runs all of them but those that would import, call or set state: what they would make is noted, and shown as
//! text where it is a common type (`objects.rs`), else as `<module.Class>`.
//!
//! Nothing here calls itself without a bound, copies what a memo refers to, or takes memory that the frame does not
//! pay for: each instruction makes a few nodes at most.

pub mod flat;
mod machine;
mod objects;
mod show;
mod text;

use std::borrow::Cow;
use std::fmt;

use machine::Machine;
use objects::Object;

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

/// Place of a node in [`Pickle::nodes`].
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

/// A pickle that was read: nodes that refer to each other.
#[derive(Debug)]
pub struct Pickle<'a> {
    nodes: Vec<Node<'a>>,
    root: Id,
    limits: Limits,
    bytes: usize,
}

/// Reads a frame.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn read(frame: &[u8], limits: Limits) -> Result<Pickle<'_>, PickleError> {
    let (nodes, root) = Machine::new(frame, limits).run()?;
    Ok(Pickle { nodes, root, limits, bytes: frame.len() })
}
