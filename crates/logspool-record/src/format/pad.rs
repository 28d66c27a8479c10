//! Width, alignment and sign of text that is already at the end of the output.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The functions work in place: a field is written first and moved
//! afterwards.

/// Number of code points of `text`, which must be UTF-8.
#[inline]
pub fn char_count(text: &[u8]) -> usize {
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count()
}

/// Number of bytes of the first `count` code points of `text`, which must be UTF-8.
pub fn prefix_bytes(text: &[u8], count: usize) -> usize {
    let mut left = count;
    for (at, byte) in text.iter().enumerate() {
        if (*byte as i8) >= -0x40 {
            if left == 0 {
                return at;
            }
            left -= 1;
        }
    }
    text.len()
}

/// Inserts `count` copies of `fill` at the position `at`.
pub fn insert_fill(out: &mut Vec<u8>, at: usize, count: usize, fill: char) {
    let mut encoded = [0; 4];
    let encoded = fill.encode_utf8(&mut encoded).as_bytes();
    let end = out.len();
    let added = count * encoded.len();
    out.resize(end + added, encoded[0]);
    out.copy_within(at..end, at + added);
    for copy in out[at..at + added].chunks_exact_mut(encoded.len()) {
        copy.copy_from_slice(encoded);
    }
}

/// Inserts `bytes` at the position `at`.
pub fn insert_bytes(out: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = out.len();
    out.extend_from_slice(bytes);
    out.copy_within(at..end, at + bytes.len());
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Position of a field's text within the field's width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// The text is at the left.
    Left,
    /// The text is at the right.
    Right,
    /// The text is in the middle. If the number of fill characters is odd, the right side has one more.
    Centre,
    /// The fill characters are between sign (or prefix) and digits.
    AfterSign,
}

/// Pads the text from `start` to the end of `out` to `width` code points.
///
/// The digits begin at `body`. Sign and prefix are between `start` and `body`.
pub fn widen(out: &mut Vec<u8>, start: usize, body: usize, width: usize, align: Align, fill: char) {
    let len = char_count(&out[start..]);
    if len >= width {
        return;
    }
    let missing = width - len;
    match align {
        Align::Right => insert_fill(out, start, missing, fill),
        Align::AfterSign => insert_fill(out, body, missing, fill),
        Align::Left => {
            let end = out.len();
            insert_fill(out, end, missing, fill);
        }
        Align::Centre => {
            insert_fill(out, start, missing / 2, fill);
            let end = out.len();
            insert_fill(out, end, missing - missing / 2, fill);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widened(text: &str, body: usize, width: usize, align: Align, fill: char) -> String {
        let mut out = format!("|{text}").into_bytes();
        widen(&mut out, 1, 1 + body, width, align, fill);
        String::from_utf8(out).expect("fill and text are UTF-8")
    }

    #[test]
    fn widths_count_code_points() {
        assert_eq!("|   é", widened("é", 0, 4, Align::Right, ' '));
        assert_eq!("|ab☃☃", widened("ab", 0, 4, Align::Left, '☃'));
        assert_eq!("|*ab**", widened("ab", 0, 5, Align::Centre, '*'));
        assert_eq!("|-007", widened("-7", 1, 4, Align::AfterSign, '0'));
        assert_eq!("|long", widened("long", 0, 3, Align::Right, ' '));
    }

    #[test]
    fn a_prefix_ends_between_code_points() {
        assert_eq!(3, prefix_bytes("aé☃".as_bytes(), 2));
        assert_eq!(6, prefix_bytes("aé☃".as_bytes(), 9));
        assert_eq!(0, prefix_bytes("aé☃".as_bytes(), 0));
    }
}
