//! Doubles as text, digit for digit as by CPython's `PyOS_double_to_string`.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). CPython rounds the exact binary value half-even (David Gay's `dtoa`).
//! This file does the same in two ways. It uses integers for the usual cases of `%.Nf` and `repr`. For all other cases
//! it uses `core::fmt`, which is exact, too.

use std::io::Write;

use super::integer::{push_padded, push_unsigned};
use super::pad::{insert_bytes, insert_fill};

/// The notation of a double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `f`: `precision` digits after the point.
    Fixed,
    /// `e`: one digit, point, `precision` digits, exponent.
    Exponent,
    /// `g`: `precision` significant digits, in the shorter of the notations `f` and `e`.
    General,
    /// `repr`: the fewest digits that read back as the same double; `precision` is not used.
    Shortest,
}

/// Whether the decimal point is written if no digit follows it (`#`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The point is written only before digits; `g` drops trailing zeros.
    AsNeeded,
    /// The point is always written; `g` keeps trailing zeros.
    Always,
    /// A number without exponent gets at least one digit after the point, as `repr` does.
    WithDigit,
}

/// Case of `e`, `inf` and `nan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// `1e+16`, `inf`.
    Lower,
    /// `1E+16`, `INF`.
    Upper,
}

/// Everything except sign and padding that determines the text of a double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatText {
    /// The notation.
    pub notation: Notation,
    /// Number of digits. The notation defines which digits are counted.
    pub precision: usize,
    /// Whether the point is written if no digit follows it.
    pub point: Point,
    /// Case of the letters.
    pub case: Case,
}

/// `repr(float)`.
pub const REPR: FloatText =
    FloatText { notation: Notation::Shortest, precision: 0, point: Point::WithDigit, case: Case::Lower };

const POWERS_OF_TEN: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut at = 1;
    while at < 20 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Explicit bits of a double's mantissa.
const MANTISSA_BITS: u32 = 52;

/// Appends `repr(value)`.
#[inline]
pub fn push_repr(out: &mut Vec<u8>, value: f64) {
    if is_negative(value) {
        out.push(b'-');
    }
    push_magnitude(out, value.abs(), REPR);
}

/// Appends the shortest text that reads back as the same single, in the form of `repr(float)`.
pub fn push_single_repr(out: &mut Vec<u8>, value: f32) {
    if is_negative(value.into()) {
        out.push(b'-');
    }
    if !value.is_finite() {
        return push_magnitude(out, f64::from(value.abs()), REPR);
    }
    let start = out.len();
    let decimal_exponent = push_single_digits(out, value.abs());
    place_shortest(out, start, decimal_exponent, REPR);
}

/// Whether Python writes a minus sign. It does so for -0.0, too, and never for a nan.
#[inline]
pub fn is_negative(value: f64) -> bool {
    value.is_sign_negative() && !value.is_nan()
}

/// Appends `magnitude`, which is not negative, in the form of `text`.
#[inline]
pub fn push_magnitude(out: &mut Vec<u8>, magnitude: f64, text: FloatText) {
    if !magnitude.is_finite() {
        out.extend_from_slice(match (magnitude.is_nan(), text.case) {
            (true, Case::Lower) => b"nan",
            (true, Case::Upper) => b"NAN",
            (false, Case::Lower) => b"inf",
            (false, Case::Upper) => b"INF",
        });
        return;
    }
    match text.notation {
        Notation::Fixed => push_fixed(out, magnitude, text.precision, text.point),
        Notation::Exponent => push_exponent(out, magnitude, text),
        Notation::General => push_general(out, magnitude, text),
        Notation::Shortest => push_shortest(out, magnitude, text),
    }
}

/// Appends a magnitude as by `%.Nf`.
#[inline]
pub fn push_fixed(out: &mut Vec<u8>, magnitude: f64, precision: usize, point: Point) {
    match scaled_half_even(magnitude, precision) {
        Some(scaled) if precision == 0 => push_unsigned(out, scaled),
        Some(scaled) => {
            let power = POWERS_OF_TEN[precision];
            push_unsigned(out, scaled / power);
            out.push(b'.');
            push_padded(out, scaled % power, precision);
        }
        None => write!(out, "{magnitude:.precision$}").expect("a vector takes every byte"),
    }
    if precision == 0 && point == Point::Always {
        out.push(b'.');
    }
}

/// Largest precision for which mantissa * 10^precision is below 2^63.
const MAX_SMALL_PRECISION: usize = 3;

