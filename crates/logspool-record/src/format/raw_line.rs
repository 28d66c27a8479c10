//! Writes the pieces of one line into room that was reserved for the whole line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The pieces are written without a check of the capacity for each. Short
//! texts are copied as one block of [`BLOCK`] bytes, which is faster than a copy of their exact length.

use crate::msgpack::ItemHead;

/// Bytes that a copy of a short text writes, and bytes of room after the last piece.
pub(super) const BLOCK: usize = 32;

/// Maximum bytes of [`RawLine::integer`] and [`RawLine::fixed`].
///
/// A sign, the 20 digits of `u64::MAX` and a point are 22 bytes. A number below one has a digit before the point and
/// [`MAX_DECIMALS`] after it.
pub(super) const NUMBER_BYTES: usize = 24;

/// Bytes of the head of a text of 32 to 255 bytes. A text with another head is moved.
const USUAL_HEAD_BYTES: usize = 2;

/// Maximum number of digits after the point for [`RawLine::fixed`].
pub(super) const MAX_DECIMALS: usize = 17;

/// The texts `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut at = 0;
    while at < 100 {
        pairs[at] = [b'0' + (at / 10) as u8, b'0' + (at % 10) as u8];
        at += 1;
    }
    pairs
};

/// A text with [`BLOCK`] further bytes, so that a block can be read at each position of the text.
#[derive(Debug, Clone, Default)]
pub(super) struct PaddedText {
    bytes: Vec<u8>,
    len: usize,
}

impl PaddedText {
    /// Replaces the text with the one that `make` appends.
    pub(super) fn set(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.clear();
        make(&mut self.bytes);
        self.len = self.bytes.len();
        self.bytes.resize(self.len + BLOCK, 0);
    }
}

/// Reserved room at the end of a vector, and the place in it where the next piece is written.
///
/// The bytes become part of the vector by [`finish`](Self::finish).
#[derive(Debug)]
pub(super) struct RawLine<'a> {
    out: &'a mut Vec<u8>,
    at: *mut u8,
    /// Bytes that may still be written, for checks in debug builds.
    left: usize,
}

impl<'a> RawLine<'a> {
    /// Reserves `room` bytes for all pieces.
    #[inline]
    pub(super) fn new(out: &'a mut Vec<u8>, room: usize) -> Self {
        out.reserve(room + BLOCK);
        let len = out.len();
        // SAFETY: `len` is at most the capacity.
        let at = unsafe { out.as_mut_ptr().add(len) };
        Self { out, at, left: room }
    }

