//! The table of known senders of JSON objects: what a sender means by names that others use otherwise.
//!
//! A sender is known by the keys of its objects. `shapes/samples.rs` has an object of each sender.

use super::levels::Scale;
use super::parts::Part;
use crate::value::Value;

#[cfg(test)]
mod samples;

/// A set of keys that an object has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u32);

impl Marks {
    /// Adds the keys of another set.
    pub fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A sender.
#[derive(Debug)]
pub struct Shape {
    /// Its name in the samples.
    pub name: &'static str,
    /// Keys that its objects have.
    marks: Marks,
    /// The scale of its level numbers.
    pub scale: Option<Scale>,
    /// The level of a record without one.
    pub level: u16,
    /// The parts by their names. They go before the usual names of `parts.rs`.
    pub keys: &'static [(&'static str, Part)],
}

impl Shape {
    /// The part with this name.
    pub fn part(&self, name: &str) -> Option<Part> {
        self.keys.iter().find(|(key, _)| *key == name).map(|(_, part)| *part)
    }

    /// True if parts have names of values in this object.
    pub fn has_parts_inside(&self, name: &str) -> bool {
        self.keys.iter().any(|(key, _)| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
    }
}

const V: u32 = 1 << 0;
const PID: u32 = 1 << 1;
const HOSTNAME: u32 = 1 << 2;
const TIME_MS: u32 = 1 << 3;
const MSG: u32 = 1 << 4;
const UPPER_MESSAGE: u32 = 1 << 5;
const CLEF_TIME: u32 = 1 << 6;
const CLEF_TEXT: u32 = 1 << 7;
const LEVEL_NAME: u32 = 1 << 8;
const CHANNEL: u32 = 1 << 9;
const RECORD: u32 = 1 << 10;
const TEXT: u32 = 1 << 11;
const START_TIME: u32 = 1 << 12;
const CATEGORY: u32 = 1 << 13;
const SHORT_T: u32 = 1 << 14;
const SHORT_S: u32 = 1 << 15;
const SHORT_C: u32 = 1 << 16;
const TIME_NS: u32 = 1 << 17;
const FACILITY: u32 = 1 << 18;
const SEVERITY_CODE: u32 = 1 << 19;
const GOOGLE: u32 = 1 << 20;
const SEVERITY: u32 = 1 << 21;

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
    // A number below 8 can only be a severity of syslog.
    Mark { key: "severity", fits: |value| matches!(value, Value::Int(0..=7)), bit: SEVERITY },
];

const BUNYAN: u32 = V | PID | HOSTNAME;

