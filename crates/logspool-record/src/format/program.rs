//! Flat programs: a format and a call site compiled together to the pieces of a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). For one site, level and logger, everything except the time and the
//! arguments is constant. The constant texts of the format and of the message template are joined. The room for the
//! line is reserved once, and the text of the time is kept as long as it is the same.
//!
//! A program renders only records without context entries, whose arguments have the frequent types. For every other
//! record it gives up, nothing of the line is kept, and the pieces of the format are rendered one by one (`line.rs`). Both ways
//! write the same bytes. Every grammar compiles to the same pieces.

use std::ops::Range;

use super::attribute::Attribute;
use super::compile::{Body, Format};
use super::float::scaled_half_even;
use super::pattern::{AttributeStyle, Piece};
use super::raw_line::{MAX_DECIMALS, NUMBER_BYTES, PaddedText, RawLine};
use super::render_state::RenderState;
use super::template::SiteTemplate;
use super::view::{ParsedRecord, RecordView};
use crate::record::tag;

/// Number of programs that a format keeps. After a collision the program is compiled again.
///
/// Chosen: as many as texts in `ConstantTextCache`.
const PLACES: usize = 64;

/// After so many records that a program could not render, it is not tried any more.
///
/// Chosen: an attempt that fails is wasted work. A site whose arguments often have other types makes so few of them that
/// nobody notices.
const MAX_MISSES: u8 = 32;

/// Maximum constant bytes of a program. Longer ones are not kept.
///
/// Chosen: lines are shorter than this. A format then keeps at most 256 KiB.
const MAX_CONSTANT_BYTES: usize = 4096;

/// A frequent form of an argument in a message template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentForm {
    /// Text or an integer, shown as it is.
    Plain,
    /// An integer in decimal.
    Decimal,
    /// A double with this number of digits after the point.
    Fixed(usize),
}

/// One piece of a line.
#[derive(Debug, Clone)]
enum LinePiece {
    Constant(PaddedText),
    Time,
    Argument(ArgumentForm),
    /// The message that the record contains.
    Message,
}

/// The pieces of the lines of one site, level and logger.
#[derive(Debug, Clone, Default)]
struct LineProgram {
    /// `None`: the place is empty.
    site: Option<u64>,
    level: u16,
    logger: String,
    /// Empty: lines of this site cannot be rendered by a program.
    pieces: Vec<LinePiece>,
    /// Bytes of the constant texts, and the most bytes of the numbers.
    bytes: usize,
    /// Number of places that show the time.
    times: usize,
    misses: u8,
}

/// The programs of one format, and the text of the last time.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramCache {
    places: Vec<LineProgram>,
    time: TimeText,
}

/// The text of the time, and the times at which it is the same.
#[derive(Debug, Clone, Default)]
struct TimeText {
    valid: Range<i64>,
    text: PaddedText,
}

impl ProgramCache {
    /// Drops the text of the time. Needed after `tzset` and `setlocale`.
    pub(super) fn clear(&mut self) {
        self.time.valid = 0..0;
    }

    /// Bytes of memory that the text of the time takes.
    pub(super) fn bytes(&self) -> usize {
        self.time.text.capacity()
    }
}

impl Format {
    /// Renders a record by its program. Returns false if the record needs the general way; nothing is written then.
    #[inline]
    pub(super) fn render_program(&self, record: &RecordView<'_>, state: &mut RenderState, out: &mut Vec<u8>) -> bool {
        let first = record.values.rest().first().copied().unwrap_or(0);
        if first >= tag::CONTEXT && first != tag::MESSAGE {
            return false;
        }
        let Body::Text(pieces, end) = &self.body else { return false };
        if state.programs.places.is_empty() {
            state.programs.places.resize_with(PLACES, LineProgram::default);
        }
        let site = record.site.map_or(0, |site| site.serial());
        let place = site.wrapping_add(31 * u64::from(record.level)) as usize % PLACES;
        let known = &state.programs.places[place];
        if known.site != Some(site) || known.level != record.level || known.logger != record.logger {
            let program = self.compile_program(pieces, end, record, state);
            state.programs.places[place] = LineProgram { site: Some(site), ..program };
        }
        let RenderState { programs: ProgramCache { places, time }, asctime: seconds, .. } = state;
        let program = &mut places[place];
        if program.pieces.is_empty() || program.misses >= MAX_MISSES {
            return false;
        }
        if program.times > 0
            && !time.valid.contains(&record.time_ns)
            && let Some(asctime) = &self.values.asctime
        {
            time.text.set(|text| asctime.push(record.time_ns, self.values.clock, seconds, text));
            time.valid = asctime.same_text_around(record.time_ns);
        }
        let rendered = program.run(&time.text, record.values.rest(), out);
        program.misses += u8::from(!rendered);
        rendered
    }

