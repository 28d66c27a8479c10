//! Keys by which the senders of JSON objects are known: one bit for each.

use crate::value::Value;

/// A set of keys that an object has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(pub(super) u32);

impl Marks {
    /// Adds the keys of another set.
    pub fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// True if the set has one of the keys of another set.
    pub fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set has all keys of another set.
    pub fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

pub(super) const V: u32 = 1 << 0;
pub(super) const PID: u32 = 1 << 1;
pub(super) const HOSTNAME: u32 = 1 << 2;
pub(super) const TIME_MS: u32 = 1 << 3;
pub(super) const MSG: u32 = 1 << 4;
pub(super) const UPPER_MESSAGE: u32 = 1 << 5;
pub(super) const CLEF_TIME: u32 = 1 << 6;
pub(super) const CLEF_TEXT: u32 = 1 << 7;
pub(super) const LEVEL_NAME: u32 = 1 << 8;
pub(super) const CHANNEL: u32 = 1 << 9;
pub(super) const RECORD: u32 = 1 << 10;
pub(super) const TEXT: u32 = 1 << 11;
pub(super) const START_TIME: u32 = 1 << 12;
pub(super) const CATEGORY: u32 = 1 << 13;
pub(super) const SHORT_T: u32 = 1 << 14;
pub(super) const SHORT_S: u32 = 1 << 15;
pub(super) const SHORT_C: u32 = 1 << 16;
pub(super) const TIME_NS: u32 = 1 << 17;
pub(super) const FACILITY: u32 = 1 << 18;
pub(super) const SEVERITY_CODE: u32 = 1 << 19;
pub(super) const GOOGLE: u32 = 1 << 20;
pub(super) const SEVERITY: u32 = 1 << 21;
pub(super) const LOGSTASH: u32 = 1 << 22;
pub(super) const EXTRA: u32 = 1 << 23;
pub(super) const STREAM: u32 = 1 << 24;
pub(super) const PART: u32 = 1 << 25;
pub(super) const CONTAINER: u32 = 1 << 26;

/// A key that says something about the sender.
#[derive(Debug)]
pub struct Mark {
    /// The key.
    pub key: &'static str,
    fits: fn(&Value<'_>) -> bool,
    bit: u32,
}

impl Mark {
    /// The mark, if the key has a fitting value.
    pub fn of(&self, value: &Value<'_>) -> Marks {
        Marks(if (self.fits)(value) { self.bit } else { 0 })
    }
}

/// All keys that say something about the sender.
#[rustfmt::skip]
pub const MARKS: &[Mark] = &[
    Mark { key: "v", fits: |value| matches!(value, Value::Int(_)), bit: V },
    Mark { key: "pid", fits: |value| matches!(value, Value::Int(_)), bit: PID },
    Mark { key: "hostname", fits: |value| matches!(value, Value::Text(_)), bit: HOSTNAME },
    // Milliseconds.
    Mark { key: "time", fits: |value| matches!(value, Value::Int(100_000_000_000..)), bit: TIME_MS },
    Mark { key: "msg", fits: |value| matches!(value, Value::Text(_)), bit: MSG },
    Mark { key: "MESSAGE", fits: |_| true, bit: UPPER_MESSAGE },
    Mark { key: "@t", fits: |_| true, bit: CLEF_TIME },
    Mark { key: "@m", fits: |_| true, bit: CLEF_TEXT },
    Mark { key: "@mt", fits: |_| true, bit: CLEF_TEXT },
    Mark { key: "level_name", fits: |value| matches!(value, Value::Text(_)), bit: LEVEL_NAME },
    Mark { key: "channel", fits: |value| matches!(value, Value::Text(_)), bit: CHANNEL },
    Mark { key: "record", fits: |value| matches!(value, Value::Map(_)), bit: RECORD },
    Mark { key: "text", fits: |value| matches!(value, Value::Text(_)), bit: TEXT },
    Mark { key: "startTime", fits: |_| true, bit: START_TIME },
    Mark { key: "categoryName", fits: |value| matches!(value, Value::Text(_)), bit: CATEGORY },
    Mark { key: "t", fits: |value| matches!(value, Value::Map(_)), bit: SHORT_T },
    Mark { key: "s", fits: |value| matches!(value, Value::Text(_)), bit: SHORT_S },
    Mark { key: "c", fits: |value| matches!(value, Value::Text(_)), bit: SHORT_C },
    Mark { key: "time_ns", fits: |value| matches!(value, Value::Int(_)), bit: TIME_NS },
    Mark { key: "facility", fits: |_| true, bit: FACILITY },
    Mark { key: "syslog_facility", fits: |_| true, bit: FACILITY },
    Mark { key: "log.syslog.facility.code", fits: |_| true, bit: FACILITY },
    Mark { key: "syslog_severity", fits: |value| matches!(value, Value::Int(_)), bit: SEVERITY_CODE },
    Mark { key: "severity_code", fits: |value| matches!(value, Value::Int(_)), bit: SEVERITY_CODE },
    Mark { key: "logging.googleapis.com/sourceLocation", fits: |_| true, bit: GOOGLE },
    Mark { key: "logging.googleapis.com/labels", fits: |_| true, bit: GOOGLE },
    Mark { key: "@version", fits: |_| true, bit: LOGSTASH },
    Mark { key: "extra", fits: |value| matches!(value, Value::Map(_)), bit: EXTRA },
    // Docker and containerd: see `line_parts.rs`.
    Mark { key: "stream", fits: |value| matches!(value, Value::Text(_)), bit: STREAM },
    Mark { key: "partial_message", fits: |_| true, bit: PART },
    Mark { key: "CONTAINER_PARTIAL_MESSAGE", fits: |_| true, bit: PART },
    Mark { key: "logtag", fits: |value| matches!(value, Value::Text(_)), bit: PART },
    Mark { key: "_p", fits: |value| matches!(value, Value::Text(_)), bit: PART },
    Mark { key: "container_id", fits: |value| matches!(value, Value::Text(_)), bit: CONTAINER },
    Mark { key: "CONTAINER_ID", fits: |value| matches!(value, Value::Text(_)), bit: CONTAINER },
    // A number below 8 can only be a severity of syslog.
    Mark { key: "severity", fits: |value| matches!(value, Value::Int(0..=7)), bit: SEVERITY },
];
