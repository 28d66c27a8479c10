//! `str`, `repr` and `ascii` of values.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). `repr` of non-ASCII text depends on the interpreter's Unicode tables
//! (`str.isprintable`), so capture sends such text already rendered. This module still gets non-ASCII text from callers
//! other than Python, and inside a tuple. It then shows the characters unchanged.

use std::io::Write;

use super::float::{push_repr as push_float_repr, push_single_repr};
use super::integer::{Base, push_based, push_signed, push_unsigned};
use crate::record::{Value, Values};

/// Treatment of non-ASCII characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonAscii {
    /// Show the characters, as `repr` does.
    Keep,
    /// Escape the characters, as `ascii` does.
    Escape,
}

/// Appends `str(value)`.
#[inline]
pub fn push_str(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Str(text) | Value::Rendered(text) => out.extend_from_slice(text.as_bytes()),
        Value::Char(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        other => push_repr(out, other, NonAscii::Keep),
    }
}

/// Appends `repr(value)`, or `ascii(value)`.
pub fn push_repr(out: &mut Vec<u8>, value: Value<'_>, beyond: NonAscii) {
    match value {
        Value::None => out.extend_from_slice(b"None"),
        Value::Bool(true) => out.extend_from_slice(b"True"),
        Value::Bool(false) => out.extend_from_slice(b"False"),
        Value::Int(number) => push_signed(out, number),
        Value::Uint(number) => push_unsigned(out, number),
        Value::BigInt(digits) => out.extend_from_slice(digits.as_bytes()),
        Value::Float(number) => push_float_repr(out, number),
        Value::Float32(number) => push_single_repr(out, number),
        Value::Pointer(address) => push_pointer(out, address),
        Value::Char(character) => push_str_repr(out, character.encode_utf8(&mut [0; 4]), beyond),
        Value::Str(text) => push_str_repr(out, text, beyond),
        Value::Rendered(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => push_bytes_repr(out, bytes),
        Value::Tuple(items) => push_tuple_repr(out, items, beyond),
    }
}

/// Appends an address as `0x` and its hexadecimal digits.
pub(super) fn push_pointer(out: &mut Vec<u8>, address: u64) {
    out.extend_from_slice(b"0x");
    push_based(out, address, Base::LowerHex);
}

fn push_tuple_repr(out: &mut Vec<u8>, items: Values<'_>, beyond: NonAscii) {
    out.push(b'(');
    let mut count = 0;
    for item in items {
        if count > 0 {
            out.extend_from_slice(b", ");
        }
        push_repr(out, item, beyond);
        count += 1;
    }
    out.extend_from_slice(if count == 1 { b",)" } else { b")" });
}

/// The quote that Python uses. It is the double quote only if the text has single quotes and no double quotes.
fn quote_for(bytes: &[u8]) -> u8 {
    if bytes.contains(&b'\'') && !bytes.contains(&b'"') { b'"' } else { b'\'' }
}

fn push_str_repr(out: &mut Vec<u8>, text: &str, beyond: NonAscii) {
    let quote = quote_for(text.as_bytes());
    out.push(quote);
    for character in text.chars() {
        if character.is_ascii() {
            push_ascii_escaped(out, character as u8, quote);
            continue;
        }
        let code = u32::from(character);
        match beyond {
            NonAscii::Keep => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            NonAscii::Escape if code < 0x100 => write!(out, "\\x{code:02x}").expect("a vector takes every byte"),
            NonAscii::Escape if code < 0x1_0000 => write!(out, "\\u{code:04x}").expect("a vector takes every byte"),
            NonAscii::Escape => write!(out, "\\U{code:08x}").expect("a vector takes every byte"),
        }
    }
    out.push(quote);
}

fn push_bytes_repr(out: &mut Vec<u8>, bytes: &[u8]) {
    let quote = quote_for(bytes);
    out.extend_from_slice(&[b'b', quote]);
    for byte in bytes {
        if byte.is_ascii() {
            push_ascii_escaped(out, *byte, quote);
        } else {
            write!(out, "\\x{byte:02x}").expect("a vector takes every byte");
        }
    }
    out.push(quote);
}

#[inline]
fn push_ascii_escaped(out: &mut Vec<u8>, byte: u8, quote: u8) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        byte if byte == quote => out.extend_from_slice(&[b'\\', byte]),
        b' '..=b'~' => out.push(byte),
        byte => write!(out, "\\x{byte:02x}").expect("a vector takes every byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Encoder;

    fn repr(value: Value<'_>, beyond: NonAscii) -> String {
        let mut out = Vec::new();
        push_repr(&mut out, value, beyond);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn quotes_and_escapes_equal_those_of_python() {
        assert_eq!(r#""a'b""#, repr(Value::Str("a'b"), NonAscii::Keep));
        assert_eq!(r#"'a\'b"'"#, repr(Value::Str("a'b\""), NonAscii::Keep));
        assert_eq!(r"'\x7f\x00\t\n\r\\'", repr(Value::Str("\x7f\0\t\n\r\\"), NonAscii::Keep));
        assert_eq!(r"'\xe9\u2603\U0001f600'", repr(Value::Str("é☃😀"), NonAscii::Escape));
        assert_eq!(r#"b"'\xff\x00""#, repr(Value::Bytes(b"'\xff\0"), NonAscii::Keep));
    }

    #[test]
    fn an_address_is_hexadecimal() {
        assert_eq!("0x0", repr(Value::Pointer(0), NonAscii::Keep));
        assert_eq!("0xffffffffffffffff", repr(Value::Pointer(u64::MAX), NonAscii::Keep));
    }

    #[test]
    fn a_tuple_of_one_has_a_comma() {
        let mut encoder = Encoder::new();
        encoder.tuple(1).tuple(2).str("a").none();
        let value = Values::new(&encoder.bytes).next().expect("a tuple was written");

        assert_eq!("(('a', None),)", repr(value, NonAscii::Keep));
    }
}
