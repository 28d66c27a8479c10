//! Renders a record as a line: pieces, exception and stack, terminator.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The collector calls it for each record and format. The result follows
//! `Formatter.format`.

use super::attribute::Attribute;
use super::compile::{Body, Format};
use super::control::{self, LineEndRule};
use super::malformed::{MARKER, Malformed};
use super::pattern::{AttributeStyle, FieldConversion, Piece};
use super::render_state::{RenderError, RenderState};
use super::repr::{NonAscii, push_repr, push_str};
use super::spec::ControlRule;
use super::styled_spec::DerivedAttribute;
use super::view::{ParsedRecord, RecordView};
use crate::record::Value;

impl Format {
    /// Appends the text that Python's formatter stores in the record as `asctime`. Returns false if the format does not
    /// use `asctime`.
    pub fn push_asctime(&self, time_ns: i64, state: &mut RenderState, out: &mut Vec<u8>) -> bool {
        let Some(asctime) = &self.values.asctime else { return false };
        state.follow_zone();
        asctime.push(time_ns, self.values.clock, &mut state.asctime, out);
        true
    }

    /// Appends the line of `record`, terminator included.
    ///
    /// Always use a `state` with the same format, because it keeps text that the format has rendered.
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
        state.follow_zone();
        let start = out.len();
        if self.render_program(record, state, out) {
            if !self.must_escape(&out[start..]) {
                return Ok(());
            }
            out.truncate(start);
        }
        self.render_parsed(&ParsedRecord::new(record), state, out)
    }

    /// Like [`render`](Self::render), for a record that is already parsed. It renders the format piece by piece.
    ///
    /// # Errors
    ///
    /// See [`render`](Self::render).
    pub fn render_parsed(
        &self,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        state.follow_zone();
        let start = out.len();
        let rendered = match &self.body {
            Body::Text(pieces, end) => self.render_text(pieces, end, record, state, out),
            Body::Json(layout) => layout.render(&self.values, record, state, out),
            Body::Object(layout) => layout.render(&self.values, record, state, out),
            Body::Entry(layout) => layout.render(record, state, out),
            Body::Line(pattern) => pattern.render(&self.values, self.control, record, state, out),
        };
        out.extend_from_slice(&self.terminator);
        if !record.has_room_for(out.len() - start) {
            out.truncate(start);
            return Err(RenderError::TooLong);
        }
        if record.is_malformed() { Err(RenderError::Malformed) } else { rendered }
    }

    /// Whether a line has characters that may have to be escaped. They may be those of the format itself, which stay:
    /// only a line that is made piece by piece can tell.
    #[inline]
    pub(super) fn must_escape(&self, line: &[u8]) -> bool {
        self.control == ControlRule::Escape && control::may_have_control(&line[..line.len() - self.terminator.len()])
    }

    fn render_text(
        &self,
        pieces: &[Piece],
        end: &[u8],
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let start = out.len();
        let mut result = Ok(());
        for piece in pieces {
            if !record.has_room_for(out.len() - start) {
                break;
            }
            let at = out.len();
            let shown = match piece {
                Piece::Literal(literal) => {
                    out.extend_from_slice(literal);
                    continue;
                }
                Piece::Show(attribute, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                    self.values.push_plain(attribute, record, state, out)
                }
                Piece::Show(attribute, show) => self.push_shown(attribute, show, record, state, out),
            };
            if self.control == ControlRule::Escape {
                control::escape_from(at, LineEndRule::Escape, out);
            }
            if let Err(error) = shown {
                // The message already contains its own markers.
                if error != RenderError::Malformed {
                    out.extend_from_slice(MARKER.as_bytes());
                }
                result = Err(error);
            }
        }
        if !end.is_empty() && !out[start..].ends_with(end) {
            out.extend_from_slice(end);
        }
        let end = out.len();
        record.push_attachments(start, out);
        if out.len() > end && (self.control == ControlRule::Escape || pieces.iter().any(shows_escaped)) {
            control::escape_from(end, LineEndRule::Keep, out);
        }
        result
    }

    /// Appends an attribute through its directive or spec.
    pub(super) fn push_shown(
        &self,
        attribute: &Attribute,
        show: &AttributeStyle,
        record: &ParsedRecord<'_>,
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        let known = match attribute {
            Attribute::LevelName => self.values.levels.get(record.level).map(Value::Str),
            Attribute::Message | Attribute::AscTime | Attribute::Derived(_) => None,
            attribute => Some(self.values.get(attribute, record)?),
        };
        if let Some(value) = known {
            return show.push(value, &mut state.scratch, out);
        }
        let mut composed = std::mem::take(&mut state.scratch);
        composed.clear();
        let composing = self.values.push_plain(attribute, record, state, &mut composed);
        let text = String::from_utf8_lossy(&composed);
        let shown = show.push(Value::Str(&text), &mut Vec::new(), out);
        state.scratch = composed;
        shown.and(composing)
    }
}

impl AttributeStyle {
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
            FieldConversion::Nothing => return spec.render(value, out).map_err(|Malformed| RenderError::WrongType),
            FieldConversion::Str => push_str(scratch, value),
            FieldConversion::Repr => push_repr(scratch, value, NonAscii::Keep),
            FieldConversion::Ascii => push_repr(scratch, value, NonAscii::Escape),
        }
        let text = String::from_utf8_lossy(scratch);
        spec.render(Value::Str(&text), out).map_err(|Malformed| RenderError::WrongType)
    }
}

fn shows_escaped(piece: &Piece) -> bool {
    matches!(piece, Piece::Show(Attribute::Derived(derived), _) if **derived == DerivedAttribute::EscapedMessage)
}
