//! Values as the placeholders of {fmt} 9.1 show them.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). Values that C++ does not have are shown in a similar way: no value is
//! `none`, and bytes are text.

use super::braced_text;
use super::float::{self, Case, FloatText, Notation, Point};
use super::fmt_grammar::notation;
use super::hex_float::push_hex_float;
use super::integer::{self, Base};
use super::malformed::Malformed;
use super::pad::{self, Align};
use super::placeholder::{PlaceholderSpec, PlaceholderType as Kind};
use super::wide_integer::{WideInteger, push_wide};
use crate::record::Value;

/// Digits of `e`, `f`, `g` without a precision.
const DEFAULT_PRECISION: usize = 6;

/// Appends the text of a value. On an error, the text may be incomplete.
pub(super) fn push_value(spec: &PlaceholderSpec, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    match value {
        Value::Rendered(text) => out.extend_from_slice(text.as_bytes()),
        Value::Str(text) => return push_text(spec, text, out),
        Value::Bytes(bytes) => return push_text(spec, &String::from_utf8_lossy(bytes), out),
        Value::None => return push_text(spec, "none", out),
        Value::Tuple(_) if spec.kind == Kind::Absent => {
            let start = out.len();
            push_item(value, out);
            spec.pad(out, start, pad::char_count(&out[start..]), Align::Left);
        }
        Value::Tuple(_) => return Err(Malformed),
        Value::Bool(truth) if matches!(spec.kind, Kind::Absent | Kind::Text) => {
            let start = out.len();
            out.extend_from_slice(if truth { b"true" } else { b"false" });
            let default = if spec.zero { Align::Right } else { Align::Left };
            spec.pad(out, start, out.len() - start, default);
        }
        Value::Char(character) if matches!(spec.kind, Kind::Absent | Kind::Character | Kind::Debug) => {
            push_character(spec, character, out);
        }
        Value::Char(character) => {
            return push_integer(spec, WideInteger { negative: false, magnitude: u32::from(character).into() }, out);
        }
        Value::Pointer(address) => {
            if !matches!(spec.kind, Kind::Absent | Kind::Pointer) {
                return Err(Malformed);
            }
            let start = out.len();
            out.extend_from_slice(b"0x");
            integer::push_based(out, address, Base::LowerHex);
            spec.pad(out, start, out.len() - start, Align::Right);
        }
        Value::Float(number) => return push_float(spec, Number::Double(number), out),
        Value::Float32(number) => return push_float(spec, Number::Single(number), out),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::BigInt(_) => {
            return push_integer(spec, WideInteger::of(value).ok_or(Malformed)?, out);
        }
    }
    Ok(())
}

/// Appends a value as an item of a tuple. The items of a record are nested to a limited depth.
fn push_item(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Tuple(items) => {
            out.push(b'(');
            for (index, item) in items.enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                push_item(item, out);
            }
            out.push(b')');
        }
        Value::Str(text) => braced_text::push_escaped(text, out),
        Value::Char(character) => braced_text::push_escaped_character(character, out),
        // Every other value is shown by `{}`.
        value => push_value(&PlaceholderSpec::PLAIN, value, out).unwrap_or(()),
    }
}

fn push_text(spec: &PlaceholderSpec, text: &str, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let start = out.len();
    match spec.kind {
        Kind::Absent | Kind::Text => {
            let end = match spec.precision {
                Some(most) => pad::prefix_bytes(text.as_bytes(), most),
                None => text.len(),
            };
            out.extend_from_slice(&text.as_bytes()[..end]);
            if spec.width > 0 {
                spec.pad(out, start, braced_text::columns(&text[..end]), Align::Left);
            }
        }
        // {fmt} ignores the precision, and counts the bytes.
        Kind::Debug => {
            braced_text::push_escaped(text, out);
            spec.pad(out, start, out.len() - start, Align::Left);
        }
        _ => return Err(Malformed),
    }
    Ok(())
}

