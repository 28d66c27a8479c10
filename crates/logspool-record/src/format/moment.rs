//! Times of a LogRecord, computed from nanoseconds as each version of CPython does, and ISO 8601 for JSON.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). This file does not call libc. Text that depends on time zone or locale
//! is rendered in [`time`](super::time).

use super::integer::push_padded;
use super::spec::FormatSpec;
use crate::cpython::TimeArithmetic;

/// Nanoseconds in a second.
const NANOS: i64 = 1_000_000_000;

/// How times of a LogRecord are computed from nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordTimes {
    arithmetic: TimeArithmetic,
    start_time_ns: i64,
}

impl RecordTimes {
    /// The rules of `arithmetic`. `start_time_ns` is `logging._startTime`, in nanoseconds since the Unix epoch.
    pub const fn of(arithmetic: TimeArithmetic, start_time_ns: i64) -> Self {
        Self { arithmetic, start_time_ns }
    }

    pub(super) const fn new(spec: &FormatSpec) -> Self {
        Self::of(spec.cpython.arithmetic(), spec.start_time_ns)
    }

    /// `record.created`, in seconds: `time.time()`, or `time.time_ns() / 1e9`.
    #[inline]
    pub fn created(self, time_ns: i64) -> f64 {
        if self.arithmetic != TimeArithmetic::Nanoseconds && time_ns % NANOS == 0 {
            return (time_ns / NANOS) as f64;
        }
        time_ns as f64 / 1e9
    }

    /// `record.msecs`, in milliseconds. `created` is the result of [`Self::created`] for the same time.
    #[inline]
    pub fn msecs(self, time_ns: i64, created: f64) -> f64 {
        match self.arithmetic {
            TimeArithmetic::FloatFraction => (created - created.trunc()) * 1000.0,
            TimeArithmetic::FloatWhole => ((created - created.trunc()) * 1000.0).trunc() + 0.0,
            TimeArithmetic::Nanoseconds => {
                let whole = time_ns.rem_euclid(NANOS) / 1_000_000;
                let rounded_up = whole == 999 && created.trunc() as i64 != time_ns.div_euclid(NANOS);
                if rounded_up { 0.0 } else { whole as f64 }
            }
        }
    }

    /// `record.relativeCreated`, in milliseconds.
    pub fn relative_created(self, time_ns: i64) -> f64 {
        match self.arithmetic {
            TimeArithmetic::FloatFraction | TimeArithmetic::FloatWhole => {
                (self.created(time_ns) - self.created(self.start_time_ns)) * 1000.0
            }
            TimeArithmetic::Nanoseconds => {
                let elapsed = i128::from(time_ns) - i128::from(self.start_time_ns);
                elapsed as f64 / 1e6
            }
        }
    }
}

/// Rounds down to the second. `f64::floor` would be a function call, because the build assumes no processor instruction
/// for it.
#[inline]
pub(super) fn floor_second(created: f64) -> i64 {
    let whole = created as i64;
    if whole as f64 > created { whole - 1 } else { whole }
}

/// The text of the second that was rendered last.
#[derive(Debug, Clone, Default)]
pub(super) struct SecondCache {
    second: Option<i64>,
    text: Vec<u8>,
}

impl SecondCache {
    /// The text of `second`. `make` renders it if the cached text belongs to another second.
    #[inline]
    pub(super) fn text(&mut self, second: i64, make: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        if self.second != Some(second) {
            self.text.clear();
            make(&mut self.text);
            self.second = Some(second);
        }
        &self.text
    }

    /// Bytes of memory that the cache takes.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity()
    }

    pub(super) fn clear(&mut self) {
        self.second = None;
    }
}

/// The second and the microseconds of `datetime.fromtimestamp(created, utc)`.
#[inline(always)]
pub(super) fn iso_parts(created: f64) -> (i64, u32) {
    // Rounds as CPython's `_PyTime_DoubleToDenominator`, without `trunc` and `round_ties_even`: both are function
    // calls, because the build assumes no processor instructions for them.
    let mut whole = created as i64;
    let mut micros = round_ties_even((created - whole as f64) * 1e6);
    if micros >= 1_000_000 {
        micros -= 1_000_000;
        whole += 1;
    } else if micros < 0 {
        micros += 1_000_000;
        whole -= 1;
    }
    (whole, micros as u32)
}

