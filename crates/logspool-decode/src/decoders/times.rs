//! Times as senders write them, in one table of forms.

use std::borrow::Cow;

use chrono::{DateTime, FixedOffset, NaiveDateTime};

use super::convert;
use super::zone::{Zone, offset_seconds};
use crate::value::Value;

/// Forms of a date with a time of day. After it comes a zone, or nothing for UTC. A fraction may follow a comma.
///
/// RFC 3339 is read before this table.
#[rustfmt::skip]
const FORMS: &[(&str, &str)] = &[
    // Sample                                format
    ("2026-09-21T14:13:20.125+0000",         "%Y-%m-%dT%H:%M:%S%.f"),
    ("2026-09-21 14:13:20,125",              "%Y-%m-%d %H:%M:%S%.f"),
    // Go's `log`, nginx
    ("2026/09/21 14:13:20.125",              "%Y/%m/%d %H:%M:%S%.f"),
    // Apache, nginx
    ("21/Sep/2026:14:13:20.125 +0000",       "%d/%b/%Y:%H:%M:%S%.f"),
    ("20260921T141320.125Z",                 "%Y%m%dT%H%M%S%.f"),
    // HTTP, mail
    ("Mon, 21 Sep 2026 14:13:20.125 GMT",    "%a, %d %b %Y %H:%M:%S%.f"),
    // C's `asctime`
    ("Mon Sep 21 14:13:20.125 2026",         "%a %b %e %H:%M:%S%.f %Y"),
    // Redis
    ("21 Sep 2026 14:13:20.125",             "%d %b %Y %H:%M:%S%.f"),
    // Tomcat
    ("21-Sep-2026 14:13:20.125",             "%d-%b-%Y %H:%M:%S%.f"),
    ("Sep 21, 2026 14:13:20.125",            "%b %e, %Y %H:%M:%S%.f"),
    ("Sep 21 2026 14:13:20.125",             "%b %e %Y %H:%M:%S%.f"),
    // Cisco Nexus
    ("2026 Sep 21 14:13:20.125 UTC",         "%Y %b %e %H:%M:%S%.f"),
];

/// Names of seconds and nanoseconds in an object that is a time: protobuf, Go, log4j2.
const PARTS: &[(&str, &str)] =
    &[("seconds", "nanos"), ("sec", "nsec"), ("epochSecond", "nanoOfSecond"), ("secs", "nanos")];

/// A time of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentTime {
    /// Nanoseconds since 1970.
    pub nanoseconds: i64,
    /// True if it is text without a zone, which is read as UTC.
    pub lacks_zone: bool,
}

/// Reads a time. Text without a zone is in UTC. Numbers are seconds, milliseconds, microseconds or nanoseconds,
/// depending on their size.
pub fn read(value: &Value<'_>) -> Option<SentTime> {
    match value {
        Value::Text(text) => read_text(text),
        value => nanoseconds(value).map(|nanoseconds| SentTime { nanoseconds, lacks_zone: false }),
    }
}

/// Like [`read`], but returns only the nanoseconds since 1970.
pub fn nanoseconds(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Text(text) => of_text(text),
        Value::Int(number) => of_number(*number),
        Value::Float(number) => match number.abs() {
            size if size < 1e11 => convert::of_float(*number),
            size if size < 1e14 => convert::of_float(*number / 1e3),
            size if size < 1e17 => convert::of_float(*number / 1e6),
            // A double has such numbers only to 256 ns.
            size if size < 9.2e18 => Some((*number / 1e3).round() as i64 * 1_000),
            _ => None,
        },
        Value::Map(pairs) => of_parts(pairs),
        _ => None,
    }
}

/// Converts a text to nanoseconds since 1970.
pub fn of_text(text: &str) -> Option<i64> {
    read_text(text).map(|time| time.nanoseconds)
}