/// Returns `magnitude * 10^precision`, rounded half-even from the exact binary value. `None`: the result does not fit
/// `u64`.
///
/// A double is m * 2^e with m below 2^53. So m * 10^precision is exact in 128 bits for precision <= 19. One shift with
/// its remainder gives the rounded quotient.
#[inline]
pub(super) fn scaled_half_even(magnitude: f64, precision: usize) -> Option<u64> {
    let power = *POWERS_OF_TEN.get(precision)?;
    let bits = magnitude.to_bits();
    let biased = (bits >> MANTISSA_BITS) as i32;
    let fraction = bits & ((1 << MANTISSA_BITS) - 1);
    let (mantissa, exponent) = match biased {
        0 => (fraction, -1074),
        _ => (fraction | (1 << MANTISSA_BITS), biased - 1075),
    };
    if precision <= MAX_SMALL_PRECISION && (-63..0).contains(&exponent) {
        // The product is below 2^63, so 64 bits are enough for the same computation.
        let (product, shift) = (mantissa * power, exponent.unsigned_abs());
        let (quotient, remainder) = (product >> shift, product & ((1 << shift) - 1));
        let half = 1 << (shift - 1);
        let up = remainder > half || (remainder == half && quotient & 1 == 1);
        return Some(quotient + u64::from(up));
    }
    let product = u128::from(mantissa) * u128::from(power);
    if exponent >= 0 {
        // The product is below 2^117, so a shift by ten bits still fits 128 bits. A larger exponent means a result
        // above 2^63.
        return (exponent <= 10).then(|| u64::try_from(product << exponent).ok()).flatten();
    }
    let shift = exponent.unsigned_abs();
    if shift >= 120 {
        // The product is below 2^117, so the result is less than half of the last digit.
        return Some(0);
    }
    let quotient = u64::try_from(product >> shift).ok()?;
    let remainder = product & ((1 << shift) - 1);
    let half = 1u128 << (shift - 1);
    let up = remainder > half || (remainder == half && quotient & 1 == 1);
    quotient.checked_add(u64::from(up))
}

fn push_exponent(out: &mut Vec<u8>, magnitude: f64, text: FloatText) {
    let start = out.len();
    let decimal_exponent = push_digits(out, magnitude, Some(text.precision));
    place_point_after_first(out, start, text.point);
    push_decimal_exponent(out, decimal_exponent, text.case);
}

fn push_general(out: &mut Vec<u8>, magnitude: f64, text: FloatText) {
    let start = out.len();
    let precision = text.precision.max(1);
    let decimal_exponent = push_digits(out, magnitude, Some(precision - 1));
    if text.point != Point::Always {
        strip_zeros(out, start);
    }
    let most = precision as i32 - i32::from(text.point == Point::WithDigit);
    if decimal_exponent < -4 || decimal_exponent >= most {
        place_point_after_first(out, start, text.point);
        push_decimal_exponent(out, decimal_exponent, text.case);
    } else {
        place_point(out, start, decimal_exponent, text.point);
    }
}

fn push_shortest(out: &mut Vec<u8>, magnitude: f64, text: FloatText) {
    if text.point == Point::WithDigit && push_short_decimal(out, magnitude) {
        return;
    }
    let start = out.len();
    let decimal_exponent = push_digits(out, magnitude, None);
    place_shortest(out, start, decimal_exponent, text);
}

/// Inserts point, zeros or exponent into the shortest digits. The first digit has the weight 10^`decimal_exponent`.
#[inline]
pub(super) fn place_shortest(out: &mut Vec<u8>, start: usize, decimal_exponent: i32, text: FloatText) {
    if !(-4..16).contains(&decimal_exponent) {
        place_point_after_first(out, start, text.point);
        push_decimal_exponent(out, decimal_exponent, text.case);
    } else {
        place_point(out, start, decimal_exponent, text.point);
    }
}

/// Writes a number that has at most six decimals and fifteen digits. Returns false for other numbers, and writes
/// nothing.
///
/// `scaled / 10^6` is one correctly rounded division of two exact integers. So it is the double that results from
/// reading the decimal. Different decimals of at most fifteen digits are different doubles. So this decimal without its
/// trailing zeros is the only shortest text.
#[inline]
fn push_short_decimal(out: &mut Vec<u8>, magnitude: f64) -> bool {
    const SCALE: f64 = 1e6;
    if magnitude == 0.0 {
        out.extend_from_slice(b"0.0");
        return true;
    }
    if !(1e-4..1e9).contains(&magnitude) {
        return false;
    }
    let scaled = magnitude * SCALE;
    let whole = scaled as u64;
    if whole as f64 != scaled || scaled / SCALE != magnitude {
        return false;
    }
    push_unsigned(out, whole / 1_000_000);
    out.push(b'.');
    let start = out.len();
    push_padded(out, whole % 1_000_000, 6);
    strip_zeros(out, start);
    true
}

