//! Flat programs: a format and a call site compiled together to the pieces of a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). For one site, level and logger, everything except the time and the
//! arguments is constant. The constant texts of the format and of the message template are joined. The room for the
//! line is reserved once, and the text of the time is kept as long as it is the same.
//!
//! A program renders only records without context entries, whose arguments have the frequent types. For every other
//! record it gives up, nothing of the line is kept, and the pieces of the format are rendered one by one (`line.rs`).
//! Both ways write the same bytes. Every grammar compiles to the same pieces.

use super::attribute::Attribute;
use super::compile::{Body, Format};
use super::line_program::{
    ArgumentForm, LinePiece, LineProgram, MAX_MISSES, PLACES, ProgramCache, ProgramKey, TimedPart,
};
use super::pattern::{AttributeStyle, Piece};
use super::raw_line::{MAX_DECIMALS, NUMBER_BYTES, PaddedText};
use super::render_state::RenderState;
use super::template::SiteTemplate;
use super::view::{ParsedRecord, RecordView, next_serial};
use crate::record::tag;

/// Maximum constant bytes of a program. Longer ones are not kept.
///
/// Chosen: lines are shorter than this. A format then keeps at most 256 KiB.
const MAX_CONSTANT_BYTES: usize = 4096;

impl Format {
    /// Renders a record by its program. Returns false if the record needs the general way; nothing is written then.
    #[inline]
    pub(super) fn render_program(&self, record: &RecordView<'_>, state: &mut RenderState, out: &mut Vec<u8>) -> bool {
        let Body::Text(pieces, end) = &self.body else { return false };
        let values = record.values.rest();
        if needs_general_way(values) {
            return false;
        }
        if state.programs.places.is_empty() {
            state.programs.places.resize_with(PLACES, LineProgram::default);
        }
        let place = place_of(record);
        let known = &state.programs.places[place];
        if !known.is_for(record) {
            let program = self.compile_program(pieces, end, record, state);
            state.programs.places[place] =
                LineProgram { site: Some(site_of(record)), serial: next_serial(), ..program };
        }
        let key = ProgramKey { place, serial: state.programs.places[place].serial };
        self.render_by_program(key, record.time_ns, values, state, out)
    }

    /// Renders another record of the site, level and logger of a program. Returns false if the record needs
    /// [`render`](Self::render), or if the format no longer has the program; nothing is written then.
    ///
    /// Always use a `state` with the same format.
    #[inline]
    pub fn render_again(
        &self,
        key: ProgramKey,
        time_ns: i64,
        values: &[u8],
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> bool {
        state.follow_zone();
        let start = out.len();
        let is_rendered = !needs_general_way(values) && self.render_by_program(key, time_ns, values, state, out);
        if is_rendered && self.must_escape(&out[start..]) {
            out.truncate(start);
            return false;
        }
        is_rendered
    }

    #[inline]
    fn render_by_program(
        &self,
        key: ProgramKey,
        time_ns: i64,
        values: &[u8],
        state: &mut RenderState,
        out: &mut Vec<u8>,
    ) -> bool {
        let RenderState { programs: ProgramCache { places, time, .. }, asctime: seconds, .. } = state;
        let Some(program) = places.get_mut(key.place).filter(|program| program.is_usable(key.serial)) else {
            return false;
        };
        if program.times > 0
            && !time.valid.contains(&time_ns)
            && let Some(asctime) = &self.values.asctime
        {
            time.set(|text| asctime.push(time_ns, self.values.clock, seconds, text));
            time.valid = asctime.same_text_around(time_ns);
        }
        let rendered = program.run(time, values, out);
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
                    compiler.add_time();
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

impl RenderState {
    /// The program of the site, level and logger of a record, if there is one that renders such records.
    pub fn program_of(&self, record: &RecordView<'_>) -> Option<ProgramKey> {
        let place = place_of(record);
        let program = self.programs.places.get(place).filter(|program| program.is_for(record))?;
        program.is_usable(program.serial).then_some(ProgramKey { place, serial: program.serial })
    }
}

impl LineProgram {
    #[inline]
    fn is_for(&self, record: &RecordView<'_>) -> bool {
        self.site == Some(site_of(record)) && self.level == record.level && self.logger == record.logger
    }

    /// Whether this is the program with this number, and it renders records.
    #[inline]
    fn is_usable(&self, serial: u64) -> bool {
        self.serial == serial && !self.pieces.is_empty() && self.misses < MAX_MISSES
    }
}

/// Whether the values begin with an entry that programs do not render.
#[inline]
fn needs_general_way(values: &[u8]) -> bool {
    values.first().is_some_and(|first| *first >= tag::CONTEXT && *first != tag::MESSAGE)
}

#[inline]
fn site_of(record: &RecordView<'_>) -> u64 {
    record.site.map_or(0, |site| site.serial())
}

#[inline]
fn place_of(record: &RecordView<'_>) -> usize {
    site_of(record).wrapping_add(31 * u64::from(record.level)) as usize % PLACES
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

    fn add_time(&mut self) {
        let before = std::mem::take(&mut self.constant);
        self.constant_bytes += before.len();
        if !matches!(self.pieces.last(), Some(LinePiece::Timed(..))) {
            self.pieces.push(LinePiece::Timed(Vec::new(), PaddedText::default()));
        }
        if let Some(LinePiece::Timed(parts, _)) = self.pieces.last_mut() {
            parts.push(TimedPart::Constant(before));
            parts.push(TimedPart::Time);
        }
    }

    fn end_constant(&mut self) {
        if self.constant.is_empty() {
            return;
        }
        self.constant_bytes += self.constant.len();
        let constant = std::mem::take(&mut self.constant);
        if let Some(LinePiece::Timed(parts, _)) = self.pieces.last_mut() {
            parts.push(TimedPart::Constant(constant));
            return;
        }
        let mut text = PaddedText::default();
        text.set(|bytes| bytes.extend_from_slice(&constant));
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
        let times = |piece: &LinePiece| match piece {
            LinePiece::Timed(parts, _) => parts.iter().filter(|part| matches!(part, TimedPart::Time)).count(),
            _ => 0,
        };
        program.times = self.pieces.iter().map(times).sum();
        program.bytes = self.constant_bytes + arguments * NUMBER_BYTES;
        program.joined = u64::MAX;
        program.pieces = self.pieces;
    }
}
