//! Values as Rust's `format!` shows them.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). `core::fmt` writes every number that no fast path writes, so the
//! digits are Rust's. A record does not keep the size of an integer: `{:x}`, `{:o}` and `{:b}` of a negative integer
//! show 64 bits, or 128 bits if 64 do not hold it. Width and precision do not apply to the items of a tuple.

use std::io::Write;

use super::braced_text::DebugValue;
use super::integer::{self, Base};
use super::malformed::Malformed;
use super::pad::{self, Align};
use super::placeholder::{PlaceholderSpec, PlaceholderType as Kind};
use super::wide_integer::{WideInteger, push_wide};
use crate::record::Value;

/// Width of `{:#p}`: the prefix, and the digits of an address of 64 bits.
const ADDRESS_WIDTH: usize = 18;

/// Appends the text of a value. On an error, the text may be incomplete.
pub(super) fn push_value(spec: &PlaceholderSpec, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let is_debug = matches!(spec.kind, Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex);
    let start = out.len();
    match value {
        Value::Rendered(text) => out.extend_from_slice(text.as_bytes()),
        Value::Int(_) | Value::Uint(_) | Value::BigInt(_) => {
            return push_integer(spec, WideInteger::of(value).ok_or(Malformed)?, out);
        }
        Value::Float(number) => return push_float(spec, number, number.is_sign_negative(), out),
        Value::Float32(number) => return push_float(spec, number, number.is_sign_negative(), out),
        Value::Bool(truth) if is_debug || spec.kind == Kind::Absent => {
            push_padded(spec, if truth { "true" } else { "false" }, out);
        }
        Value::Str(text) if spec.kind == Kind::Absent => push_padded(spec, text, out),
        Value::Char(character) if spec.kind == Kind::Absent => {
            push_padded(spec, character.encode_utf8(&mut [0; 4]), out);
        }
        Value::Pointer(address) if is_debug || spec.kind == Kind::Pointer => push_address(spec, address, out),
        Value::None if is_debug || spec.kind == Kind::Absent => out.extend_from_slice(b"None"),
        value if is_debug => push_debug(spec, value, out),
        _ => return Err(Malformed),
    }
    debug_assert!(out.len() >= start);
    Ok(())
}

/// Appends a text, cut and padded.
fn push_padded(spec: &PlaceholderSpec, text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    let end = spec.precision.map_or(text.len(), |most| pad::prefix_bytes(text.as_bytes(), most));
    out.extend_from_slice(&text.as_bytes()[..end]);
    if spec.width > 0 {
        spec.pad(out, start, pad::char_count(&out[start..]), Align::Left);
    }
}

fn push_debug(spec: &PlaceholderSpec, value: Value<'_>, out: &mut Vec<u8>) {
    let value = DebugValue(value);
    match (spec.kind, spec.alternate) {
        (Kind::DebugLowerHex, false) => write!(out, "{value:x?}"),
        (Kind::DebugLowerHex, true) => write!(out, "{value:#x?}"),
        (Kind::DebugUpperHex, false) => write!(out, "{value:X?}"),
        (Kind::DebugUpperHex, true) => write!(out, "{value:#X?}"),
        (_, false) => write!(out, "{value:?}"),
        (_, true) => write!(out, "{value:#?}"),
    }
    .expect("a vector takes every byte");
}

/// Appends an address: with `#`, all of its digits.
fn push_address(spec: &PlaceholderSpec, address: u64, out: &mut Vec<u8>) {
    let start = out.len();
    spec.push_sign(out, false);
    out.extend_from_slice(b"0x");
    let body = out.len();
    integer::push_based(out, address, Base::LowerHex);
    let width = if spec.alternate && spec.width == 0 { ADDRESS_WIDTH } else { spec.width };
    finish_number(&PlaceholderSpec { width, zero: spec.zero || spec.alternate, ..*spec }, out, start, body);
}

fn push_integer(spec: &PlaceholderSpec, number: WideInteger, out: &mut Vec<u8>) -> Result<(), Malformed> {
    let start = out.len();
    let (base, prefix) = match spec.kind {
        Kind::Absent | Kind::Debug => (None, ""),
        Kind::LowerHex | Kind::DebugLowerHex => (Some(Base::LowerHex), "0x"),
        Kind::UpperHex | Kind::DebugUpperHex => (Some(Base::UpperHex), "0x"),
        Kind::Octal => (Some(Base::Octal), "0o"),
        Kind::LowerBinary => (Some(Base::Binary), "0b"),
        Kind::LowerExponent | Kind::UpperExponent => {
            spec.push_sign(out, number.negative);
            let body = out.len();
            let magnitude = number.magnitude;
            match (spec.kind == Kind::UpperExponent, spec.precision) {
                (false, None) => write!(out, "{magnitude:e}"),
                (true, None) => write!(out, "{magnitude:E}"),
                (false, Some(precision)) => write!(out, "{magnitude:.precision$e}"),
                (true, Some(precision)) => write!(out, "{magnitude:.precision$E}"),
            }
            .expect("a vector takes every byte");
            finish_number(spec, out, start, body);
            return Ok(());
        }
        _ => return Err(Malformed),
    };
    // In another base than ten, a number is shown by its bits, which have no sign.
    spec.push_sign(out, number.negative && base.is_none());
    if spec.alternate {
        out.extend_from_slice(prefix.as_bytes());
    }
    let body = out.len();
    push_wide(out, if base.is_none() { number.magnitude } else { number.bits() }, base);
    finish_number(spec, out, start, body);
    Ok(())
}

/// A float whose digits `core::fmt` writes.
trait RustFloat: Copy + std::fmt::Display + std::fmt::Debug + std::fmt::LowerExp + std::fmt::UpperExp {
    fn magnitude(self) -> Self;
    fn is_no_number(self) -> bool;
}

impl RustFloat for f64 {
    fn magnitude(self) -> Self {
        self.abs()
    }

    fn is_no_number(self) -> bool {
        self.is_nan()
    }
}

impl RustFloat for f32 {
    fn magnitude(self) -> Self {
        self.abs()
    }

    fn is_no_number(self) -> bool {
        self.is_nan()
    }
}

fn push_float(
    spec: &PlaceholderSpec,
    number: impl RustFloat,
    negative: bool,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let start = out.len();
    if !number.is_no_number() {
        spec.push_sign(out, negative);
    }
    let body = out.len();
    let magnitude = number.magnitude();
    match (spec.kind, spec.precision) {
        (Kind::Absent, None) => write!(out, "{magnitude}"),
        (Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex, None) => write!(out, "{magnitude:?}"),
        (Kind::Absent | Kind::Debug | Kind::DebugLowerHex | Kind::DebugUpperHex, Some(precision)) => {
            write!(out, "{magnitude:.precision$}")
        }
        (Kind::LowerExponent, None) => write!(out, "{magnitude:e}"),
        (Kind::UpperExponent, None) => write!(out, "{magnitude:E}"),
        (Kind::LowerExponent, Some(precision)) => write!(out, "{magnitude:.precision$e}"),
        (Kind::UpperExponent, Some(precision)) => write!(out, "{magnitude:.precision$E}"),
        _ => return Err(Malformed),
    }
    .expect("a vector takes every byte");
    finish_number(spec, out, start, body);
    Ok(())
}

/// Widens a number. Zeros go between sign and digits, whatever the alignment.
fn finish_number(spec: &PlaceholderSpec, out: &mut Vec<u8>, start: usize, body: usize) {
    if spec.zero {
        spec.pad_with_zeros(out, start, body);
    } else {
        spec.pad(out, start, out.len() - start, Align::Right);
    }
}
