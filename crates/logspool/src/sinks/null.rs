//! A sink that accepts all bytes and keeps none: for benchmarks and for switching an output off.

use std::io;

use super::{Place, SinkOptions, Traits};
use crate::sink::{Lines, Sink, SinkError};
use logspool_record::definition::Descriptor;

crate::options! {
    /// Takes every line and writes none: for benchmarks, and to switch an output off.
    pub struct NullOptions {}
}

impl SinkOptions for NullOptions {
    const KIND: &'static str = "null";
    const TRAITS: Traits = Traits { is_shared: false, ..Traits::FILE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(NullSink))
    }

    fn place(&self) -> Place {
        Place::Nowhere
    }

    fn samples(_: &str, _: i32) -> Vec<Self> {
        vec![Self {}]
    }
}

/// A sink that discards everything.
#[derive(Debug)]
pub struct NullSink;

impl Sink for NullSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        Ok(lines.bytes.len())
    }
}
