//! Writes answers as text, as lines of JSON, or as CSV.
//!
//! Text is for a person at a terminal. No character of a record can control the terminal (see [`crate::visible`]).
//! Lines of JSON and CSV are for programs and keep each value unchanged. In JSON, control characters are written as
//! `\u` escapes, which have the same meaning.

mod csv;
mod histogram;
mod ndjson;
mod output;
mod record_table;
mod style;
mod table;
mod text;

pub use output::Output;
pub use style::{Colour, Format, TextStyle};
