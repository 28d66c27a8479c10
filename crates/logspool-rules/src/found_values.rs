//! Finds the value that belongs to a key in a text: `key=value`, JSON, JSON in JSON, options of a command line, XML, and
//! pairs of a name and a value.
//!
//! [`of_key`] is called with the place of a key. It returns the bytes of its value, or where to go on.

use crate::defaults::{HARMLESS_WORDS, REPLACEMENT, SCHEMES};

/// From, to.
pub type Span = (usize, usize);

/// The value of the key at `start..end` of a text; `None` if it has none, or one that is no secret.
pub fn of_key(text: &[u8], start: usize, end: usize) -> Option<Span> {
    let name_start = name_start(text, start);
    let name = &text[name_start..end];
    let kind = Kind::of(name);
    let mut at = end;
    let backslashes = count(text, at, |byte| byte == b'\\');
    let quote = text.get(at + backslashes).copied().filter(|byte| is_quote(*byte));
    if quote.is_some() {
        at += backslashes + 1;
    }
    if text.get(at) == Some(&b']') {
        at += 1;
    }
    let separator = at + count(text, at, is_blank);
    if let Some(length) = separator_length(&text[separator..]) {
        let from = separator + length;
        let from = from + count(text, from, is_blank);
        let is_assigned = separator > at && text[separator] == b'=';
        // `PWD=/home/ada` is the current folder.
        let is_folder = name.to_ascii_lowercase().ends_with(b"pwd") && text.get(from) == Some(&b'/');
        let is_code = |span: &Span| is_assigned && is_call(&text[span.0..]);
        return value(text, from, kind).filter(|span| !is_folder && !is_code(span));
    }
    if quote.is_none() && separator > at && name.len() > 1 && name[0] == b'-' {
        return option_value(text, separator, kind);
    }
    if let Some(span) = element(text, name_start, end) {
        return Some(span);
    }
    if is_named(text, name_start) {
        return named_value(text, at, kind);
    }
    if quote.is_some() && text.get(separator) == Some(&b',') {
        return pair(text, name_start, separator + 1, kind);
    }
    None
}

/// What is known about a value from its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A list of names and values, or several words: to the end of the line.
    Cookie,
    /// A scheme and credentials.
    Authorization,
    Other,
}

impl Kind {
    fn of(name: &[u8]) -> Self {
        let ends = |word: &[u8]| name.len() >= word.len() && name[name.len() - word.len()..].eq_ignore_ascii_case(word);
        if ends(b"cookie") || ends(b"passphrase") {
            Self::Cookie
        } else if ends(b"authorization") {
            Self::Authorization
        } else {
            Self::Other
        }
    }
}

/// The begin of the name whose last word begins at `start`.
fn name_start(text: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    start - text[..start].iter().rev().take_while(|byte| is_part(byte)).count()
}

/// The length of `=`, `:`, `=>`, `:=`, `==` or a percent-encoded `=` or `:`. `::` is a path in code.
fn separator_length(rest: &[u8]) -> Option<usize> {
    match rest {
        [b':', b':', ..] | [b':', b'/', b'/', ..] => None,
        [b'=', b'>' | b'=', ..] | [b':', b'=', ..] => Some(2),
        [b'=' | b':', ..] => Some(1),
        [b'%', b'3', b'd' | b'D' | b'a' | b'A', ..] => Some(3),
        _ => None,
    }
}

