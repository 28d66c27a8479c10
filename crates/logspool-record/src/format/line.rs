//! Record to line: pieces, exception and stack, terminator.
//!
//! Stop on the line: *format*, called by the collector for each record and format. Follows `Formatter.format`.

use super::attribute::Attribute;
use super::compile::{Body, Format};
use super::integer::{push_signed, push_unsigned};
use super::moment::SecondCache;
use super::pattern::{Convert, Piece, Show};
use super::percent::{MARKER, Malformed};
use super::repr::{Beyond, push_repr, push_str};
use super::steady::SteadyCache;
use super::view::{OpenRecord, RecordView};
use crate::record::Value;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a record did not become the line it should. But for one that is too long the line is written all the same, with
/// [`MARKER`](super::percent::MARKER) where something is missing: a gap would say less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderError {
    /// The format names an extra field that the record does not have.
    MissingField,
    /// A value of a type that the format does not show; Python would raise.
    WrongType,
    /// The record is damaged: its message is missing, or its values do not fit the template.
    Malformed,
    /// The line would be longer than [`OpenRecord::within`] allows; nothing is written.
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
    fn follow_zone(&mut self) {
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

impl Format {
    /// Appends the text that Python's formatter leaves on a record as `asctime`. `false`: it leaves none.
    pub fn push_asctime(&self, time_ns: i64, state: &mut RenderState, out: &mut Vec<u8>) -> bool {
        let Some(asctime) = &self.asctime else { return false };
        state.follow_zone();
        asctime.push(time_ns, self.clock, &mut state.asctime, out);
        true
    }

    /// Appends the line of `record`, terminator included.
    ///
    /// One `state` belongs to one format: it keeps text that the format made.
    ///
    /// # Errors
    ///
    /// See [`RenderError`].
    pub fn render(
        &self,
        record: &RecordView<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        self.render_open(&OpenRecord::new(record), state, out)
    }

    /// [`render`](Self::render) for a record that goes through several formats and was opened once.
    ///
    /// # Errors
    ///
    /// As [`render`](Self::render).
    pub fn render_open(
        &self,
        record: &OpenRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        state.follow_zone();
        let start = out.len();
        let rendered = match &self.body {
            Body::Text(pieces) => self.render_text(pieces, record, state, out),
            Body::Json(layout) => layout.render(self, record, state, out),
            Body::Entry(layout) => layout.render(record, state, out),
        };
        out.extend_from_slice(&self.terminator);
        if !record.has_room_for(out.len() - start) {
            out.truncate(start);
            return Err(RenderError::TooLong);
        }
        if record.is_malformed() { Err(RenderError::Malformed) } else { rendered }
    }

    fn render_text(
        &self,
        pieces: &[Piece],
        record: &OpenRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let start = out.len();
        let mut result = Ok(());
        for piece in pieces {
            if !record.has_room_for(out.len() - start) {
                break;
            }
            let shown = match piece {
                Piece::Literal(literal) => {
                    out.extend_from_slice(literal);
                    continue;
                }
                Piece::Show(attribute, Show::Plain | Show::Formatted) => self.push_plain(attribute, record, state, out),
                Piece::Show(attribute, show) => self.push_shown(attribute, show, record, state, out),
            };
            if let Err(error) = shown {
                // A damaged message brought its own markers.
                if error != RenderError::Malformed {
                    out.extend_from_slice(MARKER.as_bytes());
                }
                result = Err(error);
            }
        }
        for text in [record.exception, record.stack].into_iter().flatten().filter(|text| !text.is_empty()) {
            if out[start..].last() != Some(&b'\n') {
                out.push(b'\n');
            }
            out.extend_from_slice(text.as_bytes());
        }
        result
    }

    /// Appends `str(attribute)`.
    #[inline]
    pub(super) fn push_plain(
        &self,
        attribute: &Attribute,
        record: &OpenRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        match attribute {
            Attribute::Message => record.push_message(out).map_err(|Malformed| RenderError::Malformed)?,
            Attribute::AscTime => {
                if let Some(asctime) = &self.asctime {
                    asctime.push(record.time_ns, self.clock, &mut state.asctime, out);
                }
            }
            Attribute::Name => out.extend_from_slice(record.logger.as_bytes()),
            Attribute::LevelName => self.push_level_name(record.level, out),
            Attribute::Line => push_unsigned(out, u64::from(record.line())),
            Attribute::FileName => out.extend_from_slice(record.filename().as_bytes()),
            attribute => push_str(out, self.value(attribute, record)?),
        }
        Ok(())
    }

    #[inline]
    fn push_level_name(&self, level: u16, out: &mut Vec<u8>) {
        match self.levels.get(level) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => {
                out.extend_from_slice(b"Level ");
                push_signed(out, i64::from(level));
            }
        }
    }

    /// The value of an attribute that is not composed of others.
    pub(super) fn value<'r>(
        &self,
        attribute: &Attribute,
        record: &'r OpenRecord<'_>,
    ) -> Result<Value<'r>, RenderError> {
        let text = |text: Option<&'r str>| text.map_or(Value::None, Value::Str);
        let time_ns = record.time_ns;
        Ok(match attribute {
            Attribute::Name => Value::Str(record.logger),
            Attribute::LevelNumber => Value::Int(i64::from(record.level)),
            Attribute::PathName => Value::Str(record.file()),
            Attribute::FileName => Value::Str(record.filename()),
            Attribute::Module => Value::Str(record.module()),
            Attribute::Line => Value::Int(i64::from(record.line())),
            Attribute::Function => Value::Str(record.function()),
            Attribute::Created => Value::Float(self.clock.created(time_ns)),
            Attribute::Msecs => Value::Float(self.clock.msecs(time_ns, self.clock.created(time_ns))),
            Attribute::RelativeCreated => Value::Float(self.clock.relative_created(time_ns)),
            Attribute::Thread => record.thread.map_or(Value::None, Value::Int),
            Attribute::ThreadName => text(record.thread_name),
            Attribute::TaskName => text(record.task_name),
            Attribute::ProcessName => text(record.process_name),
            Attribute::Process => self.process_id.map_or(Value::None, |id| Value::Int(i64::from(id))),
            Attribute::Field(name) => record.field(name).ok_or(RenderError::MissingField)?,
            Attribute::Message | Attribute::AscTime | Attribute::LevelName => Value::None,
        })
    }

    /// Appends an attribute through its directive or spec.
    fn push_shown(
        &self,
        attribute: &Attribute,
        show: &Show,
        record: &OpenRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let known = match attribute {
            Attribute::LevelName => self.levels.get(record.level).map(Value::Str),
            Attribute::Message | Attribute::AscTime => None,
            attribute => Some(self.value(attribute, record)?),
        };
        if let Some(value) = known {
            return show.push(value, &mut state.scratch, out);
        }
        let mut composed = std::mem::take(&mut state.scratch);
        composed.clear();
        let composing = self.push_plain(attribute, record, state, &mut composed);
        let text = String::from_utf8_lossy(&composed);
        let shown = show.push(Value::Str(&text), &mut Vec::new(), out);
        state.scratch = composed;
        shown.and(composing)
    }
}

impl Show {
    fn push(&self, value: Value<'_>, scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let (convert, spec) = match self {
            Self::Plain | Self::Formatted => {
                push_str(out, value);
                return Ok(());
            }
            Self::Percent(directive) => {
                return directive.render(value, out).map_err(|Malformed| RenderError::WrongType);
            }
            Self::Brace(convert, spec) => (convert, spec),
        };
        scratch.clear();
        match convert {
            Convert::Nothing => return spec.render(value, out).map_err(|Malformed| RenderError::WrongType),
            Convert::Str => push_str(scratch, value),
            Convert::Repr => push_repr(scratch, value, Beyond::Keep),
            Convert::Ascii => push_repr(scratch, value, Beyond::Escape),
        }
        let text = String::from_utf8_lossy(scratch);
        spec.render(Value::Str(&text), out).map_err(|Malformed| RenderError::WrongType)
    }
}
