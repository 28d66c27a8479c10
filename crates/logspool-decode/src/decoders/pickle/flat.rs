//! Fast path for the shape of nearly all log records: a dict with text keys and plain values.
//!
//! The stack machine (`machine.rs`) builds nodes first and converts them afterwards. This reader calls the caller's
//! function with each pair at once.

use std::borrow::Cow;

use super::problem::PickleLimits;
use crate::value::Value;

/// Maximum number of memoised texts. A log record of `logging` has some 30.
const MAX_MEMO: usize = 64;

/// Maximum number of pairs. The stack machine reads larger frames.
const MAX_PAIRS: usize = 256;

/// Calls `each` with the pairs of a flat dict. `None`: the frame has another shape, or is not a pickle. The caller then
/// discards the pairs that it got, and runs the stack machine.
// Inlined: each of the thirty pairs of a record would cost a call.
#[inline]
pub fn read<'a>(frame: &'a [u8], limits: PickleLimits, mut each: impl FnMut(&'a str, Value<'a>)) -> Option<()> {
    let mut code = FlatReader { frame, at: 0, memo: [None; MAX_MEMO], memo_length: 0 };
    let mut pairs = MAX_PAIRS.min(limits.items);
    let mut bytes = frame.len().checked_mul(limits.expansion)?;
    limits.depth.checked_sub(1)?;
    code.begin()?;
    loop {
        let (mut next, batch) = match code.byte()? {
            b'.' => return Some(()),
            b'(' => (code.byte()?, true),
            next => (next, false),
        };
        while next != b'u' {
            let key = code.text(next)?;
            let value = code.value()?;
            pairs = pairs.checked_sub(1)?;
            bytes = bytes.checked_sub(key.len())?;
            if let Value::Text(text) = &value {
                bytes = bytes.checked_sub(text.len())?;
            }
            each(key, value);
            next = code.byte()?;
            if !batch {
                // SETITEM
                (next == b's').then_some(())?;
                break;
            }
        }
    }
}

struct FlatReader<'a> {
    frame: &'a [u8],
    at: usize,
    /// Memoised values; `None` for values that are not text.
    memo: [Option<&'a str>; MAX_MEMO],
    memo_length: usize,
}

impl<'a> FlatReader<'a> {
    /// Reads up to and including the instruction for the empty dict.
    fn begin(&mut self) -> Option<()> {
        if self.skip(0x80) {
            self.bytes(1)?;
        }
        if self.skip(0x95) {
            self.bytes(8)?;
        }
        (self.byte()? == b'}').then_some(())?;
        self.remember(None)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.frame.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, code: u8) -> bool {
        let is_there = self.frame.get(self.at) == Some(&code);
        self.at += usize::from(is_there);
        is_there
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let found = self.frame.get(self.at..end)?;
        self.at = end;
        Some(found)
    }

    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        self.bytes(COUNT)?.try_into().ok()
    }

    /// Reads a line of ASCII text.
    fn word(&mut self) -> Option<&'a str> {
        let rest = &self.frame[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).ok()
    }

    /// If the next instruction memoises the top of the stack, runs it. `text` is the value at the top.
    fn remember(&mut self, text: Option<&'a str>) -> Option<()> {
        let index = match self.frame.get(self.at)? {
            b'q' => usize::from(*self.frame.get(self.at + 1)?),
            0x94 => self.memo_length,
            _ => return Some(()),
        };
        self.at += if self.frame[self.at] == b'q' { 2 } else { 1 };
        *self.memo.get_mut(index)? = text;
        self.memo_length = self.memo_length.max(index + 1);
        Some(())
    }

    /// Reads the text that an instruction pushes.
    fn text(&mut self, instruction: u8) -> Option<&'a str> {
        let length = match instruction {
            b'X' => u32::from_le_bytes(self.array()?) as usize,
            0x8c => usize::from(self.byte()?),
            b'h' => {
                let index = usize::from(self.byte()?);
                return *self.memo.get(index)?;
            }
            _ => return None,
        };
        // Text with lone surrogates is not UTF-8; the stack machine reads such frames.
        let text = std::str::from_utf8(self.bytes(length)?).ok()?;
        self.remember(Some(text))?;
        Some(text)
    }

    fn value(&mut self) -> Option<Value<'a>> {
        Some(match self.byte()? {
            b'N' => Value::Null,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'K' => Value::Int(self.byte()?.into()),
            b'M' => Value::Int(u16::from_le_bytes(self.array()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(self.array()?).into()),
            b'I' => match self.word()? {
                "01" => Value::Bool(true),
                "00" => Value::Bool(false),
                digits => Value::Int(digits.parse().ok()?),
            },
            b'L' => Value::Int(self.word()?.strip_suffix('L')?.parse().ok()?),
            0x8a => match *self.bytes(1)? {
                [length @ 1..=8] => {
                    let bytes = self.bytes(length.into())?;
                    // The highest bit is the sign.
                    let mut filled = if bytes.last()? & 0x80 == 0 { [0; 8] } else { [0xFF; 8] };
                    filled[..bytes.len()].copy_from_slice(bytes);
                    Value::Int(i64::from_le_bytes(filled))
                }
                _ => return None,
            },
            b'G' => Value::Float(f64::from_be_bytes(self.array()?)),
            instruction => Value::Text(Cow::Borrowed(self.text(instruction)?)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(frame: &[u8]) -> Option<Vec<(&str, Value<'_>)>> {
        let mut found = Vec::new();
        read(frame, PickleLimits::default(), |name, value| found.push((name, value)))?;
        Some(found)
    }

    #[test]
    fn plain_dicts_are_read_and_others_are_left_to_the_full_decoder() {
        // These frames were created by `pickle.dumps(..., protocol)`.
        let one = b"}q\x00(X\x01\x00\x00\x00aq\x01K\x07X\x01\x00\x00\x00bq\x02h\x01X\x01\x00\x00\x00cq\x03I01\nX\x01\x00\x00\x00dq\x04L-5L\nu.";
        let wanted =
            vec![("a", Value::Int(7)), ("b", Value::text("a")), ("c", Value::Bool(true)), ("d", Value::Int(-5))];
        assert_eq!(Some(wanted), pairs(one));
        let five = b"\x80\x05\x95\x0e\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94\x8a\x05\x00\x00\x00\x00\x80s.";
        assert_eq!(Some(vec![("a", Value::Int(-(1 << 39)))]), pairs(five));
        assert_eq!(Some(vec![]), pairs(b"}q\x00."));
        for other in [
            &b"(dp0\n."[..],
            b"}q\x00X\x01\x00\x00\x00aq\x01]q\x02s.",
            b"}q\x00X\x01\x00\x00\x00aq\x01h\x00s.",
            b"}q\x00X\x01\x00\x00\x00aq\x01K\x07",
            b"}q\x00X\x02\x00\x00\x00\xED\xA0q\x01K\x07s.",
            b"",
        ] {
            assert_eq!(None, pairs(other), "{other:?}");
        }
    }

    #[test]
    fn a_text_repeated_by_the_memo_is_left_to_the_full_decoder() {
        for pair in [b"h\x01h\x01", &b"h\x01N"[..]] {
            let mut frame = b"}q\x00(X\xE8\x03\x00\x00".to_vec();
            frame.extend([b'a'; 1000]);
            frame.extend(b"q\x01N");
            frame.extend(pair.repeat(20));
            frame.extend(b"u.");
            assert_eq!(None, pairs(&frame), "{pair:?}");
        }
    }
}
