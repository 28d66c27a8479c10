//! Flat programs: the pieces of the lines of one call site, level and logger, and how they write a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). `program.rs` compiles a format and a call site to a program, and says
//! which records a program renders.

use std::ops::Range;

use super::float::scaled_half_even;
use super::json_escape::first_escape;
use super::raw_line::{PaddedText, RawLine};
use crate::record::tag;

/// Number of programs that a format keeps. After a collision the program is compiled again.
///
/// Chosen: as many as texts in `ConstantTextCache`.
pub(super) const PLACES: usize = 64;

/// After so many records that a program could not render, it is not tried any more.
///
/// Chosen: an attempt that fails is wasted work. A site whose arguments often have other types makes so few of them
/// that nobody notices.
pub(super) const MAX_MISSES: u8 = 32;

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

/// Where the texts of a line are. Outside of plain lines, a text that needs an escape is not rendered by a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// In a line of text.
    #[default]
    Line,
    /// In a JSON string.
    Json,
    /// In a JSON string with ASCII only.
    AsciiJson,
}

impl TextPlace {
    #[inline]
    pub(super) fn must_escape(self, text: &[u8]) -> bool {
        match self {
            Self::Line => false,
            Self::Json => first_escape(text).is_some(),
            Self::AsciiJson => first_escape(text).is_some() || !text.is_ascii() || text.contains(&0x7f),
        }
    }
}

/// Identifies a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramKey {
    pub(super) place: usize,
    pub(super) serial: u64,
}

/// One piece of a line.
#[derive(Debug, Clone)]
pub(super) enum LinePiece {
    Constant(PaddedText),
    /// The time and constants around it, and their joined text for the newest time.
    Timed(Vec<TimedPart>, PaddedText),
    Argument(ArgumentForm),
    /// The message that the record contains.
    Message,
    /// The id of the thread.
    Thread,
    /// The name of the thread. A line shows it once.
    ThreadName,
    /// The fraction of the second, with this number of digits.
    Fraction(usize),
}

/// A part of the text around the time.
#[derive(Debug, Clone)]
pub(super) enum TimedPart {
    Constant(Vec<u8>),
    Time,
    /// The part of the time after the fraction of the second.
    AfterFraction,
}

/// Pieces, and what is known of them together.
#[derive(Debug, Clone, Default)]
pub(super) struct LinePieces {
    /// Empty: nothing is rendered by a program.
    pub(super) pieces: Vec<LinePiece>,
    /// Bytes of the constant texts, and the most bytes of the numbers.
    pub(super) bytes: usize,
    /// Number of places that show the time.
    pub(super) times: usize,
    pub(super) place: TextPlace,
}

/// The pieces of the lines of one site, level and logger.
#[derive(Debug, Clone, Default)]
pub(super) struct LineProgram {
    /// `None`: the place is empty.
    pub(super) site: Option<u64>,
    /// A unique number of each program; 0 at an empty place.
    pub(super) serial: u64,
    pub(super) level: u16,
    pub(super) logger: String,
    pub(super) line: LinePieces,
    /// Number of the time whose text the pieces have. `u64::MAX`: they have none yet.
    pub(super) joined: u64,
    pub(super) misses: u8,
}

/// The programs of one format, and the text of the last time.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgramCache {
    pub(super) places: Vec<LineProgram>,
    pub(super) time: KeptTime,
}

/// The text of the time, and the times at which it is the same.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptTime {
    pub(super) valid: Range<i64>,
    pub(super) text: Vec<u8>,
    /// The text after the fraction of the second. Empty if the time has no fraction.
    pub(super) after: Vec<u8>,
    /// Changes with the text. 0: there was no text yet.
    pub(super) number: u64,
}

impl KeptTime {
    /// Replaces the text with the one that `make` appends.
    #[cold]
    pub(super) fn set(&mut self, make: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>)) {
        self.text.clear();
        self.after.clear();
        make(&mut self.text, &mut self.after);
        self.number += 1;
    }
}

impl ProgramCache {
    /// Drops the text of the time. Needed after `tzset` and `setlocale`.
    pub(super) fn clear(&mut self) {
        self.time.valid = 0..0;
    }

    /// Bytes of memory that the text of the time takes.
    pub(super) fn bytes(&self) -> usize {
        self.time.text.capacity() + self.time.after.capacity()
    }
}

impl LineProgram {
    /// Joins the text of the time with the constants around it.
    #[cold]
    fn join(&mut self, time: &KeptTime) {
        for piece in &mut self.line.pieces {
            if let LinePiece::Timed(parts, joined) = piece {
                joined.set(|text| {
                    for part in parts {
                        text.extend_from_slice(match part {
                            TimedPart::Constant(constant) => constant,
                            TimedPart::Time => &time.text,
                            TimedPart::AfterFraction => &time.after,
                        });
                    }
                });
            }
        }
        self.joined = time.number;
    }

    /// Appends the line of a record with these values. Returns false if the values are not those that the program
    /// renders; nothing is written then.
    #[inline]
    pub(super) fn run(&mut self, time: &KeptTime, fraction: u32, values: &[u8], out: &mut Vec<u8>) -> bool {
        if self.line.times > 0 && self.joined != time.number {
            if self.line.place.must_escape(&time.text) {
                return false;
            }
            self.join(time);
        }
        self.line.run(time.text.len() + time.after.len(), fraction, values, out)
    }
}

