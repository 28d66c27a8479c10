//! The state that rendering keeps from one record to the next, and the errors of rendering.

use std::sync::atomic::{AtomicU64, Ordering};

use super::constant::ConstantTextCache;
use super::line_program::ProgramCache;
use super::moment::SecondCache;

/// Reason why a record was not rendered as a correct line.
///
/// The line is still written, except for [`TooLong`](Self::TooLong). It has the marker `<?>` at each place where
/// something is missing, because an incomplete line is more useful than no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderError {
    /// The format names an extra field that the record does not have.
    MissingField,
    /// The format does not show values of this type; Python would raise.
    WrongType,
    /// The record is damaged: its message is missing, or its values do not fit the template.
    Malformed,
    /// The line would be longer than [`ParsedRecord::with_limit`](super::view::ParsedRecord::with_limit) allows.
    /// Nothing is written.
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

/// State that a thread keeps from one record to the next of the same format. It holds text that the next record may
/// also show, and a scratch buffer.
#[derive(Debug, Clone, Default)]
pub struct RenderState {
    pub(super) asctime: SecondCache,
    pub(super) iso: SecondCache,
    pub(super) scratch: Vec<u8>,
    pub(super) constant: ConstantTextCache,
    pub(super) programs: ProgramCache,
    zone: u64,
}

/// Capacity in bytes above which [`RenderState::shrink`] drops the kept buffers.
///
/// Chosen: lines are shorter than this. A segment has hundreds of formats, and each keeps up to 64 texts.
const KEPT_BYTES: usize = 16 * 1024;

/// A counter that changes when the time zone of the process changes.
///
/// It is a static that is read once per record. The binding that notices the change has no reference to the states.
static ZONE: AtomicU64 = AtomicU64::new(0);

/// A number that changes with the time zone of the process (`tzset`).
pub fn zone_changes() -> u64 {
    ZONE.load(Ordering::Relaxed)
}

/// Makes every format drop its cached times, because the time zone of the process has changed (`tzset`).
pub fn zone_changed() {
    ZONE.fetch_add(1, Ordering::Relaxed);
}

/// The zone of the last call of [`notice_zone`], as one number.
static KNOWN_ZONE: AtomicU64 = AtomicU64::new(0);

/// Calls [`zone_changed`] if the program has called `tzset` with another zone since the last call. Call it for each
/// batch of records.
///
/// A program that is not Python's gives no notice. `tzset` changes the globals of the C library that are compared here.
pub fn notice_zone() {
    unsafe extern "C" {
        static timezone: libc::c_long;
        static daylight: libc::c_int;
        static tzname: [*const libc::c_char; 2];
    }
    // SAFETY: aligned globals of the C library. A torn value only drops a text once more than needed, or at the next
    // batch.
    let (offset, has_summer_time, names) = unsafe {
        let names = (&raw const tzname).cast::<usize>();
        let [first, second] = [0, 1].map(|index| names.add(index).read_volatile());
        ((&raw const timezone).read_volatile(), (&raw const daylight).read_volatile(), [first, second])
    };
    let mix = |number: u64, part: u64| (number.rotate_left(5) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
    let parts = [offset as u64, has_summer_time as u64, names[0] as u64, names[1] as u64];
    let zone = parts.into_iter().fold(0, mix);
    if KNOWN_ZONE.swap(zone, Ordering::Relaxed) != zone {
        zone_changed();
    }
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

    /// Call it after a line of `line_bytes` bytes was rendered. Drops the kept texts and buffers if they are unusually
    /// long.
    pub fn shrink(&mut self, line_bytes: usize) {
        if line_bytes.max(self.scratch.capacity()).max(self.asctime.bytes()).max(self.programs.bytes()) > KEPT_BYTES {
            *self = Self { zone: self.zone, ..Self::default() };
        }
    }

    /// Drops the cached text of the last second. Needed after `tzset` and `setlocale`.
    pub fn clear(&mut self) {
        self.asctime.clear();
        self.programs.clear();
        self.iso.clear();
    }
}
