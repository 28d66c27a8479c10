//! The current time, and times as text.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat};

/// The current time in nanoseconds since 1970-01-01 00:00 UTC.
pub fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Formats a time as RFC 3339 in UTC.
pub fn rfc3339(time_ns: i64, digits: SecondsFormat) -> String {
    DateTime::from_timestamp_nanos(time_ns).to_rfc3339_opts(digits, true)
}