fn push_character(spec: &PlaceholderSpec, character: char, out: &mut Vec<u8>) {
    let start = out.len();
    if spec.kind == Kind::Debug {
        braced_text::push_escaped_character(character, out);
    } else {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    // {fmt} counts an escaped character as one.
    spec.pad(out, start, 1, if spec.zero { Align::Right } else { Align::Left });
}

fn push_integer(spec: &PlaceholderSpec, number: WideInteger, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let (base, prefix) = match spec.kind {
        Kind::Absent | Kind::Decimal => (None, ""),
        Kind::Octal => (Some(Base::Octal), if number.magnitude == 0 { "" } else { "0" }),
        Kind::LowerHex => (Some(Base::LowerHex), "0x"),
        Kind::UpperHex => (Some(Base::UpperHex), "0X"),
        Kind::LowerBinary => (Some(Base::Binary), "0b"),
        Kind::UpperBinary => (Some(Base::Binary), "0B"),
        Kind::Character => {
            // {fmt} writes the lowest byte. A line is UTF-8, so a byte that is no character is replaced.
            let byte = number.magnitude as u8;
            push_character(spec, if byte.is_ascii() { char::from(byte) } else { char::REPLACEMENT_CHARACTER }, out);
            return Ok(());
        }
        _ => return Err(Malformed),
    };
    let start = out.len();
    spec.push_sign(out, number.negative);
    if spec.alternate {
        out.extend_from_slice(prefix.as_bytes());
    }
    let body = out.len();
    push_wide(out, number.magnitude, base);
    finish_number(spec, out, start, body);
    Ok(())
}

/// Widens a number. Zeros go between sign and digits, unless there is an alignment.
fn finish_number(spec: &PlaceholderSpec, out: &mut Vec<u8>, start: usize, body: usize) {
    if spec.width == 0 {
        return;
    }
    if spec.zero && spec.align.is_none() {
        spec.pad_with_zeros(out, start, body);
    } else {
        spec.pad(out, start, out.len() - start, Align::Right);
    }
}

/// A number with its precision.
#[derive(Debug, Clone, Copy)]
enum Number {
    Double(f64),
    Single(f32),
}

impl Number {
    fn double(self) -> f64 {
        match self {
            Self::Double(number) => number,
            Self::Single(number) => number.into(),
        }
    }
}

fn push_float(spec: &PlaceholderSpec, number: Number, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let double = number.double();
    let start = out.len();
    // {fmt} shows the sign of a nan, too.
    spec.push_sign(out, double.is_sign_negative());
    let body = out.len();
    let magnitude = double.abs();
    let point = if spec.alternate { Point::Always } else { Point::AsNeeded };
    let upper = |upper| if upper { Case::Upper } else { Case::Lower };
    if !double.is_finite() {
        let is_upper = match (notation(spec.kind), spec.kind) {
            (Some((_, is_upper)), _) => is_upper,
            (None, kind) => kind == Kind::UpperHexFloat,
        };
        float::push_magnitude(out, magnitude, FloatText { case: upper(is_upper), ..float::REPR });
        // Zeros before such a number become spaces.
        let fill = if spec.fill == '0' { ' ' } else { spec.fill };
        let default = if spec.zero { Align::Right } else { Align::Left };
        PlaceholderSpec { fill, ..*spec }.pad(out, start, out.len() - start, default);
        return Ok(());
    }
    match (spec.kind, notation(spec.kind)) {
        (Kind::LowerHexFloat | Kind::UpperHexFloat, _) => {
            push_hex_float(out, magnitude, spec.precision, spec.alternate, spec.kind == Kind::UpperHexFloat);
        }
        (Kind::Absent, _) if spec.precision.is_none() => push_shortest(out, number, spec.alternate),
        (kind, noted) => {
            let (notation, is_upper) = match (kind, noted) {
                (Kind::Absent, _) => (Notation::General, false),
                (_, Some(noted)) => noted,
                (_, None) => return Err(Malformed),
            };
            let precision = spec.precision.unwrap_or(DEFAULT_PRECISION);
            float::push_magnitude(out, magnitude, FloatText { notation, precision, point, case: upper(is_upper) });
            if notation == Notation::General && out.last() == Some(&b'.') {
                out.push(b'0');
            }
        }
    }
    finish_number(spec, out, start, body);
    Ok(())
}

/// Appends the fewest digits that read back as the same number.
fn push_shortest(out: &mut Vec<u8>, number: Number, alternate: bool) {
    let start = out.len();
    let magnitude = match number {
        Number::Double(number) => {
            float::push_repr(out, number.abs());
            number.abs()
        }
        Number::Single(number) => {
            float::push_single_repr(out, number.abs());
            number.abs().into()
        }
    };
    let has_exponent = magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude);
    if !alternate && out[start..].ends_with(b".0") {
        out.truncate(out.len() - 2);
    } else if alternate && has_exponent && out.get(start + 1) == Some(&b'e') {
        pad::insert_bytes(out, start + 1, b".");
    }
}

