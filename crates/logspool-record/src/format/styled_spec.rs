//! The description of a text line in which a formatter shows more than the attributes of a record: prefixes and colours
//! that depend on the level, a request line put together from the arguments, a message coloured by a status.

use super::codec_items::{boolean, number, optional_text, pairs, style_from, style_number, text, texts, tuple};
use super::style::Style;
use crate::record::{Encoder, Values};

/// An attribute that the formatter adds to the record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DerivedAttribute {
    /// The text of the level.
    OfLevel(NumberTexts),
    /// The text of an extra field, which has to be an integer.
    OfField(String, NumberTexts),
    /// Parts one after the other: `f"{method} {path}"`.
    Joined(Vec<Part>),
    /// An extra field, or the text of `asctime` if the record does not have it.
    FieldOrTime(String),
    /// The message, between two texts that depend on an extra field. The message alone if the record does not have the
    /// field, if it is None, or if it is 0.
    MessageBy(String, NumberTexts),
    /// The message, with its control characters escaped. Those of exception and stack are then escaped, too.
    EscapedMessage,
}

/// A part of a [`DerivedAttribute::Joined`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// A text.
    Literal(String),
    /// `format(value, "")` of an extra field, which has to be a builtin value.
    Field(String),
}

/// A text for each number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NumberTexts {
    /// Numbers, each with its text.
    pub listed: Vec<(i64, String)>,
    /// Texts of the other numbers. The first range that contains the number applies; outside of all ranges the text is
    /// empty.
    pub ranges: Vec<NumberRange>,
}

/// The text of the numbers from `low` to `high`: `before`, the number, `after`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// The first number.
    pub low: i64,
    /// The last number.
    pub high: i64,
    /// Text before the number.
    pub before: String,
    /// Text after the number; `None` if neither the number nor a text is shown after `before`.
    pub after: Option<String>,
}

/// A field that the formatter treats in a way of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldRule {
    /// A record with the field does not take the native path.
    Absent,
    /// The field has to be a number or None.
    Number,
}

/// The description of one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StyledSpec {
    /// Placeholder syntax.
    pub style: Style,
    /// The format string.
    pub template: String,
    /// The attributes that the formatter adds, by name. They hide those of the record.
    pub derived: Vec<(String, DerivedAttribute)>,
    /// Text at the end of the first line, unless the line ends with it already.
    pub end: String,
    /// Names of the arguments of a call, which are sent as extra fields. A call with another number of arguments does
    /// not take the native path. Empty if the arguments are only part of the message.
    pub arguments: Vec<String>,
    /// Fields with a limit.
    pub limits: Vec<(String, FieldRule)>,
    /// Whether the formatter makes the text of an exception in its own way, so that a record with one does not take the
    /// native path.
    pub own_exceptions: bool,
    /// Whether the formatter leaves attributes of its own on the record that formatters of other handlers may show.
    pub marks_records: bool,
}

impl NumberTexts {
    pub(super) fn encode(&self, encoder: &mut Encoder) {
        encoder.tuple(2 * self.listed.len() as u32);
        for (number, text) in &self.listed {
            encoder.int(*number).str(text);
        }
        encoder.tuple(4 * self.ranges.len() as u32);
        for range in &self.ranges {
            encoder.int(range.low).int(range.high).str(&range.before);
            match &range.after {
                Some(after) => encoder.str(after),
                None => encoder.none(),
            };
        }
    }

    pub(super) fn decode(items: &mut Values<'_>) -> Option<Self> {
        let listed = pairs(tuple(items)?, number, text)?;
        let range = |items: &mut Values<'_>| Some((number(items)?, text(items)?, optional_text(items)?));
        let ranges = pairs(tuple(items)?, number, range)?;
        let range = |(low, (high, before, after))| NumberRange { low, high, before, after };
        Some(Self { listed, ranges: ranges.into_iter().map(range).collect() })
    }
}

impl DerivedAttribute {
    fn encode(&self, encoder: &mut Encoder) {
        let (kind, field, texts) = match self {
            Self::OfLevel(texts) => (0, "", Some(texts)),
            Self::OfField(field, texts) => (1, field.as_str(), Some(texts)),
            Self::Joined(_) => (2, "", None),
            Self::FieldOrTime(field) => (3, field.as_str(), None),
            Self::MessageBy(field, texts) => (4, field.as_str(), Some(texts)),
            Self::EscapedMessage => (5, "", None),
        };
        encoder.int(kind).str(field);
        texts.unwrap_or(&NumberTexts::default()).encode(encoder);
        let parts: &[Part] = if let Self::Joined(parts) = self { parts } else { &[] };
        encoder.tuple(2 * parts.len() as u32);
        for part in parts {
            match part {
                Part::Literal(text) => encoder.bool(false).str(text),
                Part::Field(name) => encoder.bool(true).str(name),
            };
        }
    }

    fn decode(items: &mut Values<'_>) -> Option<Self> {
        let (kind, field) = (number::<u8>(items)?, text(items)?);
        let texts = NumberTexts::decode(items)?;
        let parts = pairs(tuple(items)?, boolean, text)?;
        Some(match kind {
            0 => Self::OfLevel(texts),
            1 => Self::OfField(field, texts),
            2 => {
                let part = |(is_field, text)| if is_field { Part::Field(text) } else { Part::Literal(text) };
                Self::Joined(parts.into_iter().map(part).collect())
            }
            3 => Self::FieldOrTime(field),
            4 => Self::MessageBy(field, texts),
            5 => Self::EscapedMessage,
            _ => return None,
        })
    }
}

impl StyledSpec {
    /// The attribute that the formatter adds under this name.
    pub(super) fn derived(&self, name: &str) -> Option<&DerivedAttribute> {
        self.derived.iter().find(|(known, _)| known == name).map(|(_, derived)| derived)
    }

    pub(super) fn encode(&self, kind: i64, encoder: &mut Encoder) {
        encoder.tuple(9).int(kind).int(style_number(self.style)).str(&self.template).str(&self.end);
        encoder.bool(self.own_exceptions).bool(self.marks_records);
        encoder.tuple(6 * self.derived.len() as u32);
        for (name, derived) in &self.derived {
            encoder.str(name);
            derived.encode(encoder);
        }
        encoder.tuple(self.arguments.len() as u32);
        for name in &self.arguments {
            encoder.str(name);
        }
        encoder.tuple(2 * self.limits.len() as u32);
        for (name, limit) in &self.limits {
            encoder.str(name).bool(*limit == FieldRule::Number);
        }
    }

    /// Decodes what [`StyledSpec::encode`] wrote after the kind.
    pub(super) fn decode(mut items: Values<'_>) -> Option<Self> {
        let items = &mut items;
        let (style, template, end) = (style_from(number(items)?)?, text(items)?, text(items)?);
        let (own_exceptions, marks_records) = (boolean(items)?, boolean(items)?);
        let derived = pairs(tuple(items)?, text, DerivedAttribute::decode)?;
        let arguments = texts(tuple(items)?)?;
        let limits = pairs(tuple(items)?, text, boolean)?;
        let limit = |(name, number)| (name, if number { FieldRule::Number } else { FieldRule::Absent });
        let limits = limits.into_iter().map(limit).collect();
        let spec = Self { style, template, derived, end, arguments, limits, own_exceptions, marks_records };
        items.rest().is_empty().then_some(spec)
    }
}
