//! Encodes U+0000 in text, because PostgreSQL accepts it neither in `text` nor in `jsonb`.
//!
//! U+0000 is stored as U+0001 U+0001, and U+0001 as U+0001 U+0002. The encoding is reversible and keeps the order of
//! texts. U+0000, U+0001 and U+0002 are not letters, digits or spaces, so the words of a text stay the same. Texts in
//! queries are encoded in the same way.

use std::borrow::Cow;

/// Encodes a text for storage.
pub(super) fn stored(text: &str) -> Cow<'_, str> {
    // The loop has no early exit, so that the compiler vectorises it. Almost no text contains such a byte, so an early
    // exit would not help.
    if !text.bytes().fold(false, |found, byte| found | (byte <= 1)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    for char in text.chars() {
        match char {
            '\0' => out.push_str("\u{1}\u{1}"),
            '\u{1}' => out.push_str("\u{1}\u{2}"),
            _ => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// Decodes a stored text.
pub(super) fn original(kept: &str) -> Cow<'_, str> {
    if !kept.contains('\u{1}') {
        return Cow::Borrowed(kept);
    }
    let mut out = String::with_capacity(kept.len());
    let mut chars = kept.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1}' if chars.next() == Some('\u{1}') => out.push('\0'),
            _ => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// Encodes JSON for storage. The input was written by `serde_json`, which has only one way to write each control
/// character.
pub(super) fn stored_json(json: &str) -> Cow<'_, str> {
    if !json.contains(r"\u000") {
        return Cow::Borrowed(json);
    }
    let escapes = |escape: &str| match escape.get(..6) {
        Some(r"\u0000") => Some((6, r"\u0001\u0001")),
        Some(r"\u0001") => Some((6, r"\u0001\u0002")),
        _ => None,
    };
    Cow::Owned(replaced(json, escapes))
}

/// Decodes stored JSON. The input was written by PostgreSQL, which writes control characters as `serde_json` does.
pub(super) fn original_json(kept: &str) -> Cow<'_, str> {
    if !kept.contains(r"\u0001") {
        return Cow::Borrowed(kept);
    }
    let escapes = |escape: &str| match escape.get(..12) {
        Some(r"\u0001\u0001") => Some((12, r"\u0000")),
        Some(r"\u0001\u0002") => Some((12, r"\u0001")),
        _ => None,
    };
    Cow::Owned(replaced(kept, escapes))
}

/// Replaces escapes in JSON. `escapes` gets the text from a backslash on. It returns the number of bytes to replace,
/// and the new text.
fn replaced(json: &str, escapes: impl Fn(&str) -> Option<(usize, &'static str)>) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 2);
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        // For any other escape, copy the backslash and the byte after it. So the second of two backslashes does not
        // begin an escape.
        let (taken, text) = escapes(escape).unwrap_or((2, escape.get(..2).unwrap_or(escape)));
        out.push_str(text);
        rest = escape.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_kept_as_it_is() {
        for text in ["", "plain", "ü\u{2}\n\u{1F600}", "a\\u0000b"] {
            assert!(matches!(stored(text), Cow::Borrowed(kept) if kept == text));
            assert!(matches!(original(text), Cow::Borrowed(kept) if kept == text));
        }
        assert!(matches!(stored_json(r#"{"a":"b\n\\"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn a_nul_is_encoded() {
        assert_eq!("a\u{1}\u{1}\u{1}\u{2}\u{2}b", stored("a\0\u{1}\u{2}b"));
        assert_eq!(r#"{"\u0001\u0001":"\\u0000\u0001\u0002"}"#, stored_json(r#"{"\u0000":"\\u0000\u0001"}"#));
    }

    proptest! {
        #[test]
        fn every_text_is_read_back_unchanged_and_keeps_its_order(
            text in "[\0\u{1}\u{2}\\\\u01\"ü]{0,12}",
            other in "[\0\u{1}\u{2}\\\\u01\"ü]{0,12}",
        ) {
            let json = serde_json::to_string(&[&text]).unwrap();
            let (kept, kept_json) = (stored(&text), stored_json(&json));

            prop_assert!(!kept.contains('\0'));
            prop_assert_eq!(&text, &original(&kept));
            prop_assert_eq!(&json, &original_json(&kept_json));
            prop_assert_eq!(text.cmp(&other), kept.cmp(&stored(&other)));
            // JSON uses the same encoding, within JSON's escapes.
            prop_assert_eq!(vec![kept.clone().into_owned()], serde_json::from_str::<Vec<String>>(&kept_json).unwrap());
        }
    }
}
