//! One %-directive: the types that it accepts, and its text for a value.
//!
//! Pipeline stages: capture and format (see ARCHITECTURE.md). Capture calls [`Directive::accepts`] under the GIL, and
//! format renders after the queue. An accepted directive is rendered exactly as by CPython's `unicode_format_arg`.

use super::float::{self, Case, FloatText, Notation, Point};
use super::integer::{self, Base};
use super::line_program::ArgumentForm;
use super::malformed::Malformed;
use super::pad::{self, Align};
use super::repr::{NonAscii, push_repr, push_str};
use crate::record::Value;

/// Maximum width or precision that the collector renders.
///
/// Chosen: no log line needs more. The bound limits the text that one directive of a hostile template can make of one
/// byte.
pub(super) const MAX_AMOUNT: usize = 1024;

/// Digits of `%f`, `%e`, `%g` without a precision, as CPython specifies.
const DEFAULT_PRECISION: usize = 6;

/// The conversion that the last character of a directive selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// `s`: `str`.
    Text,
    /// `r`: `repr`.
    Repr,
    /// `a`: `ascii`.
    Ascii,
    /// `d`, `i`, `u`.
    Decimal,
    /// `o`, `x`, `X`.
    Based(Base),
    /// `f`, `F`, `e`, `E`, `g`, `G`.
    Float(Notation, Case),
    /// `c`.
    Character,
}

/// The flags of a directive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// `#`.
    pub alternate: bool,
    /// `0`.
    pub zero: bool,
    /// `-`.
    pub left: bool,
    /// A space.
    pub space: bool,
    /// `+`.
    pub plus: bool,
}

/// A width or a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WidthOrPrecision {
    /// Not given.
    Absent,
    /// Given as a number.
    Fixed(usize),
    /// `*`: taken from the arguments.
    Argument,
}

impl WidthOrPrecision {
    const fn number(self) -> Option<usize> {
        match self {
            Self::Fixed(number) => Some(number),
            Self::Absent | Self::Argument => None,
        }
    }

    /// Whether this module can render the width or precision: it is absent, or not too large.
    pub(super) fn is_renderable(self) -> bool {
        match self {
            Self::Absent => true,
            Self::Fixed(number) => number <= MAX_AMOUNT,
            Self::Argument => false,
        }
    }
}

/// The type of an argument, as far as directives distinguish types. Only exact types: a subclass is `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// `None`.
    None,
    /// `bool`.
    Bool,
    /// `int` that fits `i64`.
    Int,
    /// `int` beyond `i64`, sent as decimal text.
    BigInt,
    /// `float`.
    Float,
    /// `str` of ASCII characters only.
    AsciiStr,
    /// `str` with non-ASCII characters, but without surrogates. Text with surrogates is `Other`, because it has no
    /// UTF-8 form.
    Str,
    /// `bytes`.
    Bytes,
    /// Anything else, tuples included.
    Other,
}

/// The side that renders a directive for an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderedBy {
    /// The collector renders it from the value, with the same bytes as Python.
    Deferred,
    /// The caller renders it with `directive.text() % (argument,)`, which may raise, and sends a `RENDERED` value.
    RenderInCaller,
    /// Neither side renders it: Python raises.
    Mismatch,
}

/// The form of a directive. Frequent forms are recognised once, when the template is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `%s`.
    Text,
    /// `%d`.
    Decimal,
    /// `%.Nf`.
    Fixed(usize),
    /// Every other directive.
    General,
}

/// One %-directive of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    text: Box<str>,
    key: Option<Box<str>>,
    flags: Flags,
    width: WidthOrPrecision,
    precision: WidthOrPrecision,
    conversion: Conversion,
    shape: Shape,
}

/// The parts of a directive, as the parser found them.
#[derive(Debug)]
pub(super) struct DirectiveParts<'a> {
    pub(super) text: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) flags: Flags,
    pub(super) width: WidthOrPrecision,
    pub(super) precision: WidthOrPrecision,
    pub(super) conversion: Conversion,
}

impl Directive {
    pub(super) fn new(parts: DirectiveParts<'_>) -> Self {
        let plain = parts.flags == Flags::default() && parts.width == WidthOrPrecision::Absent;
        let shape = match (parts.conversion, parts.precision) {
            (Conversion::Text, WidthOrPrecision::Absent) if plain => Shape::Text,
            (Conversion::Decimal, WidthOrPrecision::Absent) if plain => Shape::Decimal,
            (Conversion::Float(Notation::Fixed, Case::Lower), WidthOrPrecision::Absent) if plain => {
                Shape::Fixed(DEFAULT_PRECISION)
            }
            (Conversion::Float(Notation::Fixed, Case::Lower), WidthOrPrecision::Fixed(precision))
                if plain && precision <= MAX_AMOUNT =>
            {
                Shape::Fixed(precision)
            }
            _ => Shape::General,
        };
        Self {
            text: parts.text.into(),
            key: parts.key.map(Into::into),
            flags: parts.flags,
            width: parts.width,
            precision: parts.precision,
            conversion: parts.conversion,
            shape,
        }
    }

