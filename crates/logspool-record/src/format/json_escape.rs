//! The escapes of texts in JSON, as `json.dumps` writes them, with and without `ensure_ascii`.
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Index of the first byte that needs an escape; checks eight bytes at a time.
#[inline]
pub(super) fn first_escape(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    // Sets the top bit of each byte below `bound`. A borrow can set further top bits, but only after such a byte.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & TOPS;
    let mut chunks = text.chunks_exact(8);
    let clean = chunks.by_ref().take_while(|chunk| {
        let word = u64::from_le_bytes((*chunk).try_into().expect("eight bytes"));
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let slashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        below(word, 0x20) | quotes | slashes == 0
    });
    let start = 8 * clean.count();
    text[start..].iter().position(|byte| needs_escape(*byte)).map(|at| start + at)
}

/// Appends a text with its escapes, without quotes, as with `ensure_ascii=False`.
pub(super) fn push_escaped(out: &mut Vec<u8>, mut text: &[u8]) {
    while let Some(at) = first_escape(text) {
        out.extend_from_slice(&text[..at]);
        match text[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            byte => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        text = &text[at + 1..];
    }
    out.extend_from_slice(text);
}

/// Appends a text with its escapes, without quotes, in ASCII.
pub(super) fn push_ascii_escaped(out: &mut Vec<u8>, text: &str) {
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\x08' => out.extend_from_slice(b"\\b"),
            '\x0c' => out.extend_from_slice(b"\\f"),
            ' '..='~' => out.push(character as u8),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    push_escape(out, *unit);
                }
            }
        }
    }
}

fn push_escape(out: &mut Vec<u8>, unit: u16) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(HEX[usize::from(unit >> shift & 15)]);
    }
}