/// The value that begins at `at`.
fn value(text: &[u8], at: usize, kind: Kind) -> Option<Span> {
    let prefix = count(&text[..text.len().min(at + 2)], at, |byte| byte.is_ascii_alphabetic());
    let (start, backslashes) = match opening(text, at + prefix) {
        Some(backslashes) => (at + prefix, Some(backslashes)),
        None => (at, opening(text, at)),
    };
    if let Some(backslashes) = backslashes {
        return quoted(text, start + backslashes + 1, backslashes);
    }
    let line_end = line_end(text, at);
    let span = match (text.get(at)?, kind) {
        (b'[' | b'{' | b'(', _) if !text[at..].starts_with(REPLACEMENT.as_bytes()) => {
            let end = closing(text, at).unwrap_or(line_end);
            if is_harmless(&text[at + 1..(end - 1).max(at + 1)]) {
                return None;
            }
            (at, unquoted_end(text, end))
        }
        (_, Kind::Cookie) => {
            (at, text[at..line_end].iter().position(|byte| is_quote(*byte)).map_or(line_end, |length| at + length))
        }
        (_, Kind::Authorization) => credentials(text, at)?,
        _ => (at, unquoted_end(text, at)),
    };
    (span.0 < span.1 && !is_harmless(&text[span.0..span.1])).then_some(span)
}

/// The number of backslashes before a quote at `at`; `None` if there is no quote.
fn opening(text: &[u8], at: usize) -> Option<usize> {
    let backslashes = count(text, at, |byte| byte == b'\\');
    text.get(at + backslashes).is_some_and(|byte| is_quote(*byte)).then_some(backslashes)
}

/// The content of a quoted text that begins at `from`, after a quote with this number of backslashes. A text without its
/// closing quote ends with its line.
fn quoted(text: &[u8], from: usize, backslashes: usize) -> Option<Span> {
    let end = content_end(text, from, backslashes);
    (from < end && !is_harmless(&text[from..end])).then_some((from, end))
}

/// The end of the content of a quoted text; see [`quoted`].
fn content_end(text: &[u8], from: usize, backslashes: usize) -> usize {
    let quote = text[from - 1];
    let line_end = line_end(text, from);
    let mut escapes = 0;
    for (at, byte) in text[..line_end].iter().enumerate().skip(from) {
        if *byte == b'\\' {
            escapes += 1;
            continue;
        }
        let closes = if backslashes == 0 { escapes % 2 == 0 } else { escapes <= backslashes };
        if *byte == quote && closes {
            return if backslashes == 0 { at } else { at - escapes };
        }
        escapes = 0;
    }
    line_end
}

/// The position after the bracket that closes the one at `at`; `None` if no bracket does.
fn closing(text: &[u8], at: usize) -> Option<usize> {
    let (mut depth, mut open, mut is_escaped) = (0_usize, None, false);
    for (place, byte) in text.iter().enumerate().skip(at) {
        match (open, byte) {
            _ if is_escaped => is_escaped = false,
            (_, b'\\') => is_escaped = !text.get(place + 1).is_some_and(|next| is_quote(*next)) || open.is_some(),
            (Some(quote), byte) if byte == quote => open = None,
            (Some(_), _) => {}
            (None, quote @ (b'"' | b'\'')) => open = Some(quote),
            (None, b'[' | b'{' | b'(') => depth += 1,
            (None, b']' | b'}' | b')') => {
                depth -= 1;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The end of a value without quotes. A character that may end it ends it only before another one, a space, the end, or
/// the next key.
fn unquoted_end(text: &[u8], from: usize) -> usize {
    let mut at = from;
    if text[at..].starts_with(REPLACEMENT.as_bytes()) {
        at += REPLACEMENT.len();
    }
    while let Some(byte) = text.get(at) {
        let rest = &text[at + 1..];
        let ends = match byte {
            byte if byte.is_ascii_whitespace() || byte.is_ascii_control() => true,
            b'&' | b'<' => true,
            b'\\' => matches!(rest.first(), Some(b'"' | b'\'' | b'n' | b'r')),
            b',' | b';' => ends_item(rest) || is_next_key(rest),
            b')' | b']' | b'}' | b'"' | b'\'' | b'`' => ends_item(rest),
            b'%' => rest.starts_with(b"26"),
            _ => false,
        };
        if ends {
            break;
        }
        at += 1;
    }
    // The full stop of a sentence.
    if at > from + 1 && matches!(text[at - 1], b'.' | b':' | b'!') && text.get(at).is_none_or(u8::is_ascii_whitespace) {
        return at - 1;
    }
    at
}

/// True if a text begins as the text after an item does.
fn ends_item(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                b',' | b';' | b')' | b']' | b'}' | b'"' | b'\'' | b'`' | b'&' | b'\\' | b'<' | b'>' | b':' | b'|'
            )
    })
}

/// True if a text begins with `name=` or `name:`.
fn is_next_key(rest: &[u8]) -> bool {
    let name =
        count(rest, 0, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b' ' | b'"' | b'\''));
    name > 0 && matches!(rest.get(name), Some(b'=' | b':'))
}