    /// Compiles the program for the site, level and logger of `record`.
    #[cold]
    fn compile_program(
        &self,
        pieces: &[Piece],
        end: &[u8],
        record: &RecordView<'_>,
        state: &mut RenderState,
    ) -> LineProgram {
        let mut compiler = ProgramCompiler::default();
        let parsed = ParsedRecord::new(record);
        let is_compiled = end.is_empty()
            && pieces.iter().all(|piece| match piece {
                Piece::Literal(literal) => {
                    compiler.constant.extend_from_slice(literal);
                    true
                }
                Piece::Show(Attribute::Message, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                    compiler.add_message(record)
                }
                Piece::Show(Attribute::AscTime, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                    compiler.add(LinePiece::Time);
                    true
                }
                Piece::Show(attribute, show) => {
                    attribute.is_constant()
                        && self.push_shown(attribute, show, &parsed, state, &mut compiler.constant).is_ok()
                }
            });
        compiler.constant.extend_from_slice(&self.terminator);
        let mut program = LineProgram { level: record.level, logger: record.logger.to_owned(), ..Default::default() };
        if is_compiled {
            compiler.finish(&mut program);
        }
        program
    }
}

#[derive(Debug, Default)]
struct ProgramCompiler {
    pieces: Vec<LinePiece>,
    constant: Vec<u8>,
    constant_bytes: usize,
    messages: usize,
}

impl ProgramCompiler {
    fn add(&mut self, piece: LinePiece) {
        self.end_constant();
        self.pieces.push(piece);
    }

    fn end_constant(&mut self) {
        if self.constant.is_empty() {
            return;
        }
        self.constant_bytes += self.constant.len();
        let mut text = PaddedText::default();
        text.set(|bytes| bytes.append(&mut self.constant));
        self.pieces.push(LinePiece::Constant(text));
    }

    /// Adds the pieces of the message. Returns false if the template has a part that programs do not render.
    fn add_message(&mut self, record: &RecordView<'_>) -> bool {
        self.messages += 1;
        // The arguments are read once.
        if self.messages > 1 {
            return false;
        }
        match record.site.and_then(|site| site.template()) {
            None => {
                self.add(LinePiece::Message);
                true
            }
            Some(SiteTemplate::Plain(text)) => {
                self.constant.extend_from_slice(text.as_bytes());
                true
            }
            Some(SiteTemplate::Percent(template)) => {
                if template.directives().is_empty() {
                    // Without arguments, the source is the message. With arguments, the program gives up.
                    self.constant.extend_from_slice(template.source().as_bytes());
                    return true;
                }
                self.add_arguments(template.forms())
            }
            Some(SiteTemplate::Braced(template)) => self.add_arguments(template.forms()),
        }
    }

    /// Adds literals, each with the argument after it. `None` for an argument: programs do not render its form.
    fn add_arguments<'a>(
        &mut self,
        forms: Option<impl Iterator<Item = (&'a str, Option<Option<ArgumentForm>>)>>,
    ) -> bool {
        let Some(forms) = forms else { return false };
        for (literal, form) in forms {
            self.constant.extend_from_slice(literal.as_bytes());
            match form {
                None => {}
                Some(Some(ArgumentForm::Fixed(decimals))) if decimals > MAX_DECIMALS => return false,
                Some(Some(form)) => self.add(LinePiece::Argument(form)),
                Some(None) => return false,
            }
        }
        true
    }

    fn finish(mut self, program: &mut LineProgram) {
        self.end_constant();
        if self.constant_bytes > MAX_CONSTANT_BYTES || self.pieces.len() > MAX_CONSTANT_BYTES {
            return;
        }
        let count = |is_one: fn(&LinePiece) -> bool| self.pieces.iter().filter(|piece| is_one(piece)).count();
        let arguments = count(|piece| matches!(piece, LinePiece::Argument(_)));
        program.times = count(|piece| matches!(piece, LinePiece::Time));
        program.bytes = self.constant_bytes + arguments * NUMBER_BYTES;
        program.pieces = self.pieces;
    }
}

