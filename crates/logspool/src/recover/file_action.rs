//! The choices of a recovery's caller: what to do with the records of dead processes.

/// What to do with the records for one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Leave them in the segment.
    Leave,
    /// Append them to the file.
    Append,
    /// Pass them to the [`Adopter`](super::Adopter); without an adopter, leave them.
    Take,
    /// Drop them if the segment was created before this time (nanoseconds since the epoch): the file was truncated
    /// then, so older records would be gone. Append the records of a later segment.
    DropOlder(i64),
}

/// What to do with records for terminals and pipes of a dead process, after all other records are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undeliverable {
    /// Keep the segment, and report it.
    #[default]
    Keep,
    /// Drop them, and count them in the report.
    Discard,
}

/// Options of [`recover`](super::recover).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoverOptions {
    /// What to do with undeliverable records.
    pub undeliverable: Undeliverable,
}