fn read_text(text: &str) -> Option<SentTime> {
    let text = text.trim();
    let known = |nanoseconds| SentTime { nanoseconds, lacks_zone: false };
    // The parser for RFC 3339 needs half the instructions of the one for its relatives.
    if let Some(time) = DateTime::parse_from_rfc3339(text).ok().and_then(|time| time.timestamp_nanos_opt()) {
        return Some(known(time));
    }
    let with_zone = |text: &str| text.parse::<DateTime<FixedOffset>>().ok()?.timestamp_nanos_opt();
    if let Some(time) = with_zone(text).or_else(|| of_digits(text)) {
        return Some(known(time));
    }
    let text = &*with_decimal_point(text);
    if let Some(time) = with_zone(text) {
        return Some(known(time));
    }
    let (time, zone) = moment(text)?;
    let lacks_zone = zone.is_empty();
    let offset = if lacks_zone { 0 } else { offset_of(zone, time)? };
    let nanoseconds = time.and_utc().timestamp_nanos_opt()?.checked_sub(i64::from(offset) * 1_000_000_000)?;
    Some(SentTime { nanoseconds, lacks_zone })
}

/// The offset of a zone at a local time: as [`offset_seconds`], or a name of the time zone database, also alone in
/// brackets.
fn offset_of(zone: &str, local: NaiveDateTime) -> Option<i32> {
    offset_seconds(zone).or_else(|| {
        let name = zone.strip_prefix('[').and_then(|zone| zone.strip_suffix(']')).unwrap_or(zone);
        Zone::by_name(name).map(|zone| zone.offset_at(local))
    })
}

/// Reads a date and a time of day in one of the forms. Returns the text after it, which is a zone or empty.
fn moment(text: &str) -> Option<(NaiveDateTime, &str)> {
    if !text.starts_with(|first: char| first.is_ascii_alphanumeric()) || text.len() > 64 {
        return None;
    }
    let (time, rest) = FORMS.iter().find_map(|(_, format)| NaiveDateTime::parse_and_remainder(text, format).ok())?;
    Some((time, rest.trim()))
}

/// Replaces a comma between two digits by a point.
fn with_decimal_point(text: &str) -> Cow<'_, str> {
    let is_decimal = |at: usize| {
        let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        at > 0 && is_digit(at - 1) && is_digit(at + 1)
    };
    match text.find(',').filter(|at| is_decimal(*at)) {
        Some(at) => Cow::Owned(format!("{}.{}", &text[..at], &text[at + 1..])),
        None => Cow::Borrowed(text),
    }
}

/// A number of seconds exceeds the first limit only after the year 5138. Larger numbers have a smaller unit.
fn of_number(number: i64) -> Option<i64> {
    match number.unsigned_abs() {
        0..100_000_000_000 => number.checked_mul(1_000_000_000),
        100_000_000_000..100_000_000_000_000 => number.checked_mul(1_000_000),
        100_000_000_000_000..100_000_000_000_000_000 => number.checked_mul(1_000),
        _ => Some(number),
    }
}

