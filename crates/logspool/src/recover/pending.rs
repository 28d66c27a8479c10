//! Undelivered records of a dead process, by where they go.

use std::path::PathBuf;

/// Undelivered records of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Where they go.
    pub place: Place,
    /// How many; the first few of them may be out already.
    pub records: u64,
    pub(super) sink: usize,
}

/// Where a sink of a dead process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file, by the path that the process configured; a service, by its address.
    File(PathBuf),
    /// Something that ended with the process, by the name of the sink.
    Gone(String),
    /// The sink's definition cannot be read.
    Unknown,
}
