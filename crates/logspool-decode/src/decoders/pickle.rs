//! Reads pickles of protocols 0 to 5 without executing anything.
//!
//! A pickle is a program for a small stack machine (CPython's `Lib/pickletools.py` describes its instructions). Our
//! machine runs all instructions except those that import, call or set state. It only records these. An object of a
//! common type is shown as text (`objects.rs`), any other object by its attributes (`instances.rs`), or as
//! `<module.Class>` if it has none.
//!
//! Recursion is bounded. Memoised values are not copied. Memory is bounded by the size of the frame: each instruction
//! creates a few nodes at most.

pub mod flat;
mod graph;
mod instances;
mod machine;
mod objects;
mod problem;
mod show;
mod text;

use machine::Machine;

pub use graph::Pickle;
pub use problem::{PickleError, PickleLimits, PickleProblem};

/// Parses a frame.
///
/// # Errors
///
/// The frame is not a pickle, or exceeds a limit. The error is the first problem of the frame.
pub fn read(frame: &[u8], limits: PickleLimits) -> Result<Pickle<'_>, PickleError> {
    let (nodes, root) = Machine::new(frame, limits).run()?;
    Ok(Pickle { nodes, root, limits, bytes: frame.len() })
}
