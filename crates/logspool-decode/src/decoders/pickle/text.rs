//! The text encodings of pickles.

use std::borrow::Cow;

/// UTF-8 as Python writes it with `surrogatepass`. A lone surrogate, which is not a character, is shown as `\udc80`.
pub fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(utf8_with_surrogates(bytes)),
    }
}

fn utf8_with_surrogates(mut bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    while let Err(error) = std::str::from_utf8(bytes) {
        let (good, bad) = bytes.split_at(error.valid_up_to());
        text.push_str(&String::from_utf8_lossy(good));
        bytes = match bad {
            [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF, rest @ ..] => {
                let code = 0xD000 | u32::from(second & 0x3F) << 6 | u32::from(third & 0x3F);
                text.push_str(&format!("\\u{code:04x}"));
                rest
            }
            _ => {
                text.push(char::REPLACEMENT_CHARACTER);
                &bad[error.error_len().unwrap_or(bad.len())..]
            }
        };
    }
    text.push_str(&String::from_utf8_lossy(bytes));
    text
}

/// Decodes a `str` of Python 2, whose encoding is unknown: as UTF-8 if it is valid, else as Latin-1.
pub fn guessed(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin1(bytes)),
    }
}

/// Decodes Latin-1: each byte is a character.
pub fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Encodes characters up to U+00FF as bytes; `None` if there are others.
pub fn to_latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|character| u8::try_from(u32::from(character)).ok()).collect()
}

/// Decodes Python's `raw-unicode-escape`: Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub fn raw_unicode_escape(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii() && !bytes.contains(&b'\\') {
        return guessed(bytes);
    }
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let digits = match (first, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => 0,
        };
        let code = (digits > 0).then(|| after.get(1..=digits).and_then(hexadecimal)).flatten();
        match code {
            Some(code) => {
                match char::from_u32(code) {
                    Some(character) => text.push(character),
                    None => text.push_str(&format!("\\u{code:04x}")),
                }
                rest = &after[1 + digits..];
            }
            None => {
                text.push(char::from(*first));
                rest = after;
            }
        }
    }
    Cow::Owned(text)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits =
        std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}

/// Decodes the `repr` of a Python 2 `str`, with quotes and escapes. `None`: the line has no quotes.
pub fn unquoted(line: &[u8]) -> Option<Cow<'_, str>> {
    let line = line.trim_ascii();
    let (Some(b'\'' | b'"'), true) = (line.first(), line.len() >= 2 && line.first() == line.last()) else {
        return None;
    };
    let inner = &line[1..line.len() - 1];
    if !inner.contains(&b'\\') {
        return Some(guessed(inner));
    }
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let [escape, after @ ..] = rest else { break };
        rest = after;
        match escape {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'x' if rest.get(..2).and_then(hexadecimal).is_some() => {
                bytes.extend(rest.get(..2).and_then(hexadecimal).map(|code| code as u8));
                rest = &rest[2..];
            }
            b'\\' | b'\'' | b'"' => bytes.push(*escape),
            _ => bytes.extend([b'\\', *escape]),
        }
    }
    Some(Cow::Owned(guessed(&bytes).into_owned()))
}

/// Bytes as Python shows them: `b'...'`.
pub fn bytes_text<'a>(bytes: &[u8]) -> Cow<'a, str> {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut shown = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\n' => shown.push_str("\\n"),
            b'\r' => shown.push_str("\\r"),
            b'\t' => shown.push_str("\\t"),
            b'\\' => shown.push_str("\\\\"),
            0x20..=0x7E if char::from(*byte) == quote => shown.extend(['\\', quote]),
            0x20..=0x7E => shown.push(char::from(*byte)),
            _ => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    shown.push(quote);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_shown_and_other_bytes_replaced() {
        assert_eq!("a\\udc80b", utf8(b"a\xED\xB2\x80b"));
        assert_eq!("\u{FFFD}x", utf8(b"\xFFx"));
        assert_eq!("cut\u{FFFD}", utf8(b"cut\xE2\x82"));
    }

    #[test]
    fn escapes_of_protocol_0_are_read() {
        assert_eq!("a\u{20AC}\u{1F600}\\q\u{E9}", raw_unicode_escape(b"a\\u20ac\\U0001f600\\q\xE9"));
        assert_eq!(Some(Cow::Borrowed("it's \n\u{e4}\\")), unquoted(b"'it\\'s \\n\\xe4\\\\'"));
        assert_eq!(None, unquoted(b"bare"));
        assert_eq!(None, unquoted(b"'"));
    }
}