/// The credentials of an `Authorization` header without quotes.
fn credentials(text: &[u8], at: usize) -> Option<Span> {
    let word_end = unquoted_end(text, at);
    let after = word_end + count(text, word_end, is_blank);
    let word = text[at..word_end].to_ascii_lowercase();
    let is_scheme = SCHEMES.iter().any(|scheme| scheme.as_bytes() == word);
    if is_harmless(&word) || (is_scheme && after >= line_end(text, at)) {
        return None;
    }
    let from = if is_scheme { after } else { at };
    let mut end = unquoted_end(text, from);
    if !is_scheme && after > word_end && end < text.len() && !is_item_end(text, end) {
        // An unknown scheme: the next word may be the credentials.
        end = unquoted_end(text, after);
    }
    // A list of parameters: `username="ada", realm="shop"`.
    while is_next_key(&text[from..end]) || text[from..end].contains(&b'=') {
        let next = end + count(text, end, |byte| matches!(byte, b',' | b' ' | b'"'));
        let length = count(text, next, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if next == end || length == 0 || text.get(next + length) != Some(&b'=') {
            break;
        }
        let given = next + length + 1;
        end = match opening(text, given) {
            Some(backslashes) => {
                let content = given + backslashes + 1;
                (content_end(text, content, backslashes) + backslashes + 1).min(text.len())
            }
            None => unquoted_end(text, given),
        };
    }
    Some((from, end))
}

fn is_item_end(text: &[u8], at: usize) -> bool {
    !text.get(at).is_some_and(|byte| is_blank(*byte))
}

/// The value of an option of a command line: `--password hunter2`.
fn option_value(text: &[u8], at: usize, kind: Kind) -> Option<Span> {
    let first = *text.get(at)?;
    if first == b'-' || first == b'|' {
        return None;
    }
    let span = value(text, at, kind)?;
    // The help of a program shows `--token TOKEN`.
    let shown = &text[span.0..span.1];
    let is_placeholder = [&b"PASSWORD"[..], b"TOKEN", b"SECRET", b"KEY", b"TEXT", b"VALUE"].contains(&shown);
    (!is_placeholder).then_some(span)
}

/// The text of an element of XML whose tag ends at `end`: `<password>hunter2</password>`.
fn element(text: &[u8], name_start: usize, end: usize) -> Option<Span> {
    let prefix =
        text[..name_start].iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b':').count();
    if text[..name_start - prefix].last() != Some(&b'<') {
        return None;
    }
    let tag = text[end..].iter().position(|byte| matches!(byte, b'>' | b'<' | b'\n'))? + end;
    if text[tag] != b'>' || text[tag - 1] == b'/' {
        return None;
    }
    let from = tag + 1;
    let to = from + count(text, from, |byte| byte != b'<');
    (!is_harmless(&text[from..to])).then_some((from, to))
}

/// True if the key at `start` is the value of a field `name` or `key`.
fn is_named(text: &[u8], start: usize) -> bool {
    let back = |at: usize, is: fn(u8) -> bool| at - text[..at].iter().rev().take_while(|byte| is(**byte)).count();
    let at = back(start, |byte| is_quote(byte) || byte == b'\\');
    let at = back(at, is_blank);
    if at == 0 || !matches!(text[at - 1], b':' | b'=') {
        return false;
    }
    let at = back(at - 1, is_blank);
    let at = back(at, |byte| is_quote(byte) || byte == b'\\');
    [&b"name"[..], b"key"].iter().any(|word| at >= word.len() && text[at - word.len()..at].eq_ignore_ascii_case(word))
}

