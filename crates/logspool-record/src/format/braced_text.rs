//! Text in quotes as `{:?}` shows it, and the columns that a text takes.
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

use std::fmt;
use std::io::Write;

use crate::record::Value;

/// The language whose rules `{:?}` follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Fmt,
    Rust,
}

/// The columns of a terminal that {fmt} assumes for a text.
pub(super) fn columns(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(|character| 1 + usize::from(is_wide(character.into()))).sum()
}

const fn is_wide(code: u32) -> bool {
    matches!(code,
        0x1100..=0x115f
        | 0x2329..=0x232a
        | 0x2e80..=0x303e
        | 0x3040..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe10..=0xfe19
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x2fffd
        | 0x30000..=0x3fffd)
}

/// Whether a character is shown unchanged by `{:?}` inside a text, as far as no quotes are concerned.
///
/// {fmt}'s table comes from that of Rust's library; the release of Unicode may differ.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    // Rust escapes a combining character only at the start of a text.
    let mut bytes = [b'a'; 5];
    let len = 1 + character.encode_utf8(&mut bytes[1..]).len();
    let text = std::str::from_utf8(&bytes[..len]).unwrap_or_default();
    text.escape_debug().count() == 2
}

/// Appends a text in double quotes.
pub(super) fn push_escaped(text: &str, quote: Quote, out: &mut Vec<u8>) {
    if quote == Quote::Rust {
        write!(out, "{text:?}").expect("a vector takes every byte");
        return;
    }
    out.push(b'"');
    for character in text.chars() {
        push_fmt_escaped(character, '"', out);
    }
    out.push(b'"');
}

/// Appends a character in single quotes, as {fmt} does.
pub(super) fn push_escaped_character(character: char, out: &mut Vec<u8>) {
    out.push(b'\'');
    push_fmt_escaped(character, '\'', out);
    out.push(b'\'');
}

fn push_fmt_escaped(character: char, quote: char, out: &mut Vec<u8>) {
    let code = u32::from(character);
    let escape = match character {
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\\' => '\\',
        character if character == quote => quote,
        character if is_printable(character) => {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
        _ => {
            let written = match code {
                ..0x100 => write!(out, "\\x{code:02x}"),
                ..0x1_0000 => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return written.expect("a vector takes every byte");
        }
    };
    out.push(b'\\');
    out.extend_from_slice(escape.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends a value as an item of a tuple.
pub(super) fn push_debug(value: Value<'_>, quote: Quote, out: &mut Vec<u8>) {
    match (value, quote) {
        (Value::Tuple(items), Quote::Fmt) => {
            out.push(b'(');
            for (index, item) in items.enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                push_debug(item, quote, out);
            }
            out.push(b')');
        }
        (Value::Str(text), Quote::Fmt) => push_escaped(text, quote, out),
        (Value::Char(character), Quote::Fmt) => push_escaped_character(character, out),
        (value, Quote::Fmt) => {
            let _ = super::fmt_render::push_value(&super::placeholder::PlaceholderSpec::PLAIN, value, out);
        }
        (value, Quote::Rust) => write!(out, "{:?}", DebugValue(value)).expect("a vector takes every byte"),
    }
}

/// Shows a value as Rust's `Debug` does.
pub(super) struct DebugValue<'a>(pub(super) Value<'a>);

impl fmt::Debug for DebugValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::None => formatter.write_str("None"),
            Value::Bool(truth) => truth.fmt(formatter),
            Value::Int(number) => number.fmt(formatter),
            Value::Uint(number) => number.fmt(formatter),
            Value::BigInt(text) => match (text.parse::<u128>(), text.parse::<i128>()) {
                (Ok(number), _) => number.fmt(formatter),
                (_, Ok(number)) => number.fmt(formatter),
                _ => formatter.write_str(text),
            },
            Value::Float(number) => number.fmt(formatter),
            Value::Float32(number) => number.fmt(formatter),
            Value::Char(character) => character.fmt(formatter),
            Value::Str(text) => text.fmt(formatter),
            Value::Rendered(text) => formatter.write_str(text),
            Value::Bytes(bytes) => bytes.fmt(formatter),
            Value::Pointer(address) => (address as usize as *const ()).fmt(formatter),
            Value::Tuple(items) => {
                let mut tuple = formatter.debug_tuple("");
                for item in items {
                    tuple.field(&DebugValue(item));
                }
                tuple.finish()
            }
        }
    }
}