/// Appends `datetime.fromtimestamp(created, utc)` as `YYYY-MM-DDTHH:MM:SS.ffffffZ`.
#[inline(always)]
pub(super) fn push_iso(created: f64, cache: &mut SecondCache, out: &mut Vec<u8>) {
    let (whole, mut left) = iso_parts(created);
    out.extend_from_slice(cache.text(whole, |text| push_civil(whole, text)));
    let mut digits = *b"000000Z";
    for digit in digits[..6].iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Appends a time as `datetime.isoformat` writes it in UTC, with `Z` as the zone: rounded down to microseconds, which
/// are left out if they are zero.
pub fn push_isoformat(time_ns: i64, out: &mut Vec<u8>) {
    push_civil(time_ns.div_euclid(NANOS), out);
    match time_ns.rem_euclid(NANOS) / 1_000 {
        0 => {
            out.pop();
        }
        micros => push_padded(out, micros as u64, 6),
    }
    out.push(b'Z');
}

/// Appends `datetime.fromtimestamp(created, utc).isoformat()`: `YYYY-MM-DDTHH:MM:SS.ffffff+00:00`, without the fraction
/// if it is 0.
pub(super) fn push_iso_offset(created: f64, cache: &mut SecondCache, out: &mut Vec<u8>) {
    push_iso(created, cache, out);
    let end = if out.ends_with(b".000000Z") { out.len() - b".000000Z".len() } else { out.len() - 1 };
    out.truncate(end);
    out.extend_from_slice(b"+00:00");
}

/// Rounds a number of magnitude below 2^51. It relies on floats between 2^52 and 2^53 having no digits after the point.
#[inline]
fn round_ties_even(number: f64) -> i64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let rounded = (number.abs() + WHOLE) - WHOLE;
    if number < 0.0 { -(rounded as i64) } else { rounded as i64 }
}

/// Appends a second of UTC as `YYYY-MM-DDTHH:MM:SS.`. The years of all times that fit `i64` nanoseconds have four
/// digits.
///
/// The date is computed by `civil_from_days` of Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(super) fn push_civil(second: i64, out: &mut Vec<u8>) {
    let days = second.div_euclid(86_400) + 719_468;
    let of_day = second.rem_euclid(86_400);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    for (number, digits, end) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (of_day / 3600, 2, b':'),
        (of_day / 60 % 60, 2, b':'),
        (of_day % 60, 2, b'.'),
    ] {
        push_padded(out, number.unsigned_abs(), digits);
        out.push(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_time_is_utc_with_microseconds() {
        for (text, created) in [
            ("1970-01-01T00:00:00.000000Z", 0.0),
            ("1969-12-31T23:59:59.500000Z", -0.5),
            ("2000-02-29T23:59:59.999999Z", 951_868_799.999_999),
            ("2026-07-25T12:34:56.123457Z", 1_784_982_896.123_456_7),
        ] {
            let mut out = Vec::new();
            push_iso(created, &mut SecondCache::default(), &mut out);

            assert_eq!(text, String::from_utf8(out).expect("ASCII"));
        }
    }

    #[test]
    fn isoformat_leaves_out_microseconds_that_are_zero() {
        for (time_ns, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_700_000_000_000_000_999, "2023-11-14T22:13:20Z"),
            (1_700_000_000_012_345_999, "2023-11-14T22:13:20.012345Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
        ] {
            let mut out = Vec::new();
            push_isoformat(time_ns, &mut out);

            assert_eq!(text, String::from_utf8(out).expect("ASCII"));
        }
    }

    #[test]
    fn iso_time_with_an_offset_leaves_out_a_fraction_of_zero() {
        for (text, created) in [
            ("1970-01-01T00:00:00+00:00", 0.0),
            ("1970-01-01T00:00:01.000001+00:00", 1.000_001),
            ("1970-01-01T00:00:02+00:00", 1.999_999_9),
        ] {
            let mut out = Vec::new();
            push_iso_offset(created, &mut SecondCache::default(), &mut out);

            assert_eq!(text, String::from_utf8(out).expect("ASCII"));
        }
    }

    #[test]
    fn seconds_are_rounded_down_before_the_epoch_too() {
        for (second, created) in [(0, 0.9), (1, 1.0), (-1, -0.1), (-1, -1.0), (-2, -1.5)] {
            assert_eq!(second, floor_second(created));
        }
    }
}
