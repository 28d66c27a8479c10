//! The times in the headers of syslog messages.
//!
//! A time without a year gets the year that brings it nearest to the arrival. A time without a zone is in the zone of
//! the arrival.

use chrono::format::{Parsed, StrftimeItems, parse_and_remainder};
use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, TimeZone};

use crate::decoders::{times, zone};

/// Forms with a name of the month. `%Y` is missing in the usual form.
const FORMS: &[&str] = &["%b %e %H:%M:%S%.f", "%b %e %Y %H:%M:%S%.f", "%Y %b %e %H:%M:%S%.f"];

/// Number of years before the arrival in which a 29 February is searched. There may be eight years between two.
const LEAP_YEARS: i32 = 8;

/// Reads the time at the start of an older message (RFC 3164). Returns also the text after it.
pub(super) fn older(text: &str, arrived: DateTime<FixedOffset>) -> Option<(DateTime<FixedOffset>, &str)> {
    let word = text.split(' ').next().unwrap_or_default();
    let has_zone = || word.ends_with(['Z', 'z']) || word.rfind(['+', '-']).is_some_and(|at| at > 10);
    // These checks are faster than searching for a month in each text that has no header.
    if word.len() > 16 && word.as_bytes()[0].is_ascii_digit() && has_zone() {
        return local(word).map(|time| (time, &text[word.len()..]));
    }
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) && !is_year(word) {
        return None;
    }
    let (time, rest) = FORMS.iter().find_map(|form| with_month(text, form, arrived))?;
    let (zone, rest) = zone(rest, *arrived.offset());
    Some((zone.from_local_datetime(&time).single()?, rest))
}

/// Reads the time of a message with a version (RFC 5424) in forms that the standard does not allow: a space in place
/// of `T`, a comma, an offset without a colon, no zone, or seconds since 1970 (Meraki). Returns also the text after it.
pub(super) fn newer(text: &str, arrived: DateTime<FixedOffset>) -> Option<(DateTime<FixedOffset>, &str)> {
    // Date, time of day and zone may be separate words.
    let ends = || text.match_indices(' ').map(|(at, _)| at).take(3);
    let with_zone = ends().find_map(|end| Some((local(&text[..end])?, end)));
    let without = || {
        ends().find_map(|end| {
            let text = text[..end].replacen(' ', "T", 1).replacen(',', ".", 1);
            let time = NaiveDateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
            Some((arrived.offset().from_local_datetime(&time).single()?, end))
        })
    };
    let since_1970 = || {
        let end = ends().next()?;
        let time = times::of_digits(&text[..end]).filter(|_| text[..end].contains('.'))?;
        Some((DateTime::from_timestamp_nanos(time).fixed_offset(), end))
    };
    let (time, end) = with_zone.or_else(without).or_else(since_1970)?;
    Some((time, &text[end..]))
}

/// A time with a zone.
fn local(word: &str) -> Option<DateTime<FixedOffset>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(word) {
        return Some(time);
    }
    let zone = word.rfind(['+', '-']).filter(|at| *at > 10).unwrap_or(word.trim_end_matches(['Z', 'z']).len());
    let offset = FixedOffset::east_opt(zone::offset_seconds(&word[zone..])?)?;
    Some(DateTime::from_timestamp_nanos(times::of_text(word)?).with_timezone(&offset))
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn with_month<'t>(text: &'t str, form: &str, arrived: DateTime<FixedOffset>) -> Option<(NaiveDateTime, &'t str)> {
    let mut parsed = Parsed::new();
    let rest = parse_and_remainder(&mut parsed, text, StrftimeItems::new(form)).ok()?;
    if parsed.year().is_none() {
        let (month, day) = (parsed.month()?, parsed.day()?);
        parsed.set_year(year_of(month, day, arrived)?.into()).ok()?;
    }
    Some((parsed.to_naive_datetime_with_offset(0).ok()?, rest))
}

/// The year of a date: the year that puts it within half a year of `arrived`. A date that this year does not have is of
/// the last year that has it.
fn year_of(month: u32, day: u32, arrived: DateTime<FixedOffset>) -> Option<i32> {
    let nearest = match i64::from(month) - i64::from(arrived.month()) {
        7.. => arrived.year() - 1,
        ..=-7 => arrived.year() + 1,
        _ => arrived.year(),
    };
    (0..=LEAP_YEARS).map(|years| nearest - years).find(|year| NaiveDate::from_ymd_opt(*year, month, day).is_some())
}

/// The zone after a time, as Cisco writes it: ` UTC`. Else the zone is `otherwise`.
fn zone(rest: &str, otherwise: FixedOffset) -> (FixedOffset, &str) {
    let word = rest.strip_prefix(' ').unwrap_or_default();
    let length = word.find([' ', ':']).unwrap_or(word.len());
    let is_name = length >= 3 && word[..length].bytes().all(|byte| byte.is_ascii_uppercase());
    let seconds = is_name.then(|| zone::offset_seconds(&word[..length])).flatten();
    match seconds.and_then(FixedOffset::east_opt) {
        Some(zone) => (zone, &word[length..]),
        None => (otherwise, rest),
    }
}

/// The text that Cisco's systems send before the time: `29: `, `: `, `000031: router: `, then `*` or `.` if the clock is not
/// synchronised. Returns the name of the system and the text from the time on.
pub(super) fn without_counters(text: &str) -> Option<(Option<&str>, &str)> {
    let (mut host, mut rest, mut is_counted) = (None, text, false);
    for _ in 0..3 {
        let Some((word, after)) = rest.split_once(": ") else { break };
        if word.contains(' ') {
            break;
        }
        match word.bytes().all(|byte| byte.is_ascii_digit()) {
            true => is_counted = true,
            // A name is only between two counters.
            false if is_counted && host.is_none() => host = Some(word),
            false => return None,
        }
        rest = after;
    }
    let marked = rest.strip_prefix(['*', '.']).unwrap_or(rest);
    let is_cisco = is_counted || rest.len() < text.len() || marked.len() < rest.len();
    is_cisco.then_some((host, marked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_without_a_year_is_in_the_nearest_year_that_has_the_date() {
        let year = |month, day, arrived: &str| year_of(month, day, DateTime::parse_from_rfc3339(arrived).unwrap());
        for (month, day, arrived, expected) in [
            (12, 31, "2024-01-02T00:00:00Z", Some(2023)),
            (1, 1, "2023-12-31T00:00:00Z", Some(2024)),
            (2, 29, "2024-03-01T00:00:00Z", Some(2024)),
            (2, 29, "2026-11-22T00:00:00Z", Some(2024)),
            (2, 29, "2103-03-01T00:00:00Z", Some(2096)),
            (2, 30, "2026-11-22T00:00:00Z", None),
        ] {
            assert_eq!(expected, year(month, day, arrived), "{month}-{day} at {arrived}");
        }
    }
}
