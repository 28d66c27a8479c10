//! Flat programs: a format and a call site compiled together to the pieces of a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). For one site, level and logger, everything except the time and the
//! arguments is constant. The constant texts of the format and of the message template are joined. The room for the
//! line is reserved once, and the text of the time is kept as long as it is the same.
//!
//! A program renders only records whose context is a thread at most, and whose arguments have the frequent types. For
//! every other record it gives up, nothing of the line is kept, and the pieces of the format are rendered one by one
//! (`line.rs`). Their message is rendered by a program of its own, which the call site has (`view.rs`). Both ways write the
//! same bytes. Every grammar compiles to the same pieces.

use super::attribute::Attribute;
use super::compile::{Body, Format};
use super::event_time::event_time;
use super::line_program::{
    ArgumentForm, KeptTime, LineProgram, MAX_MISSES, PLACES, ProgramCache, ProgramKey, TextPlace, is_frequent,
};
use super::moment::{SecondCache, iso_parts, push_civil};
use super::pattern::{AttributeStyle, Piece};
use super::program_compiler::ProgramCompiler;
use super::render_state::RenderState;
use super::view::{CompiledSite, ParsedRecord, RecordView, next_serial};
use crate::record::{Values, tag};

impl Format {
    /// Renders a record by its program. Returns false if the record needs the general way; nothing is written then.
    #[inline]
    pub(super) fn render_program(&self, record: &RecordView<'_>, state: &mut RenderState, out: &mut Vec<u8>) -> bool {
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
            let program = self.compile_program(record, state);
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
        let mut fraction = 0;
        if program.line.times > 0 {
            fraction = self.follow_time(time_ns, time, seconds);
        }
        let rendered = program.run(time, fraction, values, out);
        program.misses += u8::from(!rendered);
        rendered
    }

    /// Makes `time` the time of a record. Returns the fraction of the second, in the digits that the format shows.
    #[inline]
    fn follow_time(&self, time_ns: i64, time: &mut KeptTime, seconds: &mut SecondCache) -> u32 {
        let (second, fraction) = match &self.body {
            Body::Line(pattern) => pattern.second_and_fraction(time_ns).unwrap_or_default(),
            Body::Json(_) => iso_parts(self.values.clock.created(time_ns)),
            Body::Entry(_) => {
                let (second, nanoseconds) = event_time(time_ns);
                (i64::from(second), nanoseconds)
            }
            Body::Text(..) | Body::Object(_) => {
                if !time.valid.contains(&time_ns)
                    && let Some(asctime) = &self.values.asctime
                {
                    time.set(|text, _| asctime.push(time_ns, self.values.clock, seconds, text));
                    time.valid = asctime.same_text_around(time_ns);
                }
                return 0;
            }
        };
        // Only whether it is the same second counts, so the range has one number.
        if time.valid != (second..second.saturating_add(1)) {
            time.set(|before, after| match &self.body {
                Body::Line(pattern) => pattern.push_second(second, before, after),
                Body::Entry(_) => before.extend_from_slice(&(second as u32).to_be_bytes()),
                _ => push_civil(second, before),
            });
            time.valid = second..second.saturating_add(1);
        }
        fraction
    }

    /// Compiles the program for the site, level and logger of `record`.
    #[cold]
    fn compile_program(&self, record: &RecordView<'_>, state: &mut RenderState) -> LineProgram {
        // Nothing of this one record may become a constant.
        let record = &RecordView { values: Values::new(&[]), ..*record };
        let mut compiler = ProgramCompiler::new(match &self.body {
            Body::Json(_) => TextPlace::Json,
            Body::Object(layout) => layout.text_place(),
            Body::Text(..) | Body::Line(_) | Body::Entry(_) => TextPlace::Line,
        });
        let is_compiled = match &self.body {
            Body::Text(pieces, end) => end.is_empty() && self.add_pieces(pieces, record, state, &mut compiler),
            Body::Json(layout) => layout.add_to_program(&self.values, record, state, &mut compiler),
            Body::Line(pattern) => pattern.add_to_program(&self.values, record, state, &mut compiler),
            Body::Object(layout) => layout.add_to_program(&self.values, record, state, &mut compiler),
            Body::Entry(layout) => self.terminator.is_empty() && layout.add_to_program(record, &mut compiler),
        };
        compiler.constant.extend_from_slice(&self.terminator);
        let mut program = LineProgram { level: record.level, logger: record.logger.to_owned(), ..Default::default() };
        if is_compiled {
            program.line = compiler.finish();
            program.joined = u64::MAX;
        }
        program
    }

    fn add_pieces(
        &self,
        pieces: &[Piece],
        record: &RecordView<'_>,
        state: &mut RenderState,
        compiler: &mut ProgramCompiler,
    ) -> bool {
        let parsed = ParsedRecord::new(record);
        pieces.iter().all(|piece| match piece {
            Piece::Literal(literal) => {
                compiler.constant.extend_from_slice(literal);
                true
            }
            Piece::Show(Attribute::Message, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                compiler.add_message(record.site.and_then(CompiledSite::template))
            }
            Piece::Show(Attribute::AscTime, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                compiler.add_time();
                true
            }
            Piece::Show(Attribute::Thread, show) => {
                compiler.add_thread();
                match show {
                    AttributeStyle::Plain | AttributeStyle::Formatted => true,
                    AttributeStyle::Percent(directive) => directive.argument_form() == Some(ArgumentForm::Decimal),
                    AttributeStyle::Brace(..) => false,
                }
            }
            Piece::Show(Attribute::ThreadName, AttributeStyle::Plain | AttributeStyle::Formatted) => {
                compiler.add_thread_name()
            }
            Piece::Show(attribute, show) => {
                attribute.is_constant()
                    && self.push_shown(attribute, show, &parsed, state, &mut compiler.constant).is_ok()
            }
        })
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
        self.serial == serial && !self.line.pieces.is_empty() && self.misses < MAX_MISSES
    }
}

/// Whether the values begin with an entry that programs do not render.
#[inline]
fn needs_general_way(values: &[u8]) -> bool {
    values.first().is_some_and(|first| *first >= tag::CONTEXT && !is_frequent(*first))
}

#[inline]
fn site_of(record: &RecordView<'_>) -> u64 {
    record.site.map_or(0, |site| site.serial())
}

#[inline]
fn place_of(record: &RecordView<'_>) -> usize {
    site_of(record).wrapping_add(31 * u64::from(record.level)) as usize % PLACES
}
