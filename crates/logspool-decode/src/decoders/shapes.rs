//! The table of known senders of JSON objects: the meaning of names that others use otherwise.
//!
//! A sender is known by the keys of its objects. `shapes/samples.rs` has an object of each sender.

use super::levels::Scale;
use super::marks::{
    CATEGORY, CHANNEL, CLEF_TEXT, CLEF_TIME, EXTRA, FACILITY, GOOGLE, HOSTNAME, LEVEL_NAME, LOGSTASH, MSG, Marks, PID,
    RECORD, SEVERITY, SEVERITY_CODE, SHORT_C, SHORT_S, SHORT_T, START_TIME, TEXT, TIME_MS, TIME_NS, UPPER_MESSAGE, V,
};
use super::parts::Part;
#[cfg(test)]
mod samples;

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

const BUNYAN: u32 = V | PID | HOSTNAME;

/// All shapes. The first with all marks is used.
#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape {
        name: "logspool", marks: Marks(TIME_NS), scale: Some(Scale::Python), level: 0,
        keys: &[
            ("time_ns", Part::Nanoseconds), ("fields", Part::Fields), ("arrived_ns", Part::Repeated),
            ("arrived", Part::Repeated), ("id", Part::Repeated),
        ],
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
    // Of Python.
    Shape {
        name: "python-logstash-async", marks: Marks(LOGSTASH | EXTRA), scale: Some(Scale::Python), level: 0,
        keys: &[
            ("extra", Part::Fields), ("extra.logger_name", Part::Logger), ("extra.path", Part::File),
            ("extra.line", Part::Line), ("extra.func_name", Part::Function), ("extra.thread_name", Part::ThreadName),
            ("extra.process_name", Part::ProcessName), ("extra.stack_trace", Part::Exception),
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