    /// Moves past `count` bytes that were written.
    ///
    /// # Safety
    ///
    /// The room has `count` bytes left, and they were written.
    #[inline]
    unsafe fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.left, "a piece is longer than its room");
        self.left -= count;
        // SAFETY: the caller guarantees that these bytes are inside the room.
        self.at = unsafe { self.at.add(count) };
    }

    /// Writes a text.
    ///
    /// # Safety
    ///
    /// The room has the bytes of the text left.
    #[inline]
    pub(super) unsafe fn padded(&mut self, text: &PaddedText) {
        // SAFETY: after the text there are `BLOCK` readable bytes, and after the room `BLOCK` writable ones.
        unsafe {
            if text.len <= 2 * BLOCK {
                self.at.copy_from_nonoverlapping(text.bytes.as_ptr(), BLOCK);
                if text.len > BLOCK {
                    self.at.add(BLOCK).copy_from_nonoverlapping(text.bytes.as_ptr().add(BLOCK), BLOCK);
                }
            } else {
                self.at.copy_from_nonoverlapping(text.bytes.as_ptr(), text.len);
            }
            self.advance(text.len);
        }
    }

    /// Writes the first `len` bytes of `bytes`.
    ///
    /// # Safety
    ///
    /// `bytes` has at least `len` bytes, and the room has `len` bytes left.
    #[inline]
    pub(super) unsafe fn text(&mut self, bytes: &[u8], len: usize) {
        // SAFETY: a block is read only where `bytes` has one; after the room there are `BLOCK` writable bytes.
        unsafe {
            if len <= BLOCK / 2 && bytes.len() >= BLOCK / 2 {
                self.at.copy_from_nonoverlapping(bytes.as_ptr(), BLOCK / 2);
            } else {
                self.at.copy_from_nonoverlapping(bytes.as_ptr(), len);
            }
            self.advance(len);
        }
    }

    /// Writes a text of fixed length.
    ///
    /// # Safety
    ///
    /// The room has `N` bytes left.
    #[inline]
    pub(super) unsafe fn block<const N: usize>(&mut self, bytes: &[u8; N]) {
        // SAFETY: the caller guarantees the room.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.advance(N);
        }
    }

    /// Writes the head of a value of MessagePack.
    ///
    /// # Safety
    ///
    /// The room has [`ItemHead::MAX_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn head(&mut self, head: ItemHead) {
        // SAFETY: the caller guarantees the room.
        unsafe {
            self.at.cast::<[u8; ItemHead::MAX_BYTES]>().write_unaligned(*head.padded());
            self.advance(head.bytes().len());
        }
    }

    /// The place of the next piece.
    #[inline]
    pub(super) const fn position(&self) -> *mut u8 {
        self.at
    }

    /// Begins a text of MessagePack. The next pieces are the text. Returns the start of the text.
    ///
    /// # Safety
    ///
    /// The room has [`ItemHead::MAX_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn start_text(&mut self) -> *mut u8 {
        // The place of the head. Most messages have a head of two bytes.
        // SAFETY: the caller guarantees the room, and `end_text` writes the bytes.
        unsafe { self.advance(USUAL_HEAD_BYTES) };
        self.at
    }

    /// Number of bytes since a place.
    #[inline]
    pub(super) fn bytes_since(&self, start: *mut u8) -> usize {
        self.at.addr() - start.addr()
    }

    /// Ends the text of MessagePack that began at `start`, and writes its head.
    ///
    /// # Safety
    ///
    /// `start` is of the newest call of [`start_text`](Self::start_text).
    #[inline]
    pub(super) unsafe fn end_text(&mut self, start: *mut u8) {
        let len = self.bytes_since(start);
        let head = ItemHead::of_text(len);
        // SAFETY: the head and the text are inside the room. A head of one byte is of a text that is shorter than a
        // block, and after the room there are `BLOCK` writable bytes.
        unsafe {
            let place = start.sub(USUAL_HEAD_BYTES);
            match head.bytes() {
                [mark] => {
                    start.copy_to(place.add(1), BLOCK);
                    place.write(*mark);
                }
                [mark, number] => place.cast::<[u8; 2]>().write_unaligned([*mark, *number]),
                bytes => {
                    start.copy_to(place.add(bytes.len()), len);
                    place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
            }
            self.at = place;
            self.left += USUAL_HEAD_BYTES + len;
            self.advance(head.bytes().len() + len);
        }
    }

    /// Writes an integer in decimal.
    ///
    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn integer(&mut self, value: i64) {
        let magnitude = value.unsigned_abs();
        let bytes = usize::from(value < 0) + digit_count(magnitude);
        // SAFETY: the caller guarantees the room for a number. The sign is overwritten if there is none.
        unsafe {
            self.at.write(b'-');
            DigitsBefore(self.at.add(bytes)).whole(magnitude);
            self.advance(bytes);
        }
    }

    /// Writes `scaled / 10^decimals` with `decimals` digits after the point, at most [`MAX_DECIMALS`].
    ///
    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn fixed(&mut self, negative: bool, mut scaled: u64, decimals: usize) {
        let decimals = decimals.min(MAX_DECIMALS);
        let digits = digit_count(scaled).max(decimals + 1);
        let bytes = usize::from(negative) + digits + usize::from(decimals > 0);
        // SAFETY: the caller guarantees the room for a number, and all digits are inside `bytes`. The sign is
        // overwritten if there is none.
        unsafe {
            self.at.write(b'-');
            let mut before = DigitsBefore(self.at.add(bytes));
            for _ in 0..decimals / 2 {
                before.pair(scaled % 100);
                scaled /= 100;
            }
            if decimals % 2 == 1 {
                before.byte(b'0' + (scaled % 10) as u8);
                scaled /= 10;
            }
            if decimals > 0 {
                before.byte(b'.');
            }
            before.whole(scaled);
            self.advance(bytes);
        }
    }

    /// Writes a number with leading zeros, as `count` digits, at most nine.
    ///
    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left, and `value` is below `10^count`.
    #[inline]
    pub(super) unsafe fn digits(&mut self, mut value: u32, count: usize) {
        // SAFETY: the caller guarantees the room, and all digits are inside `count` bytes.
        unsafe {
            let mut before = DigitsBefore(self.at.add(count));
            for _ in 0..count / 2 {
                before.pair(u64::from(value % 100));
                value /= 100;
            }
            if count % 2 == 1 {
                before.byte(b'0' + (value % 10) as u8);
            }
            self.advance(count);
        }
    }

    /// Makes the pieces part of the vector.
    #[inline]
    pub(super) fn finish(self) {
        // SAFETY: `at` was derived from the vector, which has not been changed since.
        let len = unsafe { self.at.offset_from(self.out.as_ptr()) } as usize;
        // SAFETY: all bytes up to `at` were written, and they are inside the capacity.
        unsafe { self.out.set_len(len) }
    }
}