/// The value in `"name": "token", "value": "abc"`, in its YAML, in an input of a form, or in a part of a form.
fn named_value(text: &[u8], at: usize, kind: Kind) -> Option<Span> {
    let at = at + count(text, at, |byte| matches!(byte, b',' | b';' | b'}'));
    let next = at + count(text, at, |byte| byte.is_ascii_whitespace());
    let line_ends = text[at..next].iter().filter(|byte| **byte == b'\n').count();
    if line_ends > 1 {
        return Some((next, line_end(text, next))).filter(|span| !is_harmless(&text[span.0..span.1]));
    }
    let word = next + count(text, next, |byte| is_quote(byte) || byte == b'\\');
    if !text.get(word..word + 5)?.eq_ignore_ascii_case(b"value") {
        return None;
    }
    let end = word + 5 + count(text, word + 5, |byte| is_quote(byte) || byte == b'\\');
    let end = end + count(text, end, is_blank);
    let length = separator_length(text.get(end..)?)?;
    let from = end + length;
    value(text, from + count(text, from, is_blank), kind)
}

/// The value of a pair: `('token', 'abc')`. A list of names, as `['password', 'email']`, is none, but headers and
/// arguments of a command line also come as flat lists.
fn pair(text: &[u8], name_start: usize, at: usize, kind: Kind) -> Option<Span> {
    let from = at + count(text, at, |byte| byte.is_ascii_whitespace());
    let prefix = usize::from(text.get(from) == Some(&b'b'));
    let backslashes = opening(text, from + prefix)?;
    let span = quoted(text, from + prefix + backslashes + 1, backslashes)?;
    let before = text[..name_start].iter().rev().position(|byte| !matches!(byte, b'"' | b'\'' | b'\\' | b'b'));
    let opens = before.map(|length| text[name_start - 1 - length]);
    let rest = &text[(span.1 + backslashes + 1).min(text.len())..];
    let closes = rest.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_word = text[span.0..span.1].iter().all(u8::is_ascii_lowercase);
    let is_pair = match (opens, closes) {
        (Some(b'('), Some(b')')) => true,
        (Some(b'['), Some(b']')) => !is_word,
        _ => false,
    };
    (is_pair || kind != Kind::Other || text[name_start] == b'-').then_some(span)
}

/// True if a text is a call in source code: `name(`.
fn is_call(text: &[u8]) -> bool {
    let name = count(text, 0, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    name > 0 && text.get(name) == Some(&b'(')
}

/// True if a value is no secret: a word of a sentence, a placeholder, a mask, or the replacement.
fn is_harmless(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return true };
    if value == REPLACEMENT.as_bytes() || (value.len() == 1 && !first.is_ascii_alphanumeric()) {
        return true;
    }
    if matches!(first, b'*' | b'.' | b'x' | b'X' | b'#' | b'-') && value.iter().all(|byte| byte == first) {
        return true;
    }
    let word = value.strip_suffix(b".").unwrap_or(value);
    let word = match (first, last) {
        (b'[', b']') | (b'<', b'>') | (b'(', b')') => &value[1..value.len() - 1],
        _ => word,
    };
    if word.len() < 16 && HARMLESS_WORDS.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word)) {
        return true;
    }
    let is_variable =
        |name: &[u8]| name.iter().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9'));
    match value {
        [b'<', .., b'>'] | [b'{', b'{', .., b'}', b'}'] => true,
        [b'$', b'{', name @ ..] => is_variable(name.strip_suffix(b"}").unwrap_or(name)),
        [b'$', name @ ..] => is_variable(name),
        _ => value == b"%s" || value == b"%r" || value == b"{}",
    }
}

/// The number of bytes from `at` on for which `is` holds.
fn count(text: &[u8], at: usize, is: impl Fn(u8) -> bool) -> usize {
    text.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| is(**byte)).count())
}

fn line_end(text: &[u8], from: usize) -> usize {
    from + count(text, from, |byte| !matches!(byte, b'\n' | b'\r'))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}