    /// The directive as written in the template, from `%` to the conversion.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The mapping key between parentheses, if there is one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The conversion that the last character selects.
    pub const fn conversion(&self) -> Conversion {
        self.conversion
    }

    /// The flags.
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// The width.
    pub const fn width(&self) -> WidthOrPrecision {
        self.width
    }

    /// The precision.
    pub const fn precision(&self) -> WidthOrPrecision {
        self.precision
    }

    /// Whether the directive is exactly `%s`: its text is `str(value)`.
    pub(super) fn is_plain_text(&self) -> bool {
        self.shape == Shape::Text
    }

    /// The form of the directive if it is a frequent one.
    pub(super) fn argument_form(&self) -> Option<ArgumentForm> {
        match self.shape {
            Shape::Text => Some(ArgumentForm::Plain),
            Shape::Decimal => Some(ArgumentForm::Decimal),
            Shape::Fixed(precision) => Some(ArgumentForm::Fixed(precision)),
            Shape::General => None,
        }
    }

    /// Whether the directive is exactly `%d`.
    pub(super) fn is_plain_decimal(&self) -> bool {
        self.shape == Shape::Decimal
    }

    /// Returns which side renders this directive for an argument of type `kind`.
    pub fn accepts(&self, kind: ArgumentKind) -> RenderedBy {
        use ArgumentKind as Kind;
        use RenderedBy::{Deferred, Mismatch, RenderInCaller};
        let acceptance = match (self.conversion, kind) {
            (_, Kind::Other) => RenderInCaller,
            (Conversion::Repr, Kind::Str) => RenderInCaller,
            (Conversion::Text | Conversion::Repr | Conversion::Ascii, _) => Deferred,
            // Python raises for nan and inf, so acceptance depends on the value, not only on its type.
            (Conversion::Decimal, Kind::Float) => RenderInCaller,
            (Conversion::Decimal, Kind::Bool | Kind::Int | Kind::BigInt) => Deferred,
            (Conversion::Based(_), Kind::Bool | Kind::Int) => Deferred,
            (Conversion::Based(_), Kind::BigInt) => RenderInCaller,
            (Conversion::Float(..), Kind::Bool | Kind::Int | Kind::Float) => Deferred,
            // Python raises for integers that are too large for a double.
            (Conversion::Float(..), Kind::BigInt) => RenderInCaller,
            // Python takes one character, or a number in the range of Unicode, and raises for other values.
            (Conversion::Character, Kind::Bool | Kind::Int | Kind::BigInt | Kind::AsciiStr | Kind::Str) => {
                RenderInCaller
            }
            _ => Mismatch,
        };
        let modest = self.width.is_renderable() && self.precision.is_renderable();
        if acceptance == Deferred && !modest { RenderInCaller } else { acceptance }
    }

    /// Appends the directive's text for `value`.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if Python would raise, or if [`accepts`](Self::accepts) does not return [`RenderedBy::Deferred`]
    /// for such a value. Nothing is written then.
    #[inline]
    pub fn render(&self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match (self.shape, value) {
            (Shape::Text, value) => push_str(out, value),
            (Shape::Decimal, Value::Int(number)) => integer::push_signed(out, number),
            (Shape::Fixed(precision), Value::Float(number)) if number.is_finite() => {
                if number.is_sign_negative() {
                    out.push(b'-');
                }
                float::push_fixed(out, number.abs(), precision, Point::AsNeeded);
            }
            _ => return self.render_general(value, out),
        }
        Ok(())
    }

