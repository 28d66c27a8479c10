//! Reads pickles of protocols 0 to 5 without executing anything.
//!
//! A pickle is a program for a small stack machine (CPython's `Lib/pickletools.py` describes its instructions). This
//! one runs all of them but those that would import, call or set state: what they would make is noted, and shown as
//! text where it is a common type (`objects.rs`), else as `<module.Class>`.
//!
//! Nothing here calls itself without a bound, copies what a memo refers to, or takes memory that the frame does not
//! pay for: each instruction makes a few nodes at most.

pub mod flat;
mod graph;
mod machine;
mod objects;
mod problem;
mod show;
mod text;

use machine::Machine;

pub use graph::Pickle;
pub use problem::{Limits, PickleError, Problem};

/// Reads a frame.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn read(frame: &[u8], limits: Limits) -> Result<Pickle<'_>, PickleError> {
    let (nodes, root) = Machine::new(frame, limits).run()?;
    Ok(Pickle { nodes, root, limits, bytes: frame.len() })
}
