//! JSON text as Python's `json.dumps` writes it.
//!
//! With `ensure_ascii` every character outside the printable ASCII characters is an escape; a character above U+FFFF is
//! two escapes. Floats are `float.__repr__`, or `NaN`, `Infinity` and `-Infinity`. A field that the caller has
//! rendered is JSON text already.

use super::json::push_string as push_utf8_string;
use super::json_escape::push_ascii_escaped;
use super::repr::push_str;
use crate::record::Value;

/// Appends a value.
pub(super) fn push_value(out: &mut Vec<u8>, value: Value<'_>, ascii: bool) {
    match value {
        Value::None => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Float(number) if number.is_nan() => out.extend_from_slice(b"NaN"),
        Value::Float(number) if number.is_infinite() => {
            out.extend_from_slice(if number > 0.0 { b"Infinity" } else { b"-Infinity" });
        }
        Value::Float32(number) if !number.is_finite() => push_value(out, Value::Float(number.into()), ascii),
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Float32(_) => push_str(out, value),
        Value::BigInt(text) | Value::Rendered(text) => out.extend_from_slice(text.as_bytes()),
        Value::Str(text) => push_string(out, text, ascii),
        // Callers render these.
        Value::Char(_) | Value::Pointer(_) | Value::Bytes(_) | Value::Tuple(_) => {
            let mut text = Vec::new();
            push_str(&mut text, value);
            push_string(out, &String::from_utf8_lossy(&text), ascii);
        }
    }
}

/// Appends a text with its quotes. With `ascii`, every character outside the printable ASCII characters is an escape.
pub fn push_string(out: &mut Vec<u8>, text: &str, ascii: bool) {
    if ascii && !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        push_ascii_string(out, text);
    } else {
        push_utf8_string(out, text.as_bytes());
    }
}

fn push_ascii_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_ascii_escaped(out, text);
    out.push(b'"');
}

/// Appends a list of the lines of a text, as `str.splitlines` finds them.
pub(super) fn push_lines(out: &mut Vec<u8>, mut text: &str, ascii: bool) {
    let is_end = |character: char| {
        matches!(character, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    out.push(b'[');
    let mut is_first = true;
    while !text.is_empty() {
        if !std::mem::replace(&mut is_first, false) {
            out.extend_from_slice(b", ");
        }
        let end = text.find(is_end).unwrap_or(text.len());
        push_string(out, &text[..end], ascii);
        let rest = &text[end..];
        text = match rest.strip_prefix("\r\n") {
            Some(rest) => rest,
            None => rest.chars().next().map_or("", |end| &rest[end.len_utf8()..]),
        };
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(show: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        show(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn text_is_escaped_as_json_dumps_escapes_it() {
        // Results of `json.dumps(text, ensure_ascii=...)`.
        for (text, ascii, utf8) in [
            ("a\"b\\c", r#""a\"b\\c""#, r#""a\"b\\c""#),
            ("\n\r\t\x08\x0c\x00\x1f", r#""\n\r\t\b\f\u0000\u001f""#, r#""\n\r\t\b\f\u0000\u001f""#),
            ("é\x7f", r#""\u00e9\u007f""#, "\"é\x7f\""),
            ("\u{1f600}\u{2028}", r#""\ud83d\ude00\u2028""#, "\"\u{1f600}\u{2028}\""),
        ] {
            assert_eq!(ascii, shown(|out| push_string(out, text, true)));
            assert_eq!(utf8, shown(|out| push_string(out, text, false)));
        }
    }

    #[test]
    fn numbers_are_written_as_json_dumps_writes_them() {
        for (value, text) in [
            (Value::Float(1e22), "1e+22"),
            (Value::Float(-0.0), "-0.0"),
            (Value::Float(f64::NAN), "NaN"),
            (Value::Float(f64::INFINITY), "Infinity"),
            (Value::Float(f64::NEG_INFINITY), "-Infinity"),
            (Value::Float32(0.1), "0.1"),
            (Value::Float32(-f32::INFINITY), "-Infinity"),
            (Value::Uint(u64::MAX), "18446744073709551615"),
            (Value::Pointer(4096), "\"0x1000\""),
            (Value::Char('é'), "\"\\u00e9\""),
            (Value::BigInt("12345678901234567890"), "12345678901234567890"),
            (Value::Rendered("[1, {}]"), "[1, {}]"),
            (Value::Bool(true), "true"),
            (Value::None, "null"),
        ] {
            assert_eq!(text, shown(|out| push_value(out, value, true)));
        }
    }

    #[test]
    fn lines_equal_those_of_splitlines() {
        for (text, lines) in [
            ("", "[]"),
            ("a", r#"["a"]"#),
            ("a\r\nb\rc\n", r#"["a", "b", "c"]"#),
            ("\n\n", r#"["", ""]"#),
            ("a\u{2028}b\x0bc\x1cd\u{85}", r#"["a", "b", "c", "d"]"#),
        ] {
            assert_eq!(lines, shown(|out| push_lines(out, text, true)));
        }
    }
}
