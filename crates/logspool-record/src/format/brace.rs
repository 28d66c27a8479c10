//! The format mini-language of `str.format`: `{field:spec}`.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). Grouping (`,` and `_`), `z`, `n`, `c`, nested fields and non-ASCII
//! digits are refused when the spec is parsed. Every accepted spec renders as in CPython's `formatter_unicode.c`.

use super::directive::{ArgumentKind, MAX_AMOUNT, RenderedBy, float_of, integer_of};
use super::float::{self, Case, FloatText, Notation, Point};
use super::integer::{self, Base};
use super::malformed::Malformed;
use super::pad::{self, Align};
use super::repr::push_str;
use crate::record::Value;

/// Digits of `e`, `f`, `g`, `%` without a precision, as CPython specifies.
const DEFAULT_PRECISION: usize = 6;

/// The character before a number that is not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Nothing; the spec has no sign.
    Default,
    /// Nothing; the spec has `-`.
    Minus,
    /// `+`.
    Plus,
    /// A space.
    Space,
}

/// The type character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presentation {
    Absent,
    Text,
    Decimal,
    Based(Base),
    Float(Notation, Case),
    Percentage,
}

/// One parsed format spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BraceSpec {
    fill: char,
    align: Option<Align>,
    sign: Sign,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    presentation: Presentation,
}

impl BraceSpec {
    /// Parses the text after the colon. `None`: this module does not support the spec.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let (fill, align);
        (fill, align, rest) = parse_align(rest);
        let sign = match rest.bytes().next() {
            Some(b'+') => Sign::Plus,
            Some(b'-') => Sign::Minus,
            Some(b' ') => Sign::Space,
            _ => Sign::Default,
        };
        if sign != Sign::Default {
            rest = &rest[1..];
        }
        let alternate = rest.starts_with('#');
        rest = rest.strip_prefix('#').unwrap_or(rest);
        let zero = fill.is_none() && rest.starts_with('0');
        if zero {
            rest = &rest[1..];
        }
        let width;
        (width, rest) = parse_number(rest)?;
        let mut precision = None;
        if let Some(behind) = rest.strip_prefix('.') {
            (precision, rest) = parse_number(behind)?;
            precision?;
        }
        Some(Self {
            fill: fill.unwrap_or(if zero { '0' } else { ' ' }),
            align,
            sign,
            alternate,
            zero,
            width: width.unwrap_or(0),
            precision,
            presentation: presentation(rest)?,
        })
    }

    /// Whether this module can render `format(value, spec)` for values of `kind`.
    ///
    /// [`RenderedBy::Mismatch`] is also returned for values that Python formats and this module does not.
    pub(super) fn accepts(&self, kind: ArgumentKind) -> RenderedBy {
        use ArgumentKind as Kind;
        let fits = match kind {
            Kind::AsciiStr | Kind::Str => {
                matches!(self.presentation, Presentation::Absent | Presentation::Text)
                    && self.sign == Sign::Default
                    && !self.alternate
                    && self.align != Some(Align::AfterSign)
            }
            Kind::Bool | Kind::Int => match self.presentation {
                Presentation::Absent | Presentation::Decimal | Presentation::Based(_) => self.precision.is_none(),
                Presentation::Float(..) | Presentation::Percentage => true,
                Presentation::Text => false,
            },
            Kind::Float => match self.presentation {
                // `#` keeps the point, and this type adds a digit after it. Both together would need a variant of their
                // own for a rare spec.
                Presentation::Absent => !self.alternate,
                Presentation::Float(..) | Presentation::Percentage => true,
                _ => false,
            },
            Kind::None | Kind::BigInt | Kind::Bytes | Kind::Other => false,
        };
        if fits { RenderedBy::Deferred } else { RenderedBy::Mismatch }
    }

    /// Appends `format(value, spec)`. On an error nothing is written.
    pub(super) fn render(&self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let kind = match value {
            Value::Bool(_) => ArgumentKind::Bool,
            Value::Int(_) | Value::Uint(_) => ArgumentKind::Int,
            Value::Float(_) | Value::Float32(_) => ArgumentKind::Float,
            Value::Str(_) | Value::Char(_) | Value::Rendered(_) => ArgumentKind::Str,
            Value::None | Value::BigInt(_) | Value::Pointer(_) | Value::Bytes(_) | Value::Tuple(_) => {
                ArgumentKind::Other
            }
        };
        if self.accepts(kind) != RenderedBy::Deferred {
            return Err(Malformed);
        }
        match (kind, self.presentation) {
            (ArgumentKind::Str, _) => self.render_text(value, out),
            (ArgumentKind::Float, _) | (_, Presentation::Float(..) | Presentation::Percentage) => {
                self.render_float(float_of(value).ok_or(Malformed)?, out);
            }
            _ => self.render_integer(integer_of(value).ok_or(Malformed)?, out),
        }
        Ok(())
    }

    fn render_text(&self, value: Value<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        push_str(out, value);
        if let Some(most) = self.precision {
            out.truncate(start + pad::prefix_bytes(&out[start..], most));
        }
        pad::widen(out, start, start, self.width, self.align.unwrap_or(Align::Left), self.fill);
    }

    fn render_integer(&self, (negative, magnitude): (bool, u64), out: &mut Vec<u8>) {
        let start = out.len();
        self.push_sign(out, negative);
        let body = match self.presentation {
            Presentation::Based(base) => {
                if self.alternate {
                    out.extend_from_slice(base.prefix().as_bytes());
                }
                let body = out.len();
                integer::push_based(out, magnitude, base);
                body
            }
            _ => {
                let body = out.len();
                integer::push_unsigned(out, magnitude);
                body
            }
        };
        self.widen_number(out, start, body);
    }

    fn render_float(&self, number: f64, out: &mut Vec<u8>) {
        let kept = if self.alternate { Point::Always } else { Point::AsNeeded };
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION);
        let (number, text) = match (self.presentation, self.precision) {
            (Presentation::Float(notation, case), _) => (number, FloatText { notation, precision, point: kept, case }),
            (Presentation::Percentage, _) => {
                (number * 100.0, FloatText { notation: Notation::Fixed, precision, point: kept, case: Case::Lower })
            }
            (_, Some(precision)) => (
                number,
                FloatText { notation: Notation::General, precision, point: Point::WithDigit, case: Case::Lower },
            ),
            (_, None) => (number, float::REPR),
        };
        let start = out.len();
        self.push_sign(out, float::is_negative(number));
        let body = out.len();
        float::push_magnitude(out, number.abs(), text);
        if self.presentation == Presentation::Percentage {
            out.push(b'%');
        }
        self.widen_number(out, start, body);
    }

    fn push_sign(&self, out: &mut Vec<u8>, negative: bool) {
        match self.sign {
            _ if negative => out.push(b'-'),
            Sign::Plus => out.push(b'+'),
            Sign::Space => out.push(b' '),
            Sign::Default | Sign::Minus => {}
        }
    }

    fn widen_number(&self, out: &mut Vec<u8>, start: usize, body: usize) {
        let default = if self.zero { Align::AfterSign } else { Align::Right };
        pad::widen(out, start, body, self.width, self.align.unwrap_or(default), self.fill);
    }
}

