//! Every sink, one file each. To add one: its file, and one line in [`open`].
//!
//! Beside them, `lent` (descriptors of the program's), and what the file sinks share: `named` (a file and its path),
//! `torn` (writes that end inside a record), `unsynced` (what is not durable yet), `schedule`, `calendar` and `expired`
//! (when rotation by time is due, and what it removes), `compress` (what becomes of backups).

mod calendar;
pub(crate) mod compress;
mod console;
mod expired;
mod file;
pub(crate) mod lent;
mod named;
mod null;
mod rotating;
mod schedule;
pub(crate) mod service;
mod timed;
mod torn;
mod unsynced;
mod watched;

use std::io;

use logspool_record::definition::{SinkDefinition, SinkKind};

use crate::sink::Sink;

/// Opens the sink that a definition describes.
///
/// # Errors
///
/// What the system said about the path or descriptor; `InvalidInput` for options that no handler can have.
pub fn open(definition: &SinkDefinition) -> io::Result<Box<dyn Sink>> {
    Ok(match &definition.kind {
        SinkKind::File { path } => Box::new(file::FileSink::open(path, definition.descriptor)?),
        SinkKind::Console { descriptor } => Box::new(console::ConsoleSink::open(*descriptor, definition.descriptor)?),
        SinkKind::RotatingFile { .. } => Box::new(rotating::RotatingFileSink::open(definition)?),
        SinkKind::TimedRotatingFile { .. } => Box::new(timed::TimedRotatingFileSink::open(definition)?),
        SinkKind::WatchedFile { path } => Box::new(watched::WatchedFileSink::open(path, definition.descriptor)?),
        SinkKind::Service { address } => Box::new(service::ServiceSink::new(address.clone())?),
        SinkKind::Null => Box::new(null::NullSink),
    })
}

/// A sink was asked to open a definition of another kind.
fn wrong_kind() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the definition is of another kind of sink")
}
