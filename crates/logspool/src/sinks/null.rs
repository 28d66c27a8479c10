//! A sink that accepts all bytes and keeps none: for benchmarks and for switching an output off.

use crate::sink::{Lines, Sink, SinkError};

/// A sink that discards everything.
#[derive(Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        Ok(lines.bytes.len())
    }
}
