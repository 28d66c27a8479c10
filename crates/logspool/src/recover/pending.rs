//! Undelivered records of a dead process, by destination.

use std::path::PathBuf;

/// Undelivered records of one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRecords {
    /// Destination of the records.
    pub place: PendingPlace,
    /// Number of records. The first few may be written already.
    pub records: u64,
    pub(super) sink: usize,
}

/// Destination of a sink of a dead process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PendingPlace {
    /// The path of a file, as the process configured it, or the address of a service.
    File(PathBuf),
    /// A destination that ended with the process, by the name of the sink.
    Gone(String),
    /// The sink's definition cannot be read.
    Unknown,
}
