//! The names under which senders send the parts of a record.
//!
//! A name of an inner object has the names of the outer ones before it, with dots: `log.level`.

use std::sync::LazyLock;

use super::marks::{MARKS, Mark};

/// A part of a record, and how its value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The time of logging.
    Time,
    /// The time in nanoseconds. It replaces a time that was read from text.
    Nanoseconds,
    /// A level: a name, or a number on the scale of the sender.
    Level,
    /// A number on Python's scale.
    PythonLevel,
    /// A number on the scale of OpenTelemetry.
    OtelLevel,
    /// The name of the logger.
    Logger,
    /// The message. A value that is no text is shown as text.
    Message,
    /// The message, if it is text.
    MessageText,
    /// A line of output with its line end: the message.
    OutputLine,
    /// A message that is text, or a list of bytes.
    MessageBytes,
    /// A message with `{Name}` for values, used if there is no message.
    Template,
    /// The arguments of a call of `console.log`.
    Arguments,
    /// Source file.
    File,
    /// Source line.
    Line,
    /// Function.
    Function,
    /// `FILE:LINE`.
    Caller,
    /// Machine.
    Host,
    /// Process id.
    Process,
    /// Process name.
    ProcessName,
    /// Thread id, or its name.
    Thread,
    /// Thread name.
    ThreadName,
    /// Task.
    Task,
    /// Trace id.
    TraceId,
    /// Span id.
    SpanId,
    /// An exception with its traceback.
    Exception,
    /// A stack.
    Stack,
    /// An object whose pairs are fields.
    Fields,
    /// Repeats another part.
    Repeated,
}

/// The usual names. Rows of one part are tried in the order of the record's values, not of this table.
#[rustfmt::skip]
const NAMES: &[(&str, Part)] = &[
    ("time", Part::Time),
    ("timestamp", Part::Time),
    ("@timestamp", Part::Time),
    ("ts", Part::Time),
    ("created", Part::Time),
    ("instant", Part::Time),
    ("timeMillis", Part::Time),
    ("level", Part::Level),
    ("levelname", Part::Level),
    ("severity", Part::Level),
    ("log.level", Part::Level),
    ("@level", Part::Level),
    ("error_severity", Part::Level),
    ("severityText", Part::Level),
    ("severity_text", Part::Level),
    ("levelno", Part::PythonLevel),
    ("severity_number", Part::OtelLevel),
    ("severityNumber", Part::OtelLevel),
    ("SeverityNumber", Part::OtelLevel),
    ("logger", Part::Logger),
    ("name", Part::Logger),
    ("logger_name", Part::Logger),
    ("loggerName", Part::Logger),
    ("log.logger", Part::Logger),
    ("@module", Part::Logger),
    ("sys_name", Part::Logger),
    ("message", Part::Message),
    ("msg", Part::Message),
    ("event", Part::MessageText),
    ("@message", Part::MessageText),
    ("file", Part::File),
    ("pathname", Part::File),
    ("filename", Part::File),
    ("log.origin.file.name", Part::File),
    ("source.file", Part::File),
    ("line", Part::Line),
    ("lineno", Part::Line),
    ("log.origin.file.line", Part::Line),
    ("source.line", Part::Line),
    ("function", Part::Function),
    ("funcName", Part::Function),
    ("func_name", Part::Function),
    ("log.origin.function", Part::Function),
    ("source.function", Part::Function),
    ("caller", Part::Caller),
    ("@caller", Part::Caller),
    ("host", Part::Host),
    ("hostname", Part::Host),
    ("host.name", Part::Host),
    ("host.hostname", Part::Host),
    ("sys_host", Part::Host),
    ("process", Part::Process),
    ("pid", Part::Process),
    ("process.pid", Part::Process),
    ("process_name", Part::ProcessName),
    ("processName", Part::ProcessName),
    ("process.name", Part::ProcessName),
    ("thread", Part::Thread),
    ("threadId", Part::Thread),
    ("process.thread.id", Part::Thread),
    ("thread_name", Part::ThreadName),
    ("threadName", Part::ThreadName),
    ("process.thread.name", Part::ThreadName),
    ("task", Part::Task),
    ("taskName", Part::Task),
    ("trace_id", Part::TraceId),
    ("traceId", Part::TraceId),
    ("trace.id", Part::TraceId),
    ("dd.trace_id", Part::TraceId),
    ("otelTraceID", Part::TraceId),
    ("logging.googleapis.com/trace", Part::TraceId),
    ("span_id", Part::SpanId),
    ("spanId", Part::SpanId),
    ("span.id", Part::SpanId),
    ("dd.span_id", Part::SpanId),
    ("otelSpanID", Part::SpanId),
    ("logging.googleapis.com/spanId", Part::SpanId),
    ("exception", Part::Exception),
    ("exc_info", Part::Exception),
    ("exc_text", Part::Exception),
    ("stack_trace", Part::Exception),
    ("error.stack_trace", Part::Exception),
    ("err.stack", Part::Exception),
    ("error.stack", Part::Exception),
    ("thrown.extendedStackTrace", Part::Exception),
    ("stack", Part::Stack),
    ("stack_info", Part::Stack),
    ("stacktrace", Part::Stack),
];

/// Objects that have parts inside.
const OUTER: &[&str] = &[
    "log",
    "log.origin",
    "log.origin.file",
    "host",
    "process",
    "process.thread",
    "trace",
    "span",
    "error",
    "err",
    "source",
    "thrown",
];

/// The facts about a name.
#[derive(Debug)]
pub struct KnownName {
    name: &'static str,
    /// The part that it gives.
    pub part: Option<Part>,
    /// The hint about the sender.
    pub mark: Option<&'static Mark>,
    /// True if parts have names of values in this object.
    pub has_parts_inside: bool,
}

/// Number of groups of names. Chosen: most groups have no or one name, and most fields have none of these names.
const GROUPS: usize = 256;

/// All known names, in groups by [`group`].
static KNOWN: LazyLock<Vec<Vec<KnownName>>> = LazyLock::new(|| {
    let mut groups: Vec<Vec<KnownName>> = Vec::new();
    groups.resize_with(GROUPS, Vec::new);
    let names = NAMES.iter().map(|(name, _)| *name).chain(OUTER.iter().copied());
    for name in names.chain(MARKS.iter().map(|mark| mark.key)) {
        let known = &mut groups[group(name)];
        if known.iter().all(|other| other.name != name) {
            known.push(KnownName {
                name,
                part: NAMES.iter().find(|(other, _)| *other == name).map(|(_, part)| *part),
                mark: MARKS.iter().find(|mark| mark.key == name),
                has_parts_inside: OUTER.contains(&name),
            });
        }
    }
    groups
});

/// The facts about this name. A search through all names would take as long as parsing the value.
pub fn known(name: &str) -> Option<&'static KnownName> {
    KNOWN[group(name)].iter().find(|known| known.name == name)
}

fn group(name: &str) -> usize {
    let bytes = name.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().map_or(0, usize::from);
    (bytes.len() + byte(0) * 7 + byte(bytes.len() / 2) * 31) % GROUPS
}

/// Names that also occur as names of other values. They are used only if no other name gives the part.
pub const WEAK: &[(&str, Part)] = &[
    // Docker, and collectors that read files.
    ("log", Part::OutputLine),
    ("_msg", Part::MessageText),
    // Python's formatted time has no zone; other times of a record have one.
    ("asctime", Part::Time),
    ("date", Part::Time),
    ("datetime", Part::Time),
    ("_time", Part::Time),
];
