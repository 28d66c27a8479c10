//! Placeholders of message templates in braces, as the grammars of {fmt} and of Rust share them.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). [`fmt_grammar`](super::fmt_grammar) and
//! [`rust_grammar`](super::rust_grammar) parse the text between the braces, and [`braced`](super::braced) the template.

use super::pad::{self, Align};

/// Maximum width or precision of a placeholder.
///
/// Chosen: no log line needs more. The bound limits the text that one placeholder of a hostile template can make.
pub(super) const MAX_AMOUNT: usize = 1024;

/// Where a placeholder finds a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArgumentRef {
    /// The argument at this position.
    At(usize),
    /// The extra field of the record that has this name.
    Named(Box<str>),
}

/// The sign of a number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignRule {
    /// None; the placeholder has no sign.
    Absent,
    /// None; the placeholder has `-`.
    Minus,
    /// `+`.
    Plus,
    /// A space.
    Space,
}

/// The type at the end of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderType {
    /// No type.
    Absent,
    /// `d`.
    Decimal,
    /// `o`.
    Octal,
    /// `x`.
    LowerHex,
    /// `X`.
    UpperHex,
    /// `b`.
    LowerBinary,
    /// `B`.
    UpperBinary,
    /// `a`.
    LowerHexFloat,
    /// `A`.
    UpperHexFloat,
    /// `e`.
    LowerExponent,
    /// `E`.
    UpperExponent,
    /// `f`.
    LowerFixed,
    /// `F`.
    UpperFixed,
    /// `g`.
    LowerGeneral,
    /// `G`.
    UpperGeneral,
    /// `c`.
    Character,
    /// `s`.
    Text,
    /// `p`.
    Pointer,
    /// `?`.
    Debug,
    /// `x?`.
    DebugLowerHex,
    /// `X?`.
    DebugUpperHex,
}

/// How a placeholder shows its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceholderSpec {
    pub(super) fill: char,
    pub(super) align: Option<Align>,
    pub(super) sign: SignRule,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) precision: Option<usize>,
    pub(super) kind: PlaceholderType,
}

impl PlaceholderSpec {
    /// The spec of `{}`.
    pub(super) const PLAIN: Self = Self {
        fill: ' ',
        align: None,
        sign: SignRule::Absent,
        alternate: false,
        zero: false,
        width: 0,
        precision: None,
        kind: PlaceholderType::Absent,
    };

    /// Pads the text from `start` on, which is `columns` wide. The position is `default` without an alignment.
    pub(super) fn pad(&self, out: &mut Vec<u8>, start: usize, columns: usize, default: Align) {
        let Some(missing @ 1..) = self.width.checked_sub(columns) else { return };
        let before = match self.align.unwrap_or(default) {
            Align::Left => 0,
            Align::Right | Align::AfterSign => missing,
            Align::Centre => missing / 2,
        };
        pad::insert_fill(out, start, before, self.fill);
        let end = out.len();
        pad::insert_fill(out, end, missing - before, self.fill);
    }

    /// Inserts zeros before the digits, which begin at `body`, up to the width.
    pub(super) fn pad_with_zeros(&self, out: &mut Vec<u8>, start: usize, body: usize) {
        if let Some(missing @ 1..) = self.width.checked_sub(out.len() - start) {
            pad::insert_fill(out, body, missing, '0');
        }
    }

    /// Appends the sign of a number.
    pub(super) fn push_sign(&self, out: &mut Vec<u8>, negative: bool) {
        match self.sign {
            _ if negative => out.push(b'-'),
            SignRule::Plus => out.push(b'+'),
            SignRule::Space => out.push(b' '),
            SignRule::Absent | SignRule::Minus => {}
        }
    }
}

/// The form of a placeholder. Frequent forms are recognised once, when the template is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderForm {
    /// `{}`.
    Plain,
    /// `{:.Nf}`, or `{:.N}` of Rust.
    Fixed(usize),
    /// Every other placeholder.
    General,
    /// A format spec of a type of the program. Only text that the caller rendered fits it.
    Foreign,
}

/// One placeholder of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placeholder {
    /// Position in the template of the text after the opening brace.
    pub(super) at: usize,
    pub(super) argument: ArgumentRef,
    pub(super) form: PlaceholderForm,
    pub(super) spec: PlaceholderSpec,
    /// The argument that is the width.
    pub(super) width_from: Option<ArgumentRef>,
    /// The argument that is the precision.
    pub(super) precision_from: Option<ArgumentRef>,
    /// The reason why a [`PlaceholderForm::Foreign`] placeholder fits no other value.
    pub(super) refusal: Option<Box<FormatError>>,
}

impl Placeholder {
    /// The arguments of the placeholder in the order in which they are taken from a record.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &ArgumentRef> {
        std::iter::once(&self.argument).chain(&self.width_from).chain(&self.precision_from)
    }
}

/// The reason why a template does not fit its grammar or its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// Position of the error: bytes from the start of the template.
    pub position: usize,
    /// The reason, and the remedy if there is one.
    pub reason: String,
}

impl FormatError {
    pub(super) fn new(position: usize, reason: impl Into<String>) -> Self {
        Self { position, reason: reason.into() }
    }
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (at byte {} of the template)", self.reason, self.position)
    }
}

impl std::error::Error for FormatError {}

/// Reads a template from left to right.
#[derive(Debug, Clone)]
pub(super) struct TemplateReader<'a> {
    source: &'a str,
    pub(super) at: usize,
}

impl<'a> TemplateReader<'a> {
    pub(super) const fn new(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The next character but one.
    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    /// Passes over the next character.
    pub(super) fn skip(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    /// Passes over `text` if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Passes over the characters that satisfy `is_part`, and returns them.
    pub(super) fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let len = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    /// Reads a decimal number, if one comes next.
    pub(super) fn number(&mut self) -> Result<Option<usize>, FormatError> {
        let start = self.at;
        let digits = self.take_while(|character| character.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(number) if number <= i32::MAX as usize => Ok(Some(number)),
            _ => Err(FormatError::new(start, format!("the number {digits} is too large"))),
        }
    }

    /// Reads a width or a precision, if a number comes next.
    pub(super) fn amount(&mut self, word: &str) -> Result<Option<usize>, FormatError> {
        let start = self.at;
        match self.number()? {
            Some(number) if number > MAX_AMOUNT => {
                Err(FormatError::new(start, format!("the {word} {number} is above the limit of {MAX_AMOUNT}")))
            }
            amount => Ok(amount),
        }
    }

    /// Reads fill and alignment. A brace is a fill only with `allows_braces`.
    pub(super) fn alignment(&mut self, allows_braces: bool) -> Option<(Option<char>, Align)> {
        let align_of = |character| match character {
            '<' => Some(Align::Left),
            '>' => Some(Align::Right),
            '^' => Some(Align::Centre),
            _ => None,
        };
        let first = self.peek()?;
        if let Some(align) =
            self.peek_second().and_then(align_of).filter(|_| allows_braces || !matches!(first, '{' | '}'))
        {
            self.skip();
            self.skip();
            return Some((Some(first), align));
        }
        let align = align_of(first)?;
        self.skip();
        Some((None, align))
    }

    /// An error at the next character.
    pub(super) fn error<T>(&self, reason: impl Into<String>) -> Result<T, FormatError> {
        Err(FormatError::new(self.at, reason))
    }
}