/// All shapes. The first with all marks is used.
#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape {
        name: "logspool", marks: Marks(TIME_NS), scale: Some(Scale::Python), level: 0,
        keys: &[("time_ns", Part::Nanoseconds), ("fields", Part::Fields)],
    },
    // The names that journald and syslog-ng use.
    Shape {
        name: "journald", marks: Marks(UPPER_MESSAGE), scale: Some(Scale::Syslog), level: 0,
        keys: &[
            ("MESSAGE", Part::MessageBytes), ("PRIORITY", Part::Level), ("__REALTIME_TIMESTAMP", Part::Time),
            ("ISODATE", Part::Time), ("DATE", Part::Time), ("_HOSTNAME", Part::Host), ("HOST", Part::Host),
            ("SYSLOG_IDENTIFIER", Part::Logger), ("PROGRAM", Part::Logger), ("_PID", Part::Process),
            ("PID", Part::Process), ("_COMM", Part::ProcessName), ("CODE_FILE", Part::File),
            ("CODE_LINE", Part::Line), ("CODE_FUNC", Part::Function),
        ],
    },
    // Serilog and Seq: compact log event format.
    Shape {
        name: "clef", marks: Marks(CLEF_TIME), scale: None, level: 20,
        keys: &[
            ("@t", Part::Time), ("@m", Part::MessageText), ("@mt", Part::Template), ("@l", Part::Level),
            ("@x", Part::Exception), ("@tr", Part::TraceId), ("@sp", Part::SpanId), ("SourceContext", Part::Logger),
        ],
    },
    Shape {
        name: "clef", marks: Marks(CLEF_TEXT), scale: None, level: 20,
        keys: &[("@m", Part::MessageText), ("@mt", Part::Template), ("@l", Part::Level), ("@x", Part::Exception)],
    },
    // Python's loguru with `serialize=True`.
    Shape {
        name: "loguru", marks: Marks(RECORD | TEXT), scale: Some(Scale::Python), level: 0,
        keys: &[
            ("record.time", Part::Time), ("record.level.no", Part::PythonLevel), ("record.message", Part::Message),
            ("record.name", Part::Logger), ("record.function", Part::Function), ("record.line", Part::Line),
            ("record.file.path", Part::File), ("record.process.id", Part::Process),
            ("record.process.name", Part::ProcessName), ("record.thread.id", Part::Thread),
            ("record.thread.name", Part::ThreadName), ("record.extra", Part::Fields),
            ("record.file.name", Part::Repeated), ("record.module", Part::Repeated),
            ("record.level.icon", Part::Repeated), ("record.level.name", Part::Repeated),
            ("record.elapsed", Part::Repeated),
        ],
    },
    Shape {
        name: "log4js", marks: Marks(START_TIME | CATEGORY), scale: Some(Scale::Log4j), level: 0,
        keys: &[
            ("startTime", Part::Time), ("categoryName", Part::Logger), ("data", Part::Arguments),
            ("level.levelStr", Part::Level), ("level.level", Part::Repeated), ("level.colour", Part::Repeated),
            ("fileName", Part::File), ("lineNumber", Part::Line), ("functionName", Part::Function),
            ("callStack", Part::Stack),
        ],
    },
    Shape {
        name: "mongodb", marks: Marks(SHORT_T | SHORT_S | SHORT_C), scale: None, level: 0,
        keys: &[("t", Part::Time), ("s", Part::Level), ("c", Part::Logger), ("ctx", Part::ThreadName)],
    },
    Shape {
        name: "monolog", marks: Marks(LEVEL_NAME | CHANNEL), scale: Some(Scale::Monolog), level: 0,
        keys: &[("channel", Part::Logger), ("level_name", Part::Repeated)],
    },
    Shape {
        name: "google", marks: Marks(GOOGLE), scale: Some(Scale::Monolog), level: 0,
        keys: &[
            ("logging.googleapis.com/sourceLocation.file", Part::File),
            ("logging.googleapis.com/sourceLocation.line", Part::Line),
            ("logging.googleapis.com/sourceLocation.function", Part::Function),
        ],
    },
    Shape { name: "bunyan", marks: Marks(BUNYAN), scale: Some(Scale::Pino), level: 0, keys: &[] },
    Shape { name: "pino", marks: Marks(PID | HOSTNAME), scale: Some(Scale::Pino), level: 0, keys: &[] },
    Shape { name: "pino", marks: Marks(TIME_MS | MSG), scale: Some(Scale::Pino), level: 0, keys: &[] },
    Shape { name: "syslog", marks: Marks(FACILITY), scale: Some(Scale::Syslog), level: 0, keys: &[] },
    Shape { name: "syslog", marks: Marks(SEVERITY), scale: Some(Scale::Syslog), level: 0, keys: &[] },
    Shape {
        name: "syslog", marks: Marks(SEVERITY_CODE), scale: Some(Scale::Syslog), level: 0,
        keys: &[("syslog_severity", Part::Level), ("severity_code", Part::Level)],
    },
];

/// The sender of an object with these keys.
pub fn of(marks: Marks) -> Option<&'static Shape> {
    if marks == Marks::default() {
        return None;
    }
    SHAPES.iter().find(|shape| marks.has_all(shape.marks))
}
