//! The state that rendering keeps between two records, and its errors.

use std::sync::atomic::{AtomicU64, Ordering};

use super::constant::ConstantTextCache;
use super::moment::SecondCache;

/// Why a record did not become a correct line.
///
/// Except for [`TooLong`](Self::TooLong) the line is still written, with the marker `<?>` where
/// something is missing: a gap in the log would show less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderError {
    /// The format names an extra field that the record does not have.
    MissingField,
    /// A value of a type that the format does not show; Python would raise.
    WrongType,
    /// The record is damaged: its message is missing, or its values do not fit the template.
    Malformed,
    /// The line would be longer than [`ParsedRecord::with_limit`](super::view::ParsedRecord::with_limit) allows; nothing is written.
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

/// State that a thread keeps between two records of one format: text that the next record may show too, and a scratch
/// buffer.
#[derive(Debug, Clone, Default)]
pub struct RenderState {
    pub(super) asctime: SecondCache,
    pub(super) iso: SecondCache,
    pub(super) scratch: Vec<u8>,
    pub(super) constant: ConstantTextCache,
    zone: u64,
}

/// Capacity in bytes above which [`RenderState::shrink`] drops the kept buffers.
///
/// Chosen: lines are shorter than that. A segment has hundreds of formats, and each keeps up to 64 texts.
const KEPT_BYTES: usize = 16 * 1024;

/// Changes when the time zone of the process changes.
///
/// A static that is read once a record: the binding that notices the change has no reference to the states.
static ZONE: AtomicU64 = AtomicU64::new(0);

/// Notes for every format that the time zone of the process changed (`tzset`).
pub fn zone_changed() {
    ZONE.fetch_add(1, Ordering::Relaxed);
}

impl RenderState {
    /// Drops texts that were rendered for another time zone.
    #[inline]
    pub(super) fn follow_zone(&mut self) {
        let zone = ZONE.load(Ordering::Relaxed);
        if self.zone != zone {
            self.zone = zone;
            self.clear();
        }
    }

    /// To be called after a line of `line_bytes`. Drops the kept texts and buffers if they are uncommonly long.
    pub fn shrink(&mut self, line_bytes: usize) {
        if line_bytes.max(self.scratch.capacity()).max(self.asctime.bytes()) > KEPT_BYTES {
            *self = Self { zone: self.zone, ..Self::default() };
        }
    }

    /// Drops the text of the last second; needed after `tzset` and `setlocale`.
    pub fn clear(&mut self) {
        self.asctime.clear();
        self.iso.clear();
    }
}
