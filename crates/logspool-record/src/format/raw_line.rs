//! Writes the pieces of one line into room that was reserved for the whole line.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The pieces are written without a check of the capacity for each. Short
//! texts are copied as one block of [`BLOCK`] bytes, which is faster than a copy of their exact length.

/// Bytes that a copy of a short text writes, and bytes of room after the last piece.
pub(super) const BLOCK: usize = 32;

/// Maximum bytes of [`RawLine::integer`] and [`RawLine::fixed`].
///
/// A sign, the 20 digits of `u64::MAX` and a point are 22 bytes. A number below one has a digit before the point and
/// [`MAX_DECIMALS`] after it.
pub(super) const NUMBER_BYTES: usize = 24;

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

    /// Writes an integer in decimal.
    ///
    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn integer(&mut self, value: i64) {
        let mut digits = Digits::new();
        digits.push_whole(value.unsigned_abs());
        if value < 0 {
            digits.push(b'-');
        }
        // SAFETY: the caller guarantees the room for a number.
        unsafe { self.digits(&digits) }
    }

    /// Writes `scaled / 10^decimals` with `decimals` digits after the point, at most [`MAX_DECIMALS`].
    ///
    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left.
    #[inline]
    pub(super) unsafe fn fixed(&mut self, negative: bool, mut scaled: u64, decimals: usize) {
        let mut digits = Digits::new();
        let decimals = decimals.min(MAX_DECIMALS);
        for _ in 0..decimals / 2 {
            digits.push_pair(scaled % 100);
            scaled /= 100;
        }
        if decimals % 2 == 1 {
            digits.push(b'0' + (scaled % 10) as u8);
            scaled /= 10;
        }
        if decimals > 0 {
            digits.push(b'.');
        }
        digits.push_whole(scaled);
        if negative {
            digits.push(b'-');
        }
        // SAFETY: the caller guarantees the room for a number.
        unsafe { self.digits(&digits) }
    }

    /// # Safety
    ///
    /// The room has [`NUMBER_BYTES`] bytes left.
    #[inline]
    unsafe fn digits(&mut self, digits: &Digits) {
        // SAFETY: the digits begin before the last `BLOCK` bytes of their buffer; after the room there are `BLOCK`
        // writable bytes.
        unsafe {
            self.at.copy_from_nonoverlapping(digits.buffer.as_ptr().add(digits.at), BLOCK);
            self.advance(NUMBER_BYTES - digits.at);
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

/// The digits of a number, written from the last one to the first one.
struct Digits {
    /// The number ends at [`NUMBER_BYTES`]. The bytes after it are there so that a block can be read.
    buffer: [u8; NUMBER_BYTES + BLOCK],
    at: usize,
}

impl Digits {
    #[inline]
    fn new() -> Self {
        Self { buffer: [0; NUMBER_BYTES + BLOCK], at: NUMBER_BYTES }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.at -= 1;
        self.buffer[self.at] = byte;
    }

    #[inline]
    fn push_pair(&mut self, pair: u64) {
        self.at -= 2;
        self.buffer[self.at..self.at + 2].copy_from_slice(&PAIRS[pair as usize]);
    }

    #[inline]
    fn push_whole(&mut self, mut value: u64) {
        while value >= 100 {
            self.push_pair(value % 100);
            value /= 100;
        }
        if value >= 10 {
            self.push_pair(value);
        } else {
            self.push(b'0' + value as u8);
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
        medium_text.set(|out| out.extend_from_slice(long[..BLOCK + 1].as_bytes()));
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
}
