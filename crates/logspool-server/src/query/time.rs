//! Times and durations as people write them.

use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveDateTime};

use crate::visible::visible;

/// Examples of valid times, for messages.
pub const FORMS: &str = "2026-11-22T10:00:00Z, 2026-11-22 10:00, 2026-11-22, yesterday, 15m (ago) or now";

/// A text that is not a valid time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeError {
    /// The text.
    text: String,
}

impl fmt::Display for TimeError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "`{}` is not a time: write {FORMS}", visible(&self.text))
    }
}

impl std::error::Error for TimeError {}

/// Parses a time to nanoseconds since 1970. Valid forms are RFC 3339, `YYYY-MM-DD[ HH:MM[:SS]]` in UTC, and `now`.
/// `today` and `yesterday` are the starts of these days in UTC. A duration (`15m`, also `-15m`) is a time before now.
///
/// # Errors
///
/// The text has none of these forms, or the time is outside the years 1677 to 2262.
pub fn parse_time(text: &str, now_ns: i64) -> Result<i64, TimeError> {
    let ago = text.strip_prefix('-').unwrap_or(text);
    let today = now_ns.saturating_sub(now_ns.rem_euclid(DAY_NS));
    match text {
        "now" => return Ok(now_ns),
        "today" => return Ok(today),
        "yesterday" => return Ok(today.saturating_sub(DAY_NS)),
        _ => {}
    }
    if let Some(length) = parse_duration(ago) {
        return Ok(now_ns.saturating_sub(length));
    }
    parse_date(text).ok_or_else(|| TimeError { text: text.to_owned() })
}

fn parse_date(text: &str) -> Option<i64> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return time.timestamp_nanos_opt();
    }
    let with_time = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
    let time = with_time.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let time = time.or_else(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0))?;
    time.and_utc().timestamp_nanos_opt()
}

/// Length of a day in nanoseconds.
const DAY_NS: i64 = 86_400_000_000_000;

/// Maximum number of digits after the point of a duration. Chosen: they fit the multiplication of a week.
const MAX_DECIMALS: usize = 4;

/// Parses a positive duration to nanoseconds: a number, also as `1.5`, followed by `s`, `m`, `h`, `d` or `w`.
pub fn parse_duration(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ns = match unit {
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => DAY_NS,
        "w" => 7 * DAY_NS,
        _ => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number =
        [whole, decimals].iter().all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_number || decimals.len() > MAX_DECIMALS {
        return None;
    }
    let scale = 10_i64.pow(u32::try_from(decimals.len()).ok()?);
    let part = decimals.parse::<i64>().ok()? * (unit_ns / scale);
    let length = whole.parse::<i64>().ok()?.checked_mul(unit_ns)?.checked_add(part)?;
    (length > 0).then_some(length)
}

/// The units of a delay in nanoseconds, largest first.
const DELAY_UNITS: [(i64, &str); 6] = [
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1, "ns"),
];

/// Parses a duration that may be negative or zero to nanoseconds: an integer followed by `ns`, `ms`, `s`, `m`, `h` or
/// `d`.
pub(super) fn parse_delay(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let (length, _) = DELAY_UNITS.iter().find(|(_, unit)| *unit == &text[digits.len()..])?;
    let is_number = digits.strip_prefix('-').unwrap_or(digits).bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<i64>().ok().filter(|_| is_number)?.checked_mul(*length)
}

/// Writes a duration in the largest unit that expresses it as an integer.
pub(super) fn delay_text(length_ns: i64) -> String {
    let (length, unit) = DELAY_UNITS.into_iter().find(|(length, _)| length_ns % length == 0).unwrap_or((1, "ns"));
    format!("{}{}", length_ns / length, if length_ns == 0 { "s" } else { unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-22T10:00:00Z.
    const NOW: i64 = 1_795_341_600_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (expected, text) in [
            (NOW, "now"),
            (NOW - 30 * SECOND, "30s"),
            (NOW - 15 * 60 * SECOND, "15m"),
            (NOW - 3_600 * SECOND, "1h"),
            (NOW - 3_600 * SECOND, "-1h"),
            (NOW - 2 * 86_400 * SECOND, "2d"),
            (NOW - 7 * 86_400 * SECOND, "1w"),
            (NOW - 5_400 * SECOND, "1.5h"),
            (NOW - SECOND / 10_000, "0.0001s"),
            (NOW - 10 * 3_600 * SECOND, "today"),
            (NOW - 34 * 3_600 * SECOND, "yesterday"),
            (NOW, "2026-11-22T10:00:00Z"),
            (NOW + 5, "2026-11-22T11:00:00.000000005+01:00"),
            (NOW, "2026-11-22 10:00:00"),
            (NOW, "2026-11-22T10:00"),
            (NOW, "2026-11-22 10:00"),
            (NOW - 10 * 3_600 * SECOND, "2026-11-22"),
        ] {
            assert_eq!(Ok(expected), parse_time(text, NOW), "{text}");
        }
        // The result would be before the earliest time that nanoseconds can express, so it is that earliest time.
        assert_eq!(Ok(i64::MIN), parse_time("2d", i64::MIN + 1));
    }

    #[test]
    fn a_delay_is_read_as_it_is_written() {
        for (expected, text) in [
            (5 * 60 * SECOND, "5m"),
            (-SECOND, "-1s"),
            (0, "0s"),
            (1_500_000_000, "1500ms"),
            (2 * 86_400 * SECOND, "2d"),
            (i64::MIN, "-9223372036854775808ns"),
        ] {
            assert_eq!((Some(expected), text), (parse_delay(text), &*delay_text(expected)));
        }
        for text in ["", "5", "m", "-m", "+5m", "5w", "5 m", "--5m", "9223372036854775807d", "5mm", "ü"] {
            assert_eq!(None, parse_delay(text), "{text}");
        }
    }

    #[test]
    fn an_invalid_time_is_an_error_with_the_valid_forms() {
        for text in [
            "",
            "-",
            "h",
            "1",
            "1y",
            "1.h",
            ".5h",
            "1.00001s",
            "1.5.5h",
            "0.0h",
            "0s",
            "--1h",
            "+1h",
            "²h",
            "2026-13-01",
            "3000-01-01",
            "1h ",
            "ü",
            "99999999999999999d",
            "tomorrow",
            "2026-11-22T10:00:00Zx",
        ] {
            assert!(parse_time(text, NOW).is_err(), "{text}");
        }
        assert_eq!(
            "`\\x1b` is not a time: write 2026-11-22T10:00:00Z, 2026-11-22 10:00, 2026-11-22, yesterday, 15m (ago) or \
             now",
            parse_time("\u{1b}", NOW).unwrap_err().to_string()
        );
    }
}
