//! What the caller of a recovery wants to do with the records of dead processes.

/// What to do with the records for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Leave the records in the segment.
    Leave,
    /// Append the records to the file.
    Append,
    /// Pass the records to the [`Adopter`](super::Adopter). Without an adopter, leave them in the segment.
    Take,
    /// Drop the records if the segment was created before this time (nanoseconds since the epoch). The file was
    /// truncated at this time, so older records would be gone. Append the records of a later segment.
    DropOlder(i64),
}

/// What to do with records for terminals and pipes of a dead process, after all other records are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undeliverable {
    /// Keep the segment, and report its undeliverable records.
    #[default]
    Keep,
    /// Drop the records, and count them in the report.
    Discard,
}

/// Options of [`recover`](super::recover).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoverOptions {
    /// What to do with records for terminals and pipes.
    pub undeliverable: Undeliverable,
}
