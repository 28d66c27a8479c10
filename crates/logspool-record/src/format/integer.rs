//! Integers as text.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The functions append to a vector, and allocate memory only to grow it.

/// The texts `00` to `99`, so that one division yields two digits.
const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Digits of `u64::MAX` in base 10.
const MAX_DECIMAL_DIGITS: usize = 20;

/// Bases of the integer conversions, except 10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// `b`, only in `str.format`.
    Binary,
    /// `o`.
    Octal,
    /// `x`.
    LowerHex,
    /// `X`.
    UpperHex,
}

impl Base {
    /// The prefix that the flag `#` adds before the digits.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Binary => "0b",
            Self::Octal => "0o",
            Self::LowerHex => "0x",
            Self::UpperHex => "0X",
        }
    }
}

/// Writes the decimal digits of `value` at the end of `digits`. Returns the position at which they begin.
#[inline]
fn write_digits(digits: &mut [u8; MAX_DECIMAL_DIGITS], mut value: u64) -> usize {
    let mut at = MAX_DECIMAL_DIGITS;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    at
}

/// Appends `value` in decimal.
#[inline]
pub fn push_unsigned(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0; MAX_DECIMAL_DIGITS];
    let at = write_digits(&mut digits, value);
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` in decimal, with a leading `-` if it is negative.
#[inline]
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_unsigned(out, value.unsigned_abs());
}

/// Appends `value` in decimal with at least `least` digits; leading zeros fill the rest.
#[inline]
pub fn push_padded(out: &mut Vec<u8>, value: u64, least: usize) {
    let mut digits = [b'0'; MAX_DECIMAL_DIGITS];
    let at = write_digits(&mut digits, value);
    if let Some(beyond @ 1..) = least.checked_sub(MAX_DECIMAL_DIGITS) {
        out.resize(out.len() + beyond, b'0');
    }
    out.extend_from_slice(&digits[at.min(MAX_DECIMAL_DIGITS.saturating_sub(least))..]);
}

/// Appends `value` in `base`, without a prefix.
pub fn push_based(out: &mut Vec<u8>, value: u64, base: Base) {
    use std::io::Write;
    match base {
        Base::Binary => write!(out, "{value:b}"),
        Base::Octal => write!(out, "{value:o}"),
        Base::LowerHex => write!(out, "{value:x}"),
        Base::UpperHex => write!(out, "{value:X}"),
    }
    .expect("a vector takes every byte");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_read_as_display_writes_them() {
        for value in [0, 7, 10, 99, 100, 101, 12_345, i64::MAX, -1, -10, i64::MIN] {
            let mut out = Vec::new();
            push_signed(&mut out, value);

            assert_eq!(value.to_string().as_bytes(), out);
        }
    }

    #[test]
    fn padding_puts_zeros_before_the_digits_and_never_cuts() {
        let mut out = b"x".to_vec();
        push_padded(&mut out, 7, 3);
        push_padded(&mut out, 12_345, 3);

        push_padded(&mut out, 7, 22);

        assert_eq!(b"x007123450000000000000000000007", out.as_slice());
    }
}
