//! What the caller of a recovery wants done with what dead processes left.

/// What happens to what is left for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// It stays.
    Leave,
    /// It is appended.
    Append,
    /// The [`Adopter`](super::Adopter) takes it; where there is none it stays.
    Take,
    /// A segment made before this time (nanoseconds since the epoch) loses it, as the file lost what it held: it was
    /// opened anew. Of a later segment it is appended.
    DoneAway(i64),
}

/// What to do with records for terminals and pipes of a dead process, once all others are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Undeliverable {
    /// Keep the segment, and say so in the report.
    #[default]
    Keep,
    /// Give them up, and count them in the report.
    Discard,
}

/// Options of [`recover`](super::recover).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What happens to records that can go nowhere.
    pub undeliverable: Undeliverable,
}
