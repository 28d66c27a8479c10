//! Reads a JSON list value by value. Some collectors send many records as one list over HTTP.
//!
//! The values are only separated here, and not checked: a value that is no JSON costs only itself.

use serde::de::IgnoredAny;
use serde_json::Deserializer;

/// Reason why bytes are not a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAList;

impl std::fmt::Display for NotAList {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("the text is not a JSON list")
    }
}

impl std::error::Error for NotAList {}

/// True if bytes are the begin of a list of objects. `None`: more bytes are needed.
pub fn begins(bytes: &[u8]) -> Option<bool> {
    match bytes.split_first() {
        None => None,
        Some((b'[', rest)) => rest.trim_ascii_start().first().map(|first| *first == b'{'),
        Some(_) => Some(false),
    }
}

/// Calls `each` with the text of each value, in order. Keeps no value.
///
/// A list that is cut off ends with its last value, which may be incomplete. Text after the end of the list is a
/// value, too: it is no JSON, so its reader reports it.
///
/// # Errors
///
/// The bytes do not begin with a list.
pub fn read<'a>(list: &'a [u8], mut each: impl FnMut(&'a [u8])) -> Result<(), NotAList> {
    let list = list.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(list).trim_ascii();
    let mut rest = list.strip_prefix(b"[").ok_or(NotAList)?;
    let mut take = |value: &'a [u8]| {
        let value = value.trim_ascii();
        if !value.is_empty() {
            each(value);
        }
    };
    loop {
        let length = length(rest).unwrap_or_else(|| next_value(rest));
        take(&rest[..length]);
        match rest[length..].split_first() {
            Some((b',', after)) => rest = after,
            Some((_, after)) => {
                take(after);
                return Ok(());
            }
            None => return Ok(()),
        }
    }
}

/// The position of the comma before the next object, in a value without an end. Such a value would take all values
/// after it. If no object follows, the value goes to the end.
fn next_value(bytes: &[u8]) -> usize {
    let is_object = |at: usize| {
        let rest = bytes[at + 1..].trim_ascii_start();
        rest.starts_with(b"{\"")
            && Deserializer::from_slice(rest).into_iter::<IgnoredAny>().next().is_some_and(|it| it.is_ok())
    };
    let mut commas = bytes.iter().enumerate().filter(|(_, byte)| **byte == b',').map(|(at, _)| at);
    commas.find(|at| is_object(*at)).unwrap_or(bytes.len())
}

/// The length of the value at the start: up to a comma or bracket outside of it. `None`: the value has no end.
fn length(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = after_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The position after the string that begins at `at`.
fn after_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &str) -> Result<Vec<String>, NotAList> {
        let mut values = Vec::new();
        read(list.as_bytes(), |value| values.push(String::from_utf8_lossy(value).into_owned()))?;
        Ok(values)
    }

    #[test]
    fn values_are_read_one_after_the_other() {
        let cases: &[(&str, &[&str])] = &[
            (" [ ] ", &[]),
            ("\u{FEFF}[1]", &["1"]),
            ("[{\"a\":[1,\"]\\\"\"]} ,\n 2,\"ü\"]\n", &["{\"a\":[1,\"]\\\"\"]}", "2", "\"ü\""]),
            ("[{\"a\":1},]", &["{\"a\":1}"]),
        ];
        for (list, expected) in cases {
            assert_eq!(*expected, values(list).unwrap(), "{list}");
        }
    }

    #[test]
    fn a_bad_value_loses_only_itself() {
        let cases: &[(&str, &[&str])] = &[
            ("[1,,2]", &["1", "2"]),
            ("[{\"a\":{},{\"b\":2},{\"c\":3}]", &["{\"a\":{}", "{\"b\":2}", "{\"c\":3}"]),
            ("[{\"a\":\"x},{\"b\":2}]", &["{\"a\":\"x}", "{\"b\":2}"]),
            ("[{\"a\":1}},{\"b\":2}]", &["{\"a\":1}}", "{\"b\":2}"]),
            ("[{},bad,{\"a\":NaN}]", &["{}", "bad", "{\"a\":NaN}"]),
            ("[{\"a\":1},{\"b\":", &["{\"a\":1}", "{\"b\":"]),
            ("[{\"a\":1}] x", &["{\"a\":1}", "x"]),
            ("[\"open", &["\"open"]),
            ("[\"\\", &["\"\\"]),
            ("[1", &["1"]),
        ];
        for (list, expected) in cases {
            assert_eq!(*expected, values(list).unwrap(), "{list}");
        }
        assert_eq!(1, values(&"[".repeat(100_000)).unwrap().len());
    }

    #[test]
    fn a_list_of_objects_is_told_from_text_in_brackets() {
        for (expected, begin) in [
            (Some(true), "[{"),
            (Some(true), "[ \n{\"a\""),
            (Some(false), "[2026-11-28] paid"),
            (Some(false), "[]"),
            (Some(false), "{"),
            (None, "[ "),
            (None, ""),
        ] {
            assert_eq!(expected, begins(begin.as_bytes()), "{begin}");
        }
    }

    #[test]
    fn bytes_of_another_form_are_not_a_list() {
        for bad in ["", "{}", "1"] {
            assert_eq!(Err(NotAList), values(bad), "{bad}");
        }
    }
}
