//! Answers for people and programs: rows as text, as lines of JSON, or as CSV.
//!
//! Text is for a person at a terminal: nothing in a record can act on it (see [`crate::visible`]). Lines of JSON and CSV
//! are for programs, and keep each value as it is; JSON writes characters that act as `\u` escapes, which mean the same.

mod csv;
mod histogram;
mod look;
mod ndjson;
mod output;
mod text;

pub use look::{Colour, Format, Look};
pub use output::Output;
