//! What rendering keeps between two records, and why it may fail.

use std::sync::atomic::{AtomicU64, Ordering};

use super::moment::SecondCache;
use super::steady::SteadyCache;

/// Why a record did not become the line it should. But for one that is too long the line is written all the same, with
/// [`MARKER`](super::malformed::MARKER) where something is missing: a gap would say less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderError {
    /// The format names an extra field that the record does not have.
    MissingField,
    /// A value of a type that the format does not show; Python would raise.
    WrongType,
    /// The record is damaged: its message is missing, or its values do not fit the template.
    Malformed,
    /// The line would be longer than [`OpenRecord::within`](super::view::OpenRecord::within) allows; nothing is written.
    TooLong,
}

impl std::fmt::Display for RenderError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::MissingField => "cannot format whole record: an extra field is missing",
            Self::WrongType => "cannot format whole record: a value is of a type that the format does not show",
            Self::Malformed => "cannot format whole record: its values do not fit its template",
            Self::TooLong => "cannot format record: its line would be too long",
        })
    }
}

impl std::error::Error for RenderError {}

/// What a thread keeps between two records of one format: text that the next one may show too, and a scratch buffer.
#[derive(Debug, Clone, Default)]
pub struct RenderState {
    pub(super) asctime: SecondCache,
    pub(super) iso: SecondCache,
    pub(super) scratch: Vec<u8>,
    pub(super) steady: SteadyCache,
    zone: u64,
}

/// Bytes of one text that [`RenderState::shrink`] leaves to the next record.
///
/// Chosen: more than lines have; a segment has hundreds of formats, and each keeps up to 64 texts.
const KEPT_BYTES: usize = 16 * 1024;

/// Moves when the time zone of the process changed.
///
/// An atomic of its own, read once a record: the shell that sees the change has no way to the states.
static ZONE: AtomicU64 = AtomicU64::new(0);

/// Tells every format that the time zone of the process changed (`tzset`).
pub fn zone_changed() {
    ZONE.fetch_add(1, Ordering::Relaxed);
}

impl RenderState {
    /// Forgets what was made for another time zone.
    #[inline]
    pub(super) fn follow_zone(&mut self) {
        let zone = ZONE.load(Ordering::Relaxed);
        if self.zone != zone {
            self.zone = zone;
            self.clear();
        }
    }

    /// Behind a line of so many bytes: lets go of what uncommonly long text made it keep.
    pub fn shrink(&mut self, line_bytes: usize) {
        if line_bytes.max(self.scratch.capacity()).max(self.asctime.bytes()) > KEPT_BYTES {
            *self = Self { zone: self.zone, ..Self::default() };
        }
    }

    /// Forgets the text of the last second; needed after `tzset` and `setlocale`.
    pub fn clear(&mut self) {
        self.asctime.clear();
        self.iso.clear();
    }
}
