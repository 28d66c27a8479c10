//! Time zones: a fixed offset, or a zone of the time zone database with its summer times.

use chrono::{DateTime, FixedOffset, LocalResult, NaiveDateTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

/// Zones with one meaning in logs, in hours: from RFC 2822, and of other countries.
const ZONES: &[(&str, i32)] = &[
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("WET", 0),
    ("WEST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("JST", 9),
    ("KST", 9),
    ("HKT", 8),
    ("SGT", 8),
    ("AWST", 8),
    ("AEST", 10),
    ("AEDT", 11),
    ("NZST", 12),
    ("NZDT", 13),
    ("SAST", 2),
    ("BRT", -3),
    ("AKST", -9),
    ("AKDT", -8),
    ("HST", -10),
];

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Always the same offset from UTC.
    Fixed(FixedOffset),
    /// A zone of the database.
    Named(Tz),
}

impl Zone {
    /// The zone with this name: `Europe/Berlin`, `UTC`, `+02:00`. Names of the database go first, because they have
    /// summer times.
    pub fn by_name(name: &str) -> Option<Self> {
        if let Ok(zone) = name.parse() {
            return Some(Self::Named(zone));
        }
        FixedOffset::east_opt(offset_seconds(name)?).map(Self::Fixed)
    }

    /// The name as [`Self::by_name`] reads it.
    pub fn name(self) -> String {
        match self {
            Self::Fixed(offset) => offset.to_string(),
            Self::Named(zone) => zone.name().to_owned(),
        }
    }

    /// The current time, with the offset that the zone has now.
    pub fn now(self) -> DateTime<FixedOffset> {
        let now = Utc::now();
        now.with_timezone(&match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => zone.offset_from_utc_datetime(&now.naive_utc()).fix(),
        })
    }

    /// The offset from UTC in seconds at a time of this zone. A time that clocks show twice is the first one. A time
    /// that they skip has the offset from before.
    pub fn offset_at(self, local: NaiveDateTime) -> i32 {
        let offset = match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => match zone.offset_from_local_datetime(&local) {
                LocalResult::Single(offset) | LocalResult::Ambiguous(offset, _) => offset.fix(),
                // No zone has ever skipped more than a day.
                LocalResult::None => zone.offset_from_utc_datetime(&(local - TimeDelta::days(1))).fix(),
            },
        };
        offset.local_minus_utc()
    }

    /// Converts nanoseconds of this zone's clock, counted as if the clock showed UTC, to nanoseconds since 1970.
    pub fn to_utc(self, local_ns: i64) -> i64 {
        let local = DateTime::from_timestamp_nanos(local_ns).naive_utc();
        local_ns.saturating_sub(i64::from(self.offset_at(local)) * 1_000_000_000)
    }
}

/// The offset of a zone from UTC in seconds: `Z`, `+0200`, `+02:00`, `+02`, or a name. A name in brackets may follow,
/// as Java writes it.
pub fn offset_seconds(zone: &str) -> Option<i32> {
    let zone = zone.split_once('[').map_or(zone, |(zone, _)| zone).trim();
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    if let Some((_, hours)) = ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(zone)) {
        return Some(hours * 3600);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: String = zone[1..].chars().filter(|character| *character != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at_checked(2)?,
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(zone: &str, local: &str) -> i32 {
        let local = NaiveDateTime::parse_from_str(local, "%Y-%m-%d %H:%M").unwrap();
        Zone::by_name(zone).unwrap().offset_at(local) / 3600
    }

    #[test]
    fn a_zone_has_its_summer_time() {
        assert_eq!(2, hours("Europe/Berlin", "2026-09-21 14:00"));
        assert_eq!(1, hours("Europe/Berlin", "2026-12-21 14:00"));
        assert_eq!(-3, hours("America/Sao_Paulo", "2026-12-21 14:00"));
        assert_eq!(9, hours("JST", "2026-09-21 14:00"));
        // Shown twice, and skipped.
        assert_eq!(2, hours("Europe/Berlin", "2026-10-25 02:30"));
        assert_eq!(1, hours("Europe/Berlin", "2026-03-29 02:30"));
    }

    #[test]
    fn a_zone_is_read_by_its_name() {
        for name in ["Europe/Berlin", "UTC", "+02:00", "-03:30"] {
            assert_eq!(name, Zone::by_name(name).unwrap().name());
        }
        assert_eq!("+00:00", Zone::by_name("Z").unwrap().name());
        for name in ["", "Europe/Bielefeld", "+25:00", "summer"] {
            assert_eq!(None, Zone::by_name(name), "{name}");
        }
        assert_eq!(1_790_000_000_000_000_000, Zone::by_name("+02:00").unwrap().to_utc(1_790_007_200_000_000_000));
    }
}