/// Appends the significant digits without a point. Returns the decimal exponent of the first digit.
///
/// `behind` is the number of digits after the first one, exactly rounded. `None` asks for the shortest text.
pub(super) fn push_digits(out: &mut Vec<u8>, magnitude: f64, behind: Option<usize>) -> i32 {
    let start = out.len();
    match behind {
        Some(behind) => write!(out, "{magnitude:.behind$e}").expect("a vector takes every byte"),
        None => {
            write!(out, "{magnitude:e}").expect("a vector takes every byte");
            if may_be_tie(magnitude) {
                settle_tie(out, start, magnitude, |text| text.parse() == Ok(magnitude));
            }
        }
    }
    take_exponent(out, start)
}

/// Appends the shortest digits of a single without a point. Returns the decimal exponent of the first digit.
pub(super) fn push_single_digits(out: &mut Vec<u8>, magnitude: f32) -> i32 {
    let start = out.len();
    write!(out, "{magnitude:e}").expect("a vector takes every byte");
    if may_be_tie(magnitude.into()) {
        settle_tie(out, start, magnitude.into(), |text| text.parse() == Ok(magnitude));
    }
    take_exponent(out, start)
}

/// Cuts the point and the exponent out of a number that `{:e}` wrote at `start`. Returns the exponent.
#[inline]
fn take_exponent(out: &mut Vec<u8>, start: usize) -> i32 {
    let mark = start + out[start..].iter().rposition(|byte| *byte == b'e').expect("{:e} writes an exponent");
    let exponent = std::str::from_utf8(&out[mark + 1..]).ok().and_then(|text| text.parse().ok());
    out.truncate(mark);
    if out.len() > start + 1 {
        out.remove(start + 1);
    }
    exponent.expect("{:e} writes a small integer")
}

/// Whether the exact value has so few digits that two shortest texts can be equally near.
///
/// A tie has one digit more than the shortest text, so at most 18. With m odd, m * 2^-k has at least the digits of 5^k,
/// which are more than 18 for k above 25. An integer has more than 18 digits from 10^18 on.
#[inline]
fn may_be_tie(magnitude: f64) -> bool {
    let bits = magnitude.to_bits();
    let fraction = bits & ((1 << MANTISSA_BITS) - 1) | (1 << MANTISSA_BITS);
    let exponent = (bits >> MANTISSA_BITS) as i32 - 1075 + fraction.trailing_zeros() as i32;
    exponent >= -25 && magnitude < 1e18
}

/// If two shortest texts are equally near, keeps the even one, as Python does. `core::fmt` writes the upper one.
fn settle_tie(out: &mut Vec<u8>, start: usize, magnitude: f64, is_same: impl Fn(&str) -> bool) {
    let end = out.len();
    let mantissa = out[start..].iter().position(|byte| *byte == b'e').unwrap_or(1);
    let behind = mantissa.saturating_sub(2);
    write!(out, "{magnitude:.behind$e}").expect("a vector takes every byte");
    if std::str::from_utf8(&out[end..]).is_ok_and(is_same) {
        out.drain(start..end);
    } else {
        out.truncate(end);
    }
}

