//! Text made safe to look at: what a terminal or a page would obey is shown instead.
//!
//! Records are stored as they came. Whoever shows one to a person passes its text through here, so that a message can
//! neither colour a screen, nor forge a line, nor turn the order of the letters around.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character acts instead of being seen: a control character, a mark that changes the direction of writing,
/// a separator of lines, or one without any width at the beginning of files.
pub fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// The text with such characters written out: `\n`, `\x1b`, `\u202e`. A backslash stays as it is.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Most text is plain: looked at byte by byte without a way out, that is done many bytes at a time.
    if text.bytes().fold(true, |is_plain, byte| is_plain & matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(acts) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for character in text[first..].chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // Writing to a string cannot fail.
            '\0'..='\u{FF}' if acts(character) => {
                let _ = write!(shown, "\\x{:02x}", u32::from(character));
            }
            _ if acts(character) => {
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
    fn what_would_act_is_shown_and_the_rest_stays() {
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
    fn what_is_shown_holds_nothing_that_acts() {
        let every: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
        assert!(!visible(&every).contains(acts));
    }
}
