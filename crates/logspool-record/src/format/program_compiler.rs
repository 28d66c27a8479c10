//! Compiles a call site and the parts of a format to the pieces of a flat program.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The layouts call it (`program.rs`, `json.rs`, `line_pattern.rs`).

use super::attribute::Attribute;
use super::json_escape::{push_ascii_escaped, push_escaped};
use super::line_program::{ArgumentForm, LinePiece, LinePieces, TextPlace, TimedPart};
use super::raw_line::{MAX_DECIMALS, PaddedText};
use super::template::SiteTemplate;

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
    thread_names: usize,
    place: TextPlace,
}

impl ProgramCompiler {
    pub(super) fn add(&mut self, piece: LinePiece) {
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

    /// Adds the start of an entry that has `parts` parts without the context.
    pub(super) fn add_entry_start(&mut self, parts: u16) {
        let constant = std::mem::take(&mut self.constant);
        self.constant_bytes += constant.len();
        let mut text = PaddedText::default();
        text.set(|bytes| bytes.extend_from_slice(&constant));
        self.pieces.push(LinePiece::EntryStart(parts, text));
    }

    /// A compiler of lines whose texts are in JSON strings, or in none.
    pub(super) fn new(place: TextPlace) -> Self {
        Self { place, ..Self::default() }
    }

    pub(super) fn add_thread(&mut self) {
        self.add(LinePiece::Thread);
    }

    /// Adds the name of the thread. Returns false if it is there already: the room of a line is for one.
    pub(super) fn add_thread_name(&mut self) -> bool {
        self.thread_names += 1;
        self.add(LinePiece::ThreadName);
        self.thread_names == 1
    }

    /// Adds the thread's id, or its name in quotes, as a value of JSON. Returns false if the name is there already.
    pub(super) fn add_json_thread(&mut self, attribute: &Attribute) -> bool {
        if *attribute == Attribute::Thread {
            self.add_thread();
            return true;
        }
        self.constant.push(b'"');
        let is_added = self.add_thread_name();
        self.constant.push(b'"');
        is_added
    }

    /// Adds a text of the message's template.
    fn add_text(&mut self, text: &[u8]) {
        match self.place {
            TextPlace::Line => self.constant.extend_from_slice(text),
            TextPlace::Json => push_escaped(&mut self.constant, text),
            TextPlace::AsciiJson => push_ascii_escaped(&mut self.constant, &String::from_utf8_lossy(text)),
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

    /// Adds the pieces of the message of a call site. Without a template, the record contains it. Returns false if the
    /// template has a part that programs do not render.
    pub(super) fn add_message(&mut self, template: Option<&SiteTemplate>) -> bool {
        self.messages += 1;
        // The arguments are read once.
        if self.messages > 1 {
            return false;
        }
        match template {
            None => {
                self.add(LinePiece::Message);
                true
            }
            Some(template) => self.add_template(template),
        }
    }

    fn add_template(&mut self, template: &SiteTemplate) -> bool {
        match template {
            SiteTemplate::Plain(text) => {
                self.add_text(text.as_bytes());
                true
            }
            SiteTemplate::Percent(template) => {
                if template.directives().is_empty() {
                    // Without arguments, the source is the message. With arguments, the program gives up.
                    self.add_text(template.source().as_bytes());
                    return true;
                }
                self.add_arguments(template.forms())
            }
            SiteTemplate::Braced(template) => self.add_arguments(template.forms()),
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

    /// The pieces. They are empty if the constant texts are too long.
    pub(super) fn finish(mut self) -> LinePieces {
        self.end_constant();
        if self.constant_bytes > MAX_CONSTANT_BYTES || self.pieces.len() > MAX_CONSTANT_BYTES {
            return LinePieces::default();
        }
        let times = |piece: &LinePiece| match piece {
            LinePiece::Timed(parts, _) => parts.iter().filter(|part| !matches!(part, TimedPart::Constant(_))).count(),
            _ => 0,
        };
        LinePieces {
            times: self.pieces.iter().map(times).sum(),
            bytes: self.constant_bytes + self.pieces.iter().map(LinePiece::own_bytes).sum::<usize>(),
            place: self.place,
            is_entry: matches!(self.pieces.last(), Some(LinePiece::EntryEnd)),
            pieces: self.pieces,
        }
    }
}

/// The pieces of a message alone, for records whose lines are made piece by piece. They are empty if programs do not
/// render a part of the template.
pub(super) fn message_pieces(template: &SiteTemplate) -> LinePieces {
    let mut compiler = ProgramCompiler::default();
    if compiler.add_template(template) { compiler.finish() } else { LinePieces::default() }
}
