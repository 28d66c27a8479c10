//! Writes answers for people and programs: as text, as lines of JSON, or as CSV.
//!
//! Text is for a person at a terminal; no character of a record can control the terminal (see [`crate::visible`]).
//! Lines of JSON and CSV are for programs and keep each value unchanged. JSON writes control characters as `\u`
//! escapes, which are equivalent.

mod csv;
mod histogram;
mod ndjson;
mod output;
mod style;
mod text;

pub use output::Output;
pub use style::{Colour, Format, TextStyle};