fn parse_align(text: &str) -> (Option<char>, Option<Align>, &str) {
    let mut characters = text.chars();
    let first = characters.next();
    if let (Some(fill), Some(align)) = (first, characters.next().and_then(align_of)) {
        return (Some(fill), Some(align), characters.as_str());
    }
    match first.and_then(align_of) {
        Some(align) => (None, Some(align), &text[1..]),
        None => (None, None, text),
    }
}

const fn align_of(character: char) -> Option<Align> {
    match character {
        '<' => Some(Align::Left),
        '>' => Some(Align::Right),
        '^' => Some(Align::Centre),
        '=' => Some(Align::AfterSign),
        _ => None,
    }
}

fn parse_number(text: &str) -> Option<(Option<usize>, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Some((None, text));
    }
    let number = text[..digits].parse().ok().filter(|number| *number <= MAX_AMOUNT)?;
    Some((Some(number), &text[digits..]))
}

fn presentation(text: &str) -> Option<Presentation> {
    Some(match text {
        "" => Presentation::Absent,
        "s" => Presentation::Text,
        "d" => Presentation::Decimal,
        "b" => Presentation::Based(Base::Binary),
        "o" => Presentation::Based(Base::Octal),
        "x" => Presentation::Based(Base::LowerHex),
        "X" => Presentation::Based(Base::UpperHex),
        "e" => Presentation::Float(Notation::Exponent, Case::Lower),
        "E" => Presentation::Float(Notation::Exponent, Case::Upper),
        "f" => Presentation::Float(Notation::Fixed, Case::Lower),
        "F" => Presentation::Float(Notation::Fixed, Case::Upper),
        "g" => Presentation::Float(Notation::General, Case::Lower),
        "G" => Presentation::Float(Notation::General, Case::Upper),
        "%" => Presentation::Percentage,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(spec: &str, value: Value<'_>) -> Option<String> {
        let mut out = Vec::new();
        BraceSpec::parse(spec)?.render(value, &mut out).ok()?;
        Some(String::from_utf8(out).expect("UTF-8"))
    }

    #[test]
    fn text_numbers_and_floats_are_shown_as_python_shows_them() {
        for (expected, spec, value) in [
            ("ab000", "05", Value::Str("ab")),
            ("é*", "*<2", Value::Str("é")),
            (" ab  ", "^5", Value::Str("ab")),
            ("a", ".1", Value::Str("ab")),
            ("-0005", "05", Value::Int(-5)),
            ("-5000", "<05", Value::Int(-5)),
            ("0x00ff", "#06x", Value::Int(255)),
            ("    1", "5", Value::Bool(true)),
            ("1.23e+02", ".3", Value::Float(123.0)),
            ("123.0", ".4", Value::Float(123.0)),
            ("50.0%", ".1%", Value::Float(0.5)),
            ("00nan", "05", Value::Float(f64::NAN)),
            ("  1.0", "5", Value::Float(1.0)),
            ("5.000000", "f", Value::Int(5)),
        ] {
            assert_eq!(Some(expected.to_owned()), formatted(spec, value), "{spec}");
        }
    }

    #[test]
    fn formats_that_python_rejects_or_we_do_not_reproduce_are_refused() {
        for spec in [",", "_d", "n", "c", "z", ".", "5000", "dd", "\u{0665}"] {
            assert_eq!(None, BraceSpec::parse(spec), "{spec}");
        }
        assert_eq!(None, formatted("d", Value::Float(1.0)));
        assert_eq!(None, formatted(".2d", Value::Int(1)));
        assert_eq!(None, formatted("+", Value::Str("a")));
        assert_eq!(None, formatted("=5", Value::Str("a")));
        assert_eq!(None, formatted(">5", Value::None));
    }
}