/// Drops trailing zeros of the digits that begin at `start`, but never the first digit.
fn strip_zeros(out: &mut Vec<u8>, start: usize) {
    while out.len() > start + 1 && out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Inserts the point after the first digit: d.ddd.
fn place_point_after_first(out: &mut Vec<u8>, start: usize, point: Point) {
    if out.len() > start + 1 || point == Point::Always {
        insert_bytes(out, start + 1, b".");
    }
}

/// Inserts point and zeros to get a number without exponent. The first digit has the weight 10^`exponent`.
fn place_point(out: &mut Vec<u8>, start: usize, exponent: i32, point: Point) {
    let digits = out.len() - start;
    if exponent < 0 {
        insert_fill(out, start, exponent.unsigned_abs() as usize, '0');
        insert_bytes(out, start + 1, b".");
        return;
    }
    let before = exponent as usize + 1;
    if digits > before {
        insert_bytes(out, start + before, b".");
        return;
    }
    out.resize(start + before, b'0');
    match point {
        Point::AsNeeded => {}
        Point::Always => out.push(b'.'),
        Point::WithDigit => out.extend_from_slice(b".0"),
    }
}

fn push_decimal_exponent(out: &mut Vec<u8>, exponent: i32, case: Case) {
    out.push(match case {
        Case::Lower => b'e',
        Case::Upper => b'E',
    });
    out.push(if exponent < 0 { b'-' } else { b'+' });
    push_padded(out, u64::from(exponent.unsigned_abs()), 2);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repr(value: f64) -> String {
        let mut out = Vec::new();
        push_repr(&mut out, value);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn a_single_has_the_fewest_digits() {
        for (text, value) in [
            ("0.1", 0.1_f32),
            ("-0.0", -0.0),
            ("16777216.0", 16_777_216.0),
            ("1e-05", 1e-5),
            ("3.4028235e+38", f32::MAX),
            ("1e-45", f32::from_bits(1)),
            ("nan", -f32::NAN),
            ("-inf", f32::NEG_INFINITY),
        ] {
            let mut out = Vec::new();
            push_single_repr(&mut out, value);

            assert_eq!(text, String::from_utf8(out).expect("ASCII"));
        }
    }

    fn written(value: f64, notation: Notation, precision: usize, point: Point) -> String {
        let mut out = Vec::new();
        push_magnitude(&mut out, value, FloatText { notation, precision, point, case: Case::Lower });
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn repr_equals_that_of_python() {
        for (text, value) in [
            ("0.1", 0.1),
            ("1.0", 1.0),
            ("-0.0", -0.0),
            ("1e+16", 1e16),
            ("9999999999999998.0", 9999999999999998.0),
            ("0.0001", 1e-4),
            ("1e-05", 1e-5),
            ("5e-324", 5e-324),
            ("123456.789", 123456.789),
            ("nan", -f64::NAN),
            ("-inf", f64::NEG_INFINITY),
            ("5.684341886080802e-14", 1.0 / (1_u64 << 44) as f64),
            ("98623342955.51562", 6311893949153.0 / 64.0),
            ("2610012623935.7812", 83520403965945.0 / 32.0),
        ] {
            assert_eq!(text, repr(value));
        }
    }

    #[test]
    fn fixed_rounds_the_exact_value_half_even() {
        for (text, value, precision) in [
            ("0", 0.5, 0),
            ("2", 1.5, 0),
            ("2", 2.5, 0),
            ("0.12", 0.125, 2),
            ("0.38", 0.375, 2),
            ("1.00", 1.005, 2),
            ("9007199254740993.0", 9007199254740993.0f64.next_up(), 1),
            ("0.000", 1e-300, 3),
        ] {
            let text = if value > 1e15 { format!("{value:.1}") } else { text.to_owned() };

            assert_eq!(text, written(value, Notation::Fixed, precision, Point::AsNeeded));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri takes minutes for numbers of hundreds of digits")]
    fn both_paths_of_fixed_formatting_write_the_same() {
        let mut seed = 0x2545_f491_4f6c_dd1du64;
        for _ in 0..20_000 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let value = f64::from_bits(seed & !(1 << 63));
            let value = if value.is_finite() { value } else { 1.0 };
            for value in [value, (seed >> 12) as f64 / 4096.0, (seed >> 40) as f64 / 8.0] {
                for precision in [0, 1, 2, 3, 6, 19] {
                    assert_eq!(
                        format!("{value:.precision$}"),
                        written(value, Notation::Fixed, precision, Point::AsNeeded)
                    );
                }
            }
        }
    }

    #[test]
    fn general_and_exponent_formats_equal_those_of_python() {
        assert_eq!("1e+05", written(123456.0, Notation::General, 0, Point::AsNeeded));
        assert_eq!("1.00000", written(1.0, Notation::General, 6, Point::Always));
        assert_eq!("1.23e+02", written(123.0, Notation::General, 3, Point::WithDigit));
        assert_eq!("12.0", written(12.0, Notation::General, 3, Point::WithDigit));
        assert_eq!("1.e+00", written(1.0, Notation::Exponent, 0, Point::Always));
        assert_eq!("0.000000e+00", written(0.0, Notation::Exponent, 6, Point::AsNeeded));
        assert_eq!("2e+00", written(2.5, Notation::Exponent, 0, Point::AsNeeded));
    }
}