/// Number of decimal digits of a number.
#[inline]
fn digit_count(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Writes the digits of a number from the last one to the first one, before a place.
struct DigitsBefore(*mut u8);

impl DigitsBefore {
    /// # Safety
    ///
    /// The byte before the place may be written.
    #[inline]
    unsafe fn byte(&mut self, byte: u8) {
        // SAFETY: the byte before the place is in the reserved room of the line.
        unsafe {
            self.0 = self.0.sub(1);
            self.0.write(byte);
        }
    }

    /// Writes two digits of a number below 100.
    ///
    /// # Safety
    ///
    /// The two bytes before the place may be written.
    #[inline]
    unsafe fn pair(&mut self, pair: u64) {
        let pair = PAIRS[pair as usize];
        // SAFETY: both bytes before the place are in the reserved room of the line.
        unsafe {
            self.0 = self.0.sub(2);
            self.0.cast::<[u8; 2]>().write_unaligned(pair);
        }
    }

    /// Writes a number.
    ///
    /// # Safety
    ///
    /// As many bytes before the place as the number has digits may be written.
    #[inline]
    unsafe fn whole(&mut self, mut value: u64) {
        // SAFETY: the line has reserved room for all digits before the place, which `digit_count` counted.
        unsafe {
            while value >= 100 {
                self.pair(value % 100);
                value /= 100;
            }
            if value >= 10 {
                self.pair(value);
            } else {
                self.byte(b'0' + value as u8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_follow_one_another() {
        let long = "x".repeat(100);
        let (mut short_text, mut long_text) = (PaddedText::default(), PaddedText::default());
        let mut medium_text = PaddedText::default();
        short_text.set(|out| out.extend_from_slice(b"short "));
        medium_text.set(|out| out.extend_from_slice(&long.as_bytes()[..BLOCK + 1]));
        long_text.set(|out| out.extend_from_slice(long.as_bytes()));
        let mut out = b"> ".to_vec();
        let mut line = RawLine::new(&mut out, 6 + BLOCK + 1 + 100 + 10 + 6 * NUMBER_BYTES);
        // SAFETY: the room is the sum of the pieces.
        unsafe {
            line.padded(&short_text);
            line.padded(&medium_text);
            line.padded(&long_text);
            line.text(b"ten bytes.", 10);
            line.integer(i64::MIN);
            line.integer(0);
            line.fixed(true, u64::MAX, 2);
            line.fixed(true, u64::MAX, MAX_DECIMALS);
            line.fixed(false, 7, 3);
            line.fixed(false, 1000, 0);
        }
        line.finish();
        let medium = "x".repeat(BLOCK + 1);
        let numbers = "-92233720368547758080-184467440737095516.15-184.467440737095516150.0071000";

        assert_eq!(format!("> short {medium}{long}ten bytes.{numbers}"), String::from_utf8(out).unwrap());
    }

    #[test]
    fn numbers_have_the_digits_of_the_standard_library() {
        let mut value = 1_u64;
        for step in 0..2000 {
            // Numbers of every length: a multiplicative generator, shifted.
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = value >> (step % 64);
            let decimals = step % (MAX_DECIMALS + 1);
            let mut out = Vec::new();
            let mut line = RawLine::new(&mut out, 2 * NUMBER_BYTES + 1);
            // SAFETY: the room is the sum of the pieces.
            unsafe {
                line.integer(number as i64);
                line.text(b" ", 1);
                line.fixed(step % 2 == 0, number, decimals);
            }
            line.finish();

            let sign = if step % 2 == 0 { "-" } else { "" };
            let digits = format!("{number:0width$}", width = decimals + 1);
            let (whole, fraction) = digits.split_at(digits.len() - decimals);
            let point = if decimals > 0 { "." } else { "" };
            let expected = format!("{} {sign}{whole}{point}{fraction}", number as i64);
            assert_eq!(expected, String::from_utf8(out).expect("ASCII"));
        }
    }
}