    fn render_general(&self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if let Value::Rendered(text) = value {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        if !self.width.is_renderable() || !self.precision.is_renderable() {
            return Err(Malformed);
        }
        match self.conversion {
            Conversion::Text | Conversion::Repr | Conversion::Ascii | Conversion::Character => {
                self.render_text(value, out)
            }
            Conversion::Decimal => self.render_decimal(value, out),
            Conversion::Based(base) => self.render_based(value, base, out),
            Conversion::Float(notation, case) => self.render_float(value, notation, case, out),
        }
    }

    fn render_text(&self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        match self.conversion {
            Conversion::Repr => push_repr(out, value, NonAscii::Keep),
            Conversion::Ascii => push_repr(out, value, NonAscii::Escape),
            Conversion::Character => push_character(out, value)?,
            _ => push_str(out, value),
        }
        if let (Some(most), false) = (self.precision.number(), self.conversion == Conversion::Character) {
            out.truncate(start + pad::prefix_bytes(&out[start..], most));
        }
        let align = if self.flags.left { Align::Left } else { Align::Right };
        pad::widen(out, start, start, self.width.number().unwrap_or(0), align, ' ');
        Ok(())
    }

    fn render_decimal(&self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let start = out.len();
        let body = match value {
            Value::BigInt(text) => {
                let digits = text.strip_prefix('-').unwrap_or(text);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(Malformed);
                }
                let body = self.push_sign(out, digits.len() < text.len());
                out.extend_from_slice(digits.as_bytes());
                body
            }
            Value::Float32(number) => return self.render_decimal(Value::Float(number.into()), out),
            Value::Float(number) if number.is_finite() => {
                let whole = number.trunc();
                let body = self.push_sign(out, whole < 0.0);
                float::push_fixed(out, whole.abs(), 0, Point::AsNeeded);
                body
            }
            value => {
                let (negative, magnitude) = integer_of(value).ok_or(Malformed)?;
                let body = self.push_sign(out, negative);
                integer::push_unsigned(out, magnitude);
                body
            }
        };
        self.finish_integer(out, start, body);
        Ok(())
    }

    fn render_based(&self, value: Value<'_>, base: Base, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let (negative, magnitude) = integer_of(value).ok_or(Malformed)?;
        let start = out.len();
        self.push_sign(out, negative);
        if self.flags.alternate {
            out.extend_from_slice(base.prefix().as_bytes());
        }
        let body = out.len();
        integer::push_based(out, magnitude, base);
        self.finish_integer(out, start, body);
        Ok(())
    }

    fn render_float(
        &self,
        value: Value<'_>,
        notation: Notation,
        case: Case,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let number = float_of(value).ok_or(Malformed)?;
        let start = out.len();
        let body = self.push_sign(out, float::is_negative(number));
        let precision = self.precision.number().unwrap_or(DEFAULT_PRECISION);
        let point = if self.flags.alternate { Point::Always } else { Point::AsNeeded };
        float::push_magnitude(out, number.abs(), FloatText { notation, precision, point, case });
        self.widen_number(out, start, body);
        Ok(())
    }

    /// Writes the sign. Returns the position at which the digits begin.
    fn push_sign(&self, out: &mut Vec<u8>, negative: bool) -> usize {
        if negative {
            out.push(b'-');
        } else if self.flags.plus {
            out.push(b'+');
        } else if self.flags.space {
            out.push(b' ');
        }
        out.len()
    }

    fn finish_integer(&self, out: &mut Vec<u8>, start: usize, body: usize) {
        let digits = out.len() - body;
        let least = self.precision.number().unwrap_or(0);
        if digits < least {
            pad::insert_fill(out, body, least - digits, '0');
        }
        self.widen_number(out, start, body);
    }

    fn widen_number(&self, out: &mut Vec<u8>, start: usize, body: usize) {
        let width = self.width.number().unwrap_or(0);
        let (align, fill) = match (self.flags.left, self.flags.zero) {
            (true, _) => (Align::Left, ' '),
            (false, true) => (Align::AfterSign, '0'),
            (false, false) => (Align::Right, ' '),
        };
        pad::widen(out, start, body, width, align, fill);
    }
}

/// Sign and magnitude of an integer value; `None` for other values.
pub(super) fn integer_of(value: Value<'_>) -> Option<(bool, u64)> {
    match value {
        Value::Int(number) => Some((number < 0, number.unsigned_abs())),
        Value::Uint(number) => Some((false, number)),
        Value::Bool(truth) => Some((false, u64::from(truth))),
        _ => None,
    }
}

/// Converts a value as Python's `float()` does, rounded half-even. `None`: Python raises.
pub(super) fn float_of(value: Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(number),
        Value::Float32(number) => Some(number.into()),
        Value::Int(number) => Some(number as f64),
        Value::Uint(number) => Some(number as f64),
        Value::Bool(truth) => Some(f64::from(u8::from(truth))),
        Value::BigInt(digits) => digits.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn push_character(out: &mut Vec<u8>, value: Value<'_>) -> Result<(), Malformed> {
    let character = match value {
        Value::Char(character) => Some(character),
        Value::Str(text) => {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        }
        value => integer_of(value)
            .filter(|(negative, _)| !negative)
            .and_then(|(_, code)| u32::try_from(code).ok())
            .and_then(char::from_u32),
    };
    push_str(out, Value::Char(character.ok_or(Malformed)?));
    Ok(())
}