#[cfg(test)]
mod tests {
    use super::super::braced::{BracedGrammar, BracedTemplate};
    use crate::record::{Encoder, Values};

    fn shown(template: &str, encoder: &Encoder) -> String {
        let mut out = Vec::new();
        let template = BracedTemplate::parse(BracedGrammar::Fmt, template);
        let _ = template.render(Values::new(&encoder.bytes), Values::new(&[]), &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn values_are_shown_as_fmt_shows_them() {
        let value = |add: &dyn Fn(&mut Encoder)| {
            let mut encoder = Encoder::new();
            add(&mut encoder);
            encoder
        };
        let int = |number| {
            value(&move |encoder| {
                encoder.int(number);
            })
        };
        let float = |number| {
            value(&move |encoder| {
                encoder.float(number);
            })
        };
        for (expected, template, values) in [
            ("{} 1", "{{}} {}", float(1.0)),
            (
                "true",
                "{}",
                value(&|encoder| {
                    encoder.bool(true);
                }),
            ),
            (
                "000true",
                "{:07}",
                value(&|encoder| {
                    encoder.bool(true);
                }),
            ),
            ("-0x00ff", "{:#07x}", int(-255)),
            ("42**", "{:*<4}", int(42)),
            ("A    ", "{:5c}", int(65)),
            (
                "0.1",
                "{}",
                value(&|encoder| {
                    encoder.float32(0.1);
                }),
            ),
            (
                "0x0",
                "{}",
                value(&|encoder| {
                    encoder.pointer(0);
                }),
            ),
            ("1e+20", "{}", float(1e20)),
            ("1.e+20", "{:#}", float(1e20)),
            ("-nan  ", "{:6}", float(-f64::NAN)),
            ("   inf", "{:06}", float(f64::INFINITY)),
            ("123.0", "{:#.3}", float(123.0)),
            ("0x1.8p+0", "{:a}", float(1.5)),
            (
                "漢  ",
                "{:4}",
                value(&|encoder| {
                    encoder.str("漢");
                }),
            ),
            (
                "\"a\\n\\\"'\"",
                "{:?}",
                value(&|encoder| {
                    encoder.str("a\n\"'");
                }),
            ),
            (
                "'\\''",
                "{:?}",
                value(&|encoder| {
                    encoder.char('\'');
                }),
            ),
            (
                "340282366920938463463374607431768211455",
                "{}",
                value(&|encoder| {
                    encoder.uint128(u128::MAX);
                }),
            ),
            (
                "-80000000000000000000000000000000",
                "{:x}",
                value(&|encoder| {
                    encoder.int128(i128::MIN);
                }),
            ),
        ] {
            assert_eq!(expected, shown(template, &values), "{template}");
        }
    }

    #[test]
    fn values_that_do_not_fit_leave_a_marker() {
        let mut encoder = Encoder::new();
        encoder.str("a").int(-1).int(1_000_000_000);

        assert_eq!("a<?> -1", shown("{:d} {}", &encoder));
        assert_eq!("a<?>", shown("{:{}}", &encoder));
        assert_eq!("a<?>", shown("{0:{2}}", &encoder));
        assert_eq!("a -1 1000000000 <?>", shown("{} {} {} {}", &encoder));
        assert_eq!("<?> {:1000000000}", shown("{9} {{:1000000000}}", &encoder));
        assert_eq!("x {<?> 'a' -1 1000000000", shown("x {", &encoder));
        assert_eq!("a<?> -1", shown("{:%Y} {}", &encoder));
    }
}
