//! Compiles a call site and the parts of a format to the pieces of a flat program.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The layouts call it (`program.rs`, `json.rs`, `line_pattern.rs`).

use super::json_escape::push_escaped;
use super::line_program::{ArgumentForm, LinePiece, LineProgram, TimedPart};
use super::raw_line::{MAX_DECIMALS, NUMBER_BYTES, PaddedText};
use super::template::SiteTemplate;
use super::view::RecordView;

/// Maximum constant bytes of a program. Longer ones are not kept.
///
/// Chosen: lines are shorter than this. A format then keeps at most 256 KiB.
const MAX_CONSTANT_BYTES: usize = 4096;

/// The pieces so far.
#[derive(Debug, Default)]
pub(super) struct ProgramCompiler {
    pieces: Vec<LinePiece>,
    /// Constant text after the last piece.
    pub(super) constant: Vec<u8>,
    constant_bytes: usize,
    messages: usize,
    is_json: bool,
}

impl ProgramCompiler {
    fn add(&mut self, piece: LinePiece) {
        self.end_constant();
        self.pieces.push(piece);
    }

    pub(super) fn add_time(&mut self) {
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

    /// Adds a time of whole seconds, its fraction and the text after it.
    pub(super) fn add_split_time(&mut self, digits: usize, has_after: bool) {
        self.add_time();
        if digits > 0 {
            self.add(LinePiece::Fraction(digits));
        }
        if has_after {
            self.pieces.push(LinePiece::Timed(vec![TimedPart::AfterFraction], PaddedText::default()));
        }
    }

    /// As [`Self::add_message`], inside a JSON string.
    pub(super) fn add_json_message(&mut self, record: &RecordView<'_>) -> bool {
        self.is_json = true;
        self.add_message(record)
    }

    /// Adds a text of the message's template.
    fn add_text(&mut self, text: &[u8]) {
        if self.is_json {
            push_escaped(&mut self.constant, text);
        } else {
            self.constant.extend_from_slice(text);
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
    pub(super) fn add_message(&mut self, record: &RecordView<'_>) -> bool {
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
                self.add_text(text.as_bytes());
                true
            }
            Some(SiteTemplate::Percent(template)) => {
                if template.directives().is_empty() {
                    // Without arguments, the source is the message. With arguments, the program gives up.
                    self.add_text(template.source().as_bytes());
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
            self.add_text(literal.as_bytes());
            match form {
                None => {}
                Some(Some(ArgumentForm::Fixed(decimals))) if decimals > MAX_DECIMALS => return false,
                Some(Some(form)) => self.add(LinePiece::Argument(form)),
                Some(None) => return false,
            }
        }
        true
    }

    pub(super) fn finish(mut self, program: &mut LineProgram) {
        self.end_constant();
        if self.constant_bytes > MAX_CONSTANT_BYTES || self.pieces.len() > MAX_CONSTANT_BYTES {
            return;
        }
        let count = |is_one: fn(&LinePiece) -> bool| self.pieces.iter().filter(|piece| is_one(piece)).count();
        let numbers = count(|piece| matches!(piece, LinePiece::Argument(_) | LinePiece::Fraction(_)));
        let times = |piece: &LinePiece| match piece {
            LinePiece::Timed(parts, _) => parts.iter().filter(|part| !matches!(part, TimedPart::Constant(_))).count(),
            _ => 0,
        };
        program.times = self.pieces.iter().map(times).sum();
        program.bytes = self.constant_bytes + numbers * NUMBER_BYTES;
        program.is_json = self.is_json;
        program.joined = u64::MAX;
        program.pieces = self.pieces;
    }
}
