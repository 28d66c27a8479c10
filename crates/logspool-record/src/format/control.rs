//! Escapes control characters, so that a record's text can neither begin a new line nor control a terminal.

/// What happens to the line ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEndRule {
    /// Line ends are escaped too: messages and fields.
    Escape,
    /// Line ends stay: tracebacks and stacks.
    Keep,
}

/// Appends `text` with its control characters escaped. Returns whether there were any; otherwise nothing is appended.
///
/// Control characters are C0 without the tab, DEL, C1, and the characters that change the direction of text (Unicode
/// Standard Annex 9). A line end becomes `\n`, a carriage return `\r`, and any other character `\x1b` or `\u202e`.
pub fn escape(text: &str, line_ends: LineEndRule, out: &mut Vec<u8>) -> bool {
    let is_control = |character: char| match character {
        '\t' => false,
        '\n' => line_ends == LineEndRule::Escape,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => true,
        other => other.is_control(),
    };
    if !may_have_control(text.as_bytes()) || !text.chars().any(is_control) {
        return false;
    }
    for character in text.chars() {
        match character {
            _ if !is_control(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            other if u32::from(other) < 0x100 => {
                out.extend_from_slice(format!("\\x{:02x}", u32::from(other)).as_bytes())
            }
            other => out.extend_from_slice(format!("\\u{:04x}", u32::from(other)).as_bytes()),
        }
    }
    true
}

/// Escapes the control characters of what `out` holds from `start` on.
pub fn escape_from(start: usize, line_ends: LineEndRule, out: &mut Vec<u8>) {
    let mut escaped = Vec::new();
    if escape(&String::from_utf8_lossy(&out[start..]), line_ends, &mut escaped) {
        out.truncate(start);
        out.extend_from_slice(&escaped);
    }
}

/// Whether a text may have control characters.
pub fn may_have_control(text: &[u8]) -> bool {
    // No early end within a chunk, so that the compiler compares many bytes at a time.
    text.chunks(64).any(|chunk| chunk.iter().fold(false, |found, byte| found | may_begin_control(*byte)))
}

/// Whether a control character may begin with this byte of UTF-8.
fn may_begin_control(byte: u8) -> bool {
    byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xe2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, line_ends: LineEndRule) -> Option<String> {
        let mut out = Vec::new();
        escape(text, line_ends, &mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn control_characters_become_visible_and_others_are_unchanged() {
        let shown = |text| escaped(text, LineEndRule::Escape);

        assert_eq!(None, shown("plain\ttext, \u{e4}\u{20ac}"));
        assert_eq!(Some("a\\nb\\rc".to_owned()), shown("a\nb\rc"));
        assert_eq!(Some("\\x1b[31m\\x00\\x7f\\x9b".to_owned()), shown("\u{1b}[31m\0\u{7f}\u{9b}"));
        assert_eq!(Some("\u{e4}\\u202ex".to_owned()), shown("\u{e4}\u{202e}x"));
    }

    #[test]
    fn a_traceback_keeps_its_line_ends() {
        assert_eq!(None, escaped("Traceback:\n  line", LineEndRule::Keep));
        assert_eq!(Some("a\n\\x1bb".to_owned()), escaped("a\n\u{1b}b", LineEndRule::Keep));
    }
}
