//! Flat programs: the pieces of the lines of one call site, level and logger, and how they write a line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). `program.rs` compiles a format and a call site to a program, and says
//! which records a program renders.

use std::ops::Range;

use super::event_time::{AFTER_SECONDS_BYTES, after_seconds};
use super::float::scaled_half_even;
use super::json_escape::first_escape;
use super::raw_line::{NUMBER_BYTES, PaddedText, RawLine};
use crate::msgpack::ItemHead;
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

/// Maximum bytes of a text of an entry. Programs do not render a longer one.
///
/// Chosen: three such texts are far below the size at which the general way cuts a text (`entry.rs`).
const MAX_ENTRY_TEXT: usize = 64 * 1024;

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
    /// The start of an entry after its seconds: nanoseconds, number of parts without the context, and the parts up to the
    /// text of the message.
    EntryStart(u16, PaddedText),
    /// The end of an entry: the length of the message is known now, and the parts of the context follow.
    EntryEnd,
}

impl LinePiece {
    /// The most bytes of the piece, without constants, texts of the record and the time.
    pub(super) const fn own_bytes(&self) -> usize {
        match self {
            Self::Constant(_) | Self::Timed(..) | Self::Message | Self::ThreadName => 0,
            Self::Argument(_) | Self::Thread | Self::Fraction(_) => NUMBER_BYTES,
            Self::EntryStart(..) => AFTER_SECONDS_BYTES + ItemHead::MAX_BYTES,
            Self::EntryEnd => CONTEXT_BYTES,
        }
    }
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
    /// Whether the last piece is the end of an entry.
    pub(super) is_entry: bool,
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
        if self.is_entry {
            self.run_pieces::<true>(time_bytes, fraction, values, out)
        } else {
            self.run_pieces::<false>(time_bytes, fraction, values, out)
        }
    }

    /// Entries have machine code of their own: together, each line of text takes 2 to 8 ns more (measured).
    fn run_pieces<const IS_ENTRY: bool>(
        &self,
        time_bytes: usize,
        fraction: u32,
        values: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        // Texts of arguments and of the message are parts of `values`, and no two of them overlap.
        let mut line = RawLine::new(out, self.bytes + self.times * time_bytes + values.len());
        let mut rest = values;
        let Some(context) = FrequentContext::take(&mut rest) else { return false };
        let mut message_start = line.position();
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
                    LinePiece::EntryStart(..) | LinePiece::EntryEnd if !IS_ENTRY => return false,
                    LinePiece::EntryStart(parts, text) => {
                        line.block(&after_seconds(fraction, parts + context.parts()));
                        line.padded(text);
                        message_start = line.start_text();
                        continue;
                    }
                    LinePiece::EntryEnd => return rest.is_empty() && context.end_entry(line, message_start),
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

// `push_fixed`, `push_plain` and `take` are in both copies of `run_pieces`. Without the attribute they are calls, which
// take 10 ns for each line (measured).

/// # Safety
///
/// The line has room for the values and for a number.
#[inline(always)]
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
#[inline(always)]
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
    process_name: Option<TakenText<'a>>,
}

/// Whether programs read the context entry with this tag.
pub(super) const fn is_frequent(tag: u8) -> bool {
    matches!(tag, tag::MESSAGE | tag::THREAD | tag::THREAD_NAME | tag::PROCESS_NAME)
}

impl<'a> FrequentContext<'a> {
    /// Takes the entries before the message. `None`: an entry is damaged.
    #[inline(always)]
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let mut context = Self::default();
        loop {
            match rest.first() {
                Some(&tag::THREAD) => context.thread = Some(i64::from_ne_bytes(take_word(rest, tag::THREAD)?)),
                Some(&tag::THREAD_NAME) => context.thread_name = Some(take_text(rest, tag::THREAD_NAME)?),
                Some(&tag::PROCESS_NAME) => context.process_name = Some(take_text(rest, tag::PROCESS_NAME)?),
                _ => return Some(context),
            }
        }
    }

    /// The number of parts that [`end_entry`](Self::end_entry) writes.
    #[inline]
    fn parts(&self) -> u16 {
        u16::from(self.thread.is_some())
            + u16::from(self.thread_name.is_some())
            + u16::from(self.process_name.is_some())
    }

    /// Ends an entry: writes the length of its message, and the parts of the context, each with its name. Returns false
    /// if a text is longer than [`MAX_ENTRY_TEXT`].
    ///
    /// # Safety
    ///
    /// The line has room for the texts and [`CONTEXT_BYTES`], and `message_start` is of its newest text.
    #[inline]
    unsafe fn end_entry(&self, mut line: RawLine<'_>, message_start: *mut u8) -> bool {
        let is_long = |text: &TakenText<'_>| text.len > MAX_ENTRY_TEXT;
        if self.process_name.as_ref().is_some_and(is_long)
            || self.thread_name.as_ref().is_some_and(is_long)
            || line.bytes_since(message_start) > MAX_ENTRY_TEXT
        {
            return false;
        }
        // SAFETY: the caller guarantees the room. Each `TakenText` has its `len` bytes.
        unsafe {
            line.end_text(message_start);
            if let Some(TakenText { from, len }) = self.process_name {
                line.block(b"\xacprocess_name");
                line.head(ItemHead::of_text(len));
                line.text(from, len);
            }
            if let Some(id) = self.thread {
                line.block(b"\xa6thread");
                line.head(ItemHead::of_int(id));
            }
            if let Some(TakenText { from, len }) = self.thread_name {
                line.block(b"\xabthread_name");
                line.head(ItemHead::of_text(len));
                line.text(from, len);
            }
        }
        line.finish();
        true
    }
}

/// The most bytes of [`FrequentContext::end_entry`] without the texts: the names of the three parts, the number and the
/// heads of the two texts.
const CONTEXT_BYTES: usize = 13 + 7 + 12 + 3 * ItemHead::MAX_BYTES;

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
