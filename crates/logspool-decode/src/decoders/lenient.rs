//! Rewrites JSON that is not quite valid to valid JSON: the second reading of texts that a strict parser refuses.
//!
//! Many programs write such JSON: Python's `json` writes `NaN`, formatters that paste text into a template write raw
//! tabs and escape sequences, and programs with other encodings write Latin-1 bytes. The rewritten text is read by the
//! strict parser, so this file decides only about single bytes and words.
//!
//! - Bytes that are not UTF-8 and lone surrogates become U+FFFD.
//! - Control characters in strings become escapes. Unknown escapes keep their backslash.
//! - `NaN`, `Infinity`, and numbers that are no JSON or do not fit their type become text.

/// Numbers without a value in JSON.
const WORDS: &[&[u8]] = &[b"nan", b"infinity", b"inf"];

/// Rewrites a JSON text. Other faults stay as they are, and the text is refused by the strict parser.
pub fn rewritten(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes));
    let bytes = text.as_bytes();
    let mut to = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 16);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string(bytes, at, &mut to),
            b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => at = word(bytes, at, &mut to),
            byte => {
                to.push(*byte);
                at += 1;
            }
        }
    }
    to
}

/// Copies a string that begins at `at`. Returns the position after it.
fn string(bytes: &[u8], mut at: usize, to: &mut Vec<u8>) -> usize {
    to.push(b'"');
    at += 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                to.push(b'"');
                return at + 1;
            }
            b'\\' => at = escape(bytes, at, to),
            control @ 0..0x20 => {
                to.extend_from_slice(format!("\\u{control:04x}").as_bytes());
                at += 1;
            }
            byte => {
                to.push(*byte);
                at += 1;
            }
        }
    }
    at
}

/// Copies an escape that begins at `at`. Returns the position after it.
fn escape(bytes: &[u8], at: usize, to: &mut Vec<u8>) -> usize {
    let unit = |at: usize| -> Option<u32> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | (*digit as char).to_digit(16)?))
    };
    match (bytes.get(at + 1), unit(at)) {
        (Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'), _) => {
            to.extend_from_slice(&bytes[at..at + 2]);
            at + 2
        }
        (_, Some(0xD800..0xDC00)) if unit(at + 6).is_some_and(|low| (0xDC00..0xE000).contains(&low)) => {
            to.extend_from_slice(&bytes[at..at + 12]);
            at + 12
        }
        (_, Some(0xD800..0xE000)) => {
            to.extend_from_slice(b"\\ufffd");
            at + 6
        }
        (_, Some(_)) => {
            to.extend_from_slice(&bytes[at..at + 6]);
            at + 6
        }
        _ => {
            to.extend_from_slice(b"\\\\");
            at + 1
        }
    }
}

/// Copies a word outside of strings. Returns the position after it.
fn word(bytes: &[u8], at: usize, to: &mut Vec<u8>) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    let length = bytes[at..].iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len() - at);
    let word = &bytes[at..at + length];
    let unsigned = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    let is_name = WORDS.iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    let is_number = unsigned.first().is_some_and(|first| first.is_ascii_digit() || *first == b'.');
    if is_name || (is_number && !fits(word)) {
        to.push(b'"');
        to.extend_from_slice(word);
        to.push(b'"');
    } else {
        to.extend_from_slice(word);
    }
    at + length
}

/// True if the number is valid JSON, and a value has it without a loss: an integer of 64 bits, or a finite double.
fn fits(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let text = std::str::from_utf8(word).unwrap_or_default();
    match digits.iter().all(u8::is_ascii_digit) {
        true => text.parse::<i64>().is_ok() && (digits.len() == 1 || digits[0] != b'0'),
        false => serde_json::from_slice::<f64>(word).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_repaired_and_valid_text_is_unchanged() {
        let cases: &[(&[u8], &str)] = &[
            (b"\xEF\xBB\xBF{\"a\":1}", r#"{"a":1}"#),
            (b"{\"a\":NaN,\"b\":[Infinity,-Infinity,nan]}", r#"{"a":"NaN","b":["Infinity","-Infinity","nan"]}"#),
            (b"[1e400,-1e400,1e40,0.5,-7]", r#"["1e400","-1e400",1e40,0.5,-7]"#),
            (b"[18446744073709551616,-9223372036854775809]", r#"["18446744073709551616","-9223372036854775809"]"#),
            (b"[01,+5,.5,0x1F,5.]", r#"["01","+5",".5","0x1F","5."]"#),
            (b"{\"a\":\"\tx\x1B[31m\"}", r#"{"a":"\u0009x\u001b[31m"}"#),
            (b"[\"caf\xE9\"]", "[\"caf\u{FFFD}\"]"),
            (br#"["\ud83d","\ude00 \ud83d\ude00","\ud83dx"]"#, r#"["\ufffd","\ufffd \ud83d\ude00","\ufffdx"]"#),
            (br#"["C:\dir\x41\u12","\"\\"]"#, r#"["C:\\dir\\x41\\u12","\"\\"]"#),
            (br#"{"NaN":true,"b":null,"c":false}"#, r#"{"NaN":true,"b":null,"c":false}"#),
            (b"{\"open", "{\"open"),
            (b"\"\\", "\"\\\\"),
        ];
        for (sent, expected) in cases {
            assert_eq!(*expected, String::from_utf8_lossy(&rewritten(sent)));
        }
    }
}
