//! Makes text safe to display: control characters, which a terminal or a web page would obey, become visible escapes.
//!
//! Records are stored unchanged. Code that shows a record to a person first passes the text to [`visible`]. So a
//! message cannot change colours, forge a line, or reverse the order of letters.

use std::borrow::Cow;
use std::fmt::Write;

/// True for a character that controls the display instead of being shown: a control character, a mark that changes the
/// writing direction, a line separator, or a byte order mark.
pub fn needs_escape(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// Replaces the characters of [`needs_escape`] by escapes: `\n`, `\x1b`, `\u202e`. Backslashes are not escaped.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Most text is printable ASCII. A loop without an early exit lets the compiler check many bytes at a time.
    if text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(needs_escape) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for character in text[first..].chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // Writing to a string cannot fail.
            '\0'..='\u{FF}' if needs_escape(character) => {
                let _ = write!(shown, "\\x{:02x}", u32::from(character));
            }
            _ if needs_escape(character) => {
                let _ = write!(shown, "\\u{:04x}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_characters_are_escaped_and_the_rest_is_unchanged() {
        for (expected, text) in [
            ("", ""),
            ("plain \\ ü 漢 \u{1F600}\u{200D}", "plain \\ ü 漢 \u{1F600}\u{200D}"),
            ("\\x1b[31mred\\x1b[0m", "\u{1b}[31mred\u{1b}[0m"),
            ("a\\nb\\r\\t\\x00\\x7f\\x9b", "a\nb\r\t\0\u{7f}\u{9b}"),
            ("\\u202egpj.exe\\u2069\\ufeff\\u2028", "\u{202e}gpj.exe\u{2069}\u{feff}\u{2028}"),
        ] {
            assert_eq!(expected, visible(text));
        }
        assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn visible_text_has_no_active_characters() {
        let every: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
        assert!(!visible(&every).contains(needs_escape));
    }
}
