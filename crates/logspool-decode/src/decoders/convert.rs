//! Conversions that several decoders share.

use std::borrow::Cow;

use super::levels::{self, Scale};
use crate::value::Value;

pub use super::times::nanoseconds;

/// The number of a level, by any of the names that logging libraries use. `None`: the name is unknown.
pub fn level(name: &str) -> Option<u16> {
    levels::named(name).map(|named| named.level)
}

/// The name that Python's `logging` gives a level. `None`: it has no name for this number.
pub fn level_name(level: u16) -> Option<&'static str> {
    Some(match level {
        0 => "NOTSET",
        10 => "DEBUG",
        20 => "INFO",
        30 => "WARNING",
        40 => "ERROR",
        50 => "CRITICAL",
        _ => return None,
    })
}

/// The level for a syslog severity (RFC 5424, 6.2.1): 0 is emergency, 7 is debug.
pub fn level_of_severity(severity: i64) -> Option<u16> {
    Scale::Syslog.level(severity)
}

/// Converts seconds since 1970, as Python's `logging` keeps them, to nanoseconds.
pub fn seconds(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(seconds) => seconds.checked_mul(1_000_000_000),
        Value::Float(seconds) => of_float(*seconds),
        _ => None,
    }
}

/// Converts seconds since 1970 as a double. A double has today's times only to some 240 ns, so the result is rounded to
/// microseconds.
pub(super) fn of_float(seconds: f64) -> Option<i64> {
    let whole = seconds.floor();
    let micros = ((seconds - whole) * 1e6).round() as i64;
    // Nanoseconds since 1970 fit `i64` until the year 2262.
    (whole.abs() < 9.2e9).then(|| whole as i64 * 1_000_000_000 + micros * 1_000)
}

/// The integer in a value. `None`: the value is not an integer, or does not fit the type.
pub fn number<Number: TryFrom<i64>>(value: &Value<'_>) -> Option<Number> {
    match value {
        Value::Int(number) => Number::try_from(*number).ok(),
        _ => None,
    }
}

/// The text in a value; empty for values of other types.
pub fn into_text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text,
        _ => Cow::Borrowed(""),
    }
}

/// Decodes UTF-8; invalid bytes become U+FFFD.
pub fn lossy(text: &[u8]) -> Cow<'_, str> {
    // Faster than `from_utf8_lossy` for valid text.
    std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_names_and_numbers_agree() {
        for number in (0..=60).step_by(10) {
            assert_eq!(level_name(number).map(|_| number), level_name(number).and_then(level));
        }
    }
}
