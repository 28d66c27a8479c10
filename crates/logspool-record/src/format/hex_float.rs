//! Hexadecimal floats, as `%a` of glibc writes them.
//!
//! Pipeline stage: format (see ARCHITECTURE.md).

use std::io::Write;

/// Explicit bits of a double's mantissa, and the hexadecimal digits that they take.
const MANTISSA_BITS: u32 = 52;
const MANTISSA_DIGITS: usize = 13;

/// Appends a finite magnitude. Without a precision, all digits that are not trailing zeros are shown.
pub(super) fn push_hex_float(
    out: &mut Vec<u8>,
    magnitude: f64,
    precision: Option<usize>,
    has_point: bool,
    is_upper: bool,
) {
    let start = out.len();
    let bits = magnitude.to_bits();
    let biased = (bits >> MANTISSA_BITS) as i32;
    let exponent = match (biased, bits) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => biased - 1023,
    };
    let mut mantissa = bits & ((1 << MANTISSA_BITS) - 1) | u64::from(biased != 0) << MANTISSA_BITS;
    if let Some(dropped @ 1..) = precision.and_then(|precision| MANTISSA_DIGITS.checked_sub(precision)) {
        let unit = 1_u64 << (4 * dropped);
        let rest = mantissa % unit;
        mantissa -= rest;
        if rest > unit / 2 || (rest == unit / 2 && mantissa / unit % 2 == 1) {
            mantissa += unit;
        }
    }
    let digits = format!("{:013x}", mantissa & ((1 << MANTISSA_BITS) - 1));
    let digits = match precision {
        Some(precision) => &digits[..precision.min(MANTISSA_DIGITS)],
        None => digits.trim_end_matches('0'),
    };
    let zeros = precision.map_or(0, |precision| precision.saturating_sub(MANTISSA_DIGITS));
    let point = if has_point || !digits.is_empty() { "." } else { "" };
    let leading = mantissa >> MANTISSA_BITS;
    write!(out, "0x{leading}{point}{digits}").expect("a vector takes every byte");
    out.resize(out.len() + zeros, b'0');
    write!(out, "p{exponent:+}").expect("a vector takes every byte");
    if is_upper {
        out[start..].make_ascii_uppercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_equal_those_of_glibc() {
        for (text, magnitude, precision, has_point) in [
            ("0x0p+0", 0.0, None, false),
            ("0x1.p+0", 1.0, None, true),
            ("0x1.999999999999ap-4", 0.1, None, false),
            ("0x2p+0", 1.9999, Some(0), false),
            ("0x1.8p+0", 1.5, Some(1), false),
            ("0x2p+0", 1.5, Some(0), false),
            ("0x1.80000000000000p+1", 3.0, Some(14), false),
            ("0x0.0000000000001p-1022", 5e-324, None, false),
        ] {
            let mut out = Vec::new();
            push_hex_float(&mut out, magnitude, precision, has_point, false);

            assert_eq!(text, String::from_utf8(out).expect("ASCII"));
        }
    }
}
