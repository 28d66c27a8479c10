//! Levels and times as senders write them.

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, NaiveDateTime};

use crate::value::Value;

/// The number of a level, by any of the names that logging libraries use. `None`: the name is unknown.
pub fn level(name: &str) -> Option<u16> {
    let mut lower = [0; 16];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"notset" => Some(0),
        b"trace" | b"finest" => Some(5),
        b"debug" | b"fine" | b"dbg" => Some(10),
        b"info" | b"information" | b"informational" | b"notice" | b"success" => Some(20),
        b"warn" | b"warning" => Some(30),
        b"error" | b"err" | b"severe" => Some(40),
        b"critical" | b"crit" | b"fatal" | b"alert" | b"emerg" | b"emergency" | b"panic" => Some(50),
        _ => None,
    }
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
    match severity {
        0..=2 => Some(50),
        3 => Some(40),
        4 => Some(30),
        5 | 6 => Some(20),
        7 => Some(10),
        _ => None,
    }
}

/// Parses a time to nanoseconds since 1970. Text is RFC 3339 or ISO 8601, in UTC if it has no offset. Numbers are
/// seconds, milliseconds, microseconds or nanoseconds, depending on their size.
pub fn nanoseconds(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Text(text) => of_text(text),
        // A number of seconds exceeds the first limit only after the year 5138. Larger numbers have a smaller unit.
        Value::Int(number) => match number.unsigned_abs() {
            0..100_000_000_000 => number.checked_mul(1_000_000_000),
            100_000_000_000..100_000_000_000_000 => number.checked_mul(1_000_000),
            100_000_000_000_000..100_000_000_000_000_000 => number.checked_mul(1_000),
            _ => Some(*number),
        },
        Value::Float(number) => match number.abs() {
            size if size < 1e11 => of_float(*number),
            size if size < 1e14 => of_float(*number / 1e3),
            size if size < 1e17 => of_float(*number / 1e6),
            _ => None,
        },
        _ => None,
    }
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
fn of_float(seconds: f64) -> Option<i64> {
    let whole = seconds.floor();
    let micros = ((seconds - whole) * 1e6).round() as i64;
    // Nanoseconds since 1970 fit `i64` until the year 2262.
    (whole.abs() < 9.2e9).then(|| whole as i64 * 1_000_000_000 + micros * 1_000)
}

fn of_text(text: &str) -> Option<i64> {
    let text = text.trim();
    // `asctime` of Python's `logging` has a comma before the milliseconds.
    let text = if text.contains(',') { Cow::Owned(text.replacen(',', ".", 1)) } else { Cow::Borrowed(text) };
    let with_offset = text.parse::<DateTime<FixedOffset>>();
    let without = || {
        let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
        formats.iter().find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok())
    };
    match with_offset {
        Ok(time) => time.timestamp_nanos_opt(),
        Err(_) => without()?.and_utc().timestamp_nanos_opt(),
    }
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
    fn levels_have_many_names() {
        assert_eq!(Some(30), level("Warning"));
        assert_eq!(Some(50), level("FATAL"));
        assert_eq!(None, level("a name that is far too long for any level"));
        assert_eq!(None, level(""));
        assert_eq!([Some(50), Some(20), Some(10), None], [0, 6, 7, 8].map(level_of_severity));
        for number in (0..=60).step_by(10) {
            assert_eq!(level_name(number).map(|_| number), level_name(number).and_then(level));
        }
    }

    #[test]
    fn times_are_read_in_the_ways_they_are_written() {
        let expected = Some(1_700_000_000_125_000_000);
        for text in [
            "2023-11-14T22:13:20.125Z",
            "2023-11-14T23:13:20.125+01:00",
            "2023-11-14 22:13:20.125",
            "2023-11-14 22:13:20,125",
            " 2023-11-14T22:13:20.125 ",
        ] {
            assert_eq!(expected, nanoseconds(&Value::text(text)), "{text}");
        }
        assert_eq!(expected, nanoseconds(&Value::Float(1_700_000_000.125)));
        assert_eq!(expected, nanoseconds(&Value::Int(1_700_000_000_125)));
        assert_eq!(expected, nanoseconds(&Value::Float(1_700_000_000_125.0)));
        assert_eq!(expected, nanoseconds(&Value::Int(1_700_000_000_125_000)));
        assert_eq!(expected, nanoseconds(&Value::Int(1_700_000_000_125_000_000)));
        assert_eq!(Some(-1_000_000_000), nanoseconds(&Value::Int(-1)));
        for none in [Value::text("yesterday"), Value::Null, Value::Float(f64::NAN), Value::Float(1e300)] {
            assert_eq!(None, nanoseconds(&none), "{none:?}");
        }
    }
}
