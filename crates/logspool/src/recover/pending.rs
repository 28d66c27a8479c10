//! Undelivered records of a dead process, grouped by destination.

use std::path::PathBuf;

/// Undelivered records of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRecords {
    /// Destination of the records.
    pub place: PendingPlace,
    /// Number of undelivered records. The first few may be written already.
    pub records: u64,
    pub(super) sink: usize,
}

/// Destination of a sink of a dead process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingPlace {
    /// The path of a file, as the process configured it, or the address of a service.
    File(PathBuf),
    /// The destination ended with the process. The text is the name of the sink.
    Gone(String),
    /// The sink's definition cannot be read.
    Unknown,
}