impl LinePieces {
    /// Appends the line of a record with these values. The text of a time has at most `time_bytes`. Returns false if
    /// the values are not those that the pieces render; nothing is written then.
    #[inline]
    pub(super) fn run(&self, time_bytes: usize, fraction: u32, values: &[u8], out: &mut Vec<u8>) -> bool {
        // Texts of arguments and of the message are parts of `values`, and no two of them overlap.
        let mut line = RawLine::new(out, self.bytes + self.times * time_bytes + values.len());
        let mut rest = values;
        let Some(context) = FrequentContext::take(&mut rest) else { return false };
        for piece in &self.pieces {
            // SAFETY: the room is the sum of the most bytes of all pieces. A number has `raw_line::NUMBER_BYTES` of it.
            let written = unsafe {
                match piece {
                    LinePiece::Constant(text) | LinePiece::Timed(_, text) => {
                        line.padded(text);
                        continue;
                    }
                    LinePiece::Argument(ArgumentForm::Fixed(decimals)) => push_fixed(&mut line, &mut rest, *decimals),
                    LinePiece::Argument(form) => push_plain(&mut line, &mut rest, *form, self.place),
                    LinePiece::Message => push_text(&mut line, take_text(&mut rest, tag::MESSAGE), self.place),
                    LinePiece::Thread => context.thread.map(|id| line.integer(id)),
                    LinePiece::ThreadName => push_text(&mut line, context.thread_name, self.place),
                    LinePiece::Fraction(digits) => {
                        line.digits(fraction, *digits);
                        continue;
                    }
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
    let number = f64::from_ne_bytes(take_word(rest, tag::FLOAT)?);
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
unsafe fn push_plain(line: &mut RawLine<'_>, rest: &mut &[u8], form: ArgumentForm, place: TextPlace) -> Option<()> {
    if *rest.first()? == tag::INT {
        let number = i64::from_ne_bytes(take_word(rest, tag::INT)?);
        // SAFETY: the caller guarantees the room.
        unsafe { line.integer(number) };
        return Some(());
    }
    if form == ArgumentForm::Decimal {
        return None;
    }
    // SAFETY: the caller guarantees the room.
    unsafe { push_text(line, take_text(rest, tag::STR), place) }
}

/// # Safety
///
/// The line has room for the values.
#[inline]
unsafe fn push_text(line: &mut RawLine<'_>, text: Option<TakenText<'_>>, place: TextPlace) -> Option<()> {
    let TakenText { from, len } = text?;
    if place.must_escape(&from[..len]) {
        return None;
    }
    // SAFETY: `from` has `len` bytes, and the caller guarantees the room.
    unsafe { line.text(from, len) };
    Some(())
}

/// A text among the values of a record: its first byte and all bytes after it, and its length.
#[derive(Clone, Copy)]
struct TakenText<'a> {
    from: &'a [u8],
    len: usize,
}

/// Takes a tag and the text after it. `None`: another tag, too few bytes, or bytes that are not UTF-8.
#[inline]
fn take_text<'a>(rest: &mut &'a [u8], tag: u8) -> Option<TakenText<'a>> {
    let ([first, len @ ..], from) = rest.split_first_chunk::<5>()?;
    let len = u32::from_ne_bytes(*len) as usize;
    if *first != tag || len > from.len() {
        return None;
    }
    let (own, after) = from.split_at(len);
    if !is_short_ascii(from, len) {
        std::str::from_utf8(own).ok()?;
    }
    *rest = after;
    Some(TakenText { from, len })
}

/// The context entries that programs read.
#[derive(Default)]
struct FrequentContext<'a> {
    thread: Option<i64>,
    thread_name: Option<TakenText<'a>>,
}

/// Whether programs read the context entry with this tag.
pub(super) const fn is_frequent(tag: u8) -> bool {
    matches!(tag, tag::MESSAGE | tag::THREAD | tag::THREAD_NAME | tag::PROCESS_NAME)
}

impl<'a> FrequentContext<'a> {
    /// Takes the entries before the message. `None`: one of them is damaged.
    #[inline]
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let mut context = Self::default();
        loop {
            match rest.first() {
                Some(&tag::THREAD) => context.thread = Some(i64::from_ne_bytes(take_word(rest, tag::THREAD)?)),
                Some(&tag::THREAD_NAME) => context.thread_name = Some(take_text(rest, tag::THREAD_NAME)?),
                Some(&tag::PROCESS_NAME) => _ = take_text(rest, tag::PROCESS_NAME)?,
                _ => return Some(context),
            }
        }
    }
}

/// Whether the first `len` bytes are ASCII. Returns false, too, if the text is not short or is at the end of the
/// record.
#[inline]
fn is_short_ascii(text: &[u8], len: usize) -> bool {
    let Some(block) = text.first_chunk::<16>() else { return false };
    // The bytes after the text are shifted out.
    let block = u128::from_le_bytes(*block);
    (1..=16).contains(&len) && (block << (8 * (16 - len))) & 0x8080_8080_8080_8080_8080_8080_8080_8080 == 0
}

/// Takes a tag and the eight bytes after it. `None`: another tag, or too few bytes.
#[inline]
fn take_word(rest: &mut &[u8], tag: u8) -> Option<[u8; 8]> {
    let ([first, word @ ..], after) = rest.split_first_chunk::<9>()?;
    if *first != tag {
        return None;
    }
    *rest = after;
    Some(*word)
}