impl LineProgram {
    /// Appends the line of a record with these values. Returns false if the values are not those that the program
    /// renders; nothing is written then.
    #[inline]
    fn run(&self, time: &PaddedText, values: &[u8], out: &mut Vec<u8>) -> bool {
        // Texts of arguments and of the message are parts of `values`, and no two of them overlap.
        let mut line = RawLine::new(out, self.bytes + self.times * time.len() + values.len());
        let mut rest = values;
        for piece in &self.pieces {
            // SAFETY: the room is the sum of the most bytes of all pieces. A number has `NUMBER_BYTES` of it.
            let written = unsafe {
                match piece {
                    LinePiece::Constant(text) => {
                        line.padded(text);
                        continue;
                    }
                    LinePiece::Time => {
                        line.padded(time);
                        continue;
                    }
                    LinePiece::Argument(ArgumentForm::Fixed(decimals)) => push_fixed(&mut line, &mut rest, *decimals),
                    LinePiece::Argument(form) => push_plain(&mut line, &mut rest, *form),
                    LinePiece::Message => push_text(&mut line, &mut rest, tag::MESSAGE),
                }
            };
            if written.is_none() {
                return false;
            }
        }
        if !rest.is_empty() {
            return false;
        }
        line.finish();
        true
    }
}

/// # Safety
///
/// The line has room for the values and for a number.
#[inline]
unsafe fn push_fixed(line: &mut RawLine<'_>, rest: &mut &[u8], decimals: usize) -> Option<()> {
    let number = f64::from_ne_bytes(take_payload(rest, tag::FLOAT)?);
    if !number.is_finite() {
        return None;
    }
    let scaled = scaled_half_even(number.abs(), decimals)?;
    // SAFETY: the caller guarantees the room.
    unsafe { line.fixed(number.is_sign_negative(), scaled, decimals) };
    Some(())
}

/// # Safety
///
/// The line has room for the values and for a number.
#[inline]
unsafe fn push_plain(line: &mut RawLine<'_>, rest: &mut &[u8], form: ArgumentForm) -> Option<()> {
    if *rest.first()? == tag::INT {
        let number = i64::from_ne_bytes(take_payload(rest, tag::INT)?);
        // SAFETY: the caller guarantees the room.
        unsafe { line.integer(number) };
        return Some(());
    }
    if form == ArgumentForm::Decimal {
        return None;
    }
    // SAFETY: the caller guarantees the room.
    unsafe { push_text(line, rest, tag::STR) }
}

/// # Safety
///
/// The line has room for the values.
#[inline]
unsafe fn push_text(line: &mut RawLine<'_>, rest: &mut &[u8], tag: u8) -> Option<()> {
    let len = u32::from_ne_bytes(take_payload(rest, tag)?) as usize;
    let text = *rest;
    let (own, after) = text.split_at_checked(len)?;
    if !is_short_ascii(text, len) {
        std::str::from_utf8(own).ok()?;
    }
    *rest = after;
    // SAFETY: `text` has `len` bytes, and the caller guarantees the room.
    unsafe { line.text(text, len) };
    Some(())
}

/// Whether the first `len` bytes are ASCII. Returns false, too, if the text is not short or is at the end of the record.
#[inline]
fn is_short_ascii(text: &[u8], len: usize) -> bool {
    let Some(block) = text.first_chunk::<16>() else { return false };
    // The bytes after the text are shifted out.
    let block = u128::from_le_bytes(*block);
    (1..=16).contains(&len) && (block << (8 * (16 - len))) & 0x8080_8080_8080_8080_8080_8080_8080_8080 == 0
}

/// Takes a tag and the payload after it. `None`: another tag, or too few bytes.
#[inline]
fn take_payload<const N: usize>(rest: &mut &[u8], tag: u8) -> Option<[u8; N]> {
    let (first, after) = rest.split_first()?;
    let (payload, after) = after.split_first_chunk::<N>()?;
    if *first != tag {
        return None;
    }
    *rest = after;
    Some(*payload)
}