/// A number of seconds, milliseconds, microseconds or nanoseconds as text, exact to the nanosecond.
///
/// Fewer than nine digits are no time of today: they may be a date or a counter.
pub fn of_digits(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(9..=19).contains(&whole.len()) || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let scale = match whole {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    let places = &fraction[..fraction.len().min(9)];
    let nanos = format!("{places:0<9}").parse::<i64>().ok()?;
    whole.checked_mul(scale)?.checked_add(nanos / (1_000_000_000 / scale))
}

fn of_parts(pairs: &[(Cow<'_, str>, Value<'_>)]) -> Option<i64> {
    let part = |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    // MongoDB
    if let Some(date @ (Value::Text(_) | Value::Int(_))) = part("$date") {
        return nanoseconds(date);
    }
    // loguru
    if let Some(time @ Value::Float(_)) = part("timestamp") {
        return nanoseconds(time);
    }
    let whole = |value: &Value<'_>| match value {
        Value::Int(number) => Some(*number),
        // The JSON form of protobuf has 64-bit numbers as text.
        Value::Text(text) => text.parse().ok(),
        _ => None,
    };
    PARTS.iter().find_map(|(seconds, nanos)| {
        let seconds = whole(part(seconds)?)?;
        let nanos = part(nanos).map_or(Some(0), whole)?;
        seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-09-21T14:13:20.125Z
    const EXPECTED: Option<i64> = Some(1_790_000_000_125_000_000);

    #[test]
    fn each_form_of_the_table_is_read() {
        for (sample, format) in FORMS {
            assert_eq!(EXPECTED, of_text(sample), "{sample} {format}");
        }
    }

    #[test]
    fn times_are_read_in_all_common_forms() {
        for text in [
            "2026-09-21T14:13:20.125Z",
            "2026-09-21t14:13:20,125z",
            "2026-09-21T16:13:20.125+02:00",
            "2026-09-21T16:13:20.125+0200",
            "2026-09-21T16:13:20.125+02",
            "2026-09-21T16:13:20.125+02:00[Europe/Berlin]",
            "2026-09-21 14:13:20.125 UTC",
            "2026-09-21 16:13:20.125 Europe/Berlin",
            "2026-09-21T11:13:20.125[America/Sao_Paulo]",
            "2026-09-22 00:13:20.125 AEST",
            "2026-09-21 16:13:20.125 CEST",
            "2026-09-21 09:13:20.125 -0500",
            " 2026-09-21T14:13:20.125 ",
            "1790000000.125",
            "1790000000125",
            "1790000000125.0",
            "1790000000125000",
            "1790000000125000000",
        ] {
            assert_eq!(EXPECTED, nanoseconds(&Value::text(text)), "{text}");
        }
        for value in [
            Value::Float(1_790_000_000.125),
            Value::Int(1_790_000_000_125),
            Value::Float(1_790_000_000_125.0),
            Value::Int(1_790_000_000_125_000),
            Value::Int(1_790_000_000_125_000_000),
            Value::Float(1_790_000_000_125_000_000.0),
        ] {
            assert_eq!(EXPECTED, nanoseconds(&value), "{value:?}");
        }
        assert_eq!(Some(1_790_000_000_123_456_789), of_text("1790000000.123456789"));
        assert_eq!(Some(-1_000_000_000), nanoseconds(&Value::Int(-1)));
        for none in [
            "yesterday",
            "",
            "20260921",
            "12345",
            "1790000000x",
            "2026-09-21 14:13:20 XYZ",
            "2026-09-21T14:13:20+99",
            "31/Feb/2026:14:13:20 +0000",
            "é",
            "1e300",
            "99999999999999999999",
        ] {
            assert_eq!(None, nanoseconds(&Value::text(none)), "{none}");
        }
        for none in [Value::Null, Value::Float(f64::NAN), Value::Float(1e300), Value::Map(Vec::new())] {
            assert_eq!(None, nanoseconds(&none), "{none:?}");
        }
    }

    #[test]
    fn a_time_can_be_an_object() {
        for json in [
            r#"{"seconds":1790000000,"nanos":125000000}"#,
            r#"{"seconds":"1790000000","nanos":125000000}"#,
            r#"{"epochSecond":1790000000,"nanoOfSecond":125000000}"#,
            r#"{"$date":"2026-09-21T14:13:20.125Z"}"#,
        ] {
            assert_eq!(EXPECTED, nanoseconds(&serde_json::from_str(json).unwrap()), "{json}");
        }
        assert_eq!(Some(5_000_000_000), nanoseconds(&serde_json::from_str(r#"{"seconds":5}"#).unwrap()));
        assert_eq!(None, nanoseconds(&serde_json::from_str(r#"{"seconds":"x"}"#).unwrap()));
    }
}
