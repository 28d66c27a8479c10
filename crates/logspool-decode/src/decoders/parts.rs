//! The names under which senders send the parts of a record.
//!
//! A name of an inner object has the names of the outer ones before it, with dots: `log.level`.

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

/// The part with this name; `None`: the value is a field.
pub fn of(name: &str) -> Option<Part> {
    Some(match name {
        "time" | "timestamp" | "@timestamp" | "ts" | "created" | "asctime" | "instant" | "timeMillis" => Part::Time,
        "level" | "levelname" | "severity" | "log.level" | "@level" | "error_severity" | "severityText"
        | "severity_text" => Part::Level,
        "levelno" => Part::PythonLevel,
        "severity_number" | "severityNumber" | "SeverityNumber" => Part::OtelLevel,
        "logger" | "name" | "logger_name" | "loggerName" | "log.logger" | "@module" | "sys_name" => Part::Logger,
        "message" | "msg" => Part::Message,
        "event" | "@message" => Part::MessageText,
        "file" | "pathname" | "filename" | "log.origin.file.name" | "source.file" => Part::File,
        "line" | "lineno" | "log.origin.file.line" | "source.line" => Part::Line,
        "function" | "funcName" | "func_name" | "log.origin.function" | "source.function" => Part::Function,
        "caller" | "@caller" => Part::Caller,
        "host" | "hostname" | "host.name" | "host.hostname" | "sys_host" => Part::Host,
        "process" | "pid" | "process.pid" => Part::Process,
        "process_name" | "processName" | "process.name" => Part::ProcessName,
        "thread" | "threadId" | "process.thread.id" => Part::Thread,
        "thread_name" | "threadName" | "process.thread.name" => Part::ThreadName,
        "task" | "taskName" => Part::Task,
        "trace_id" | "traceId" | "trace.id" | "dd.trace_id" | "otelTraceID" | "logging.googleapis.com/trace" => {
            Part::TraceId
        }
        "span_id" | "spanId" | "span.id" | "dd.span_id" | "otelSpanID" | "logging.googleapis.com/spanId" => {
            Part::SpanId
        }
        "exception"
        | "exc_info"
        | "exc_text"
        | "stack_trace"
        | "error.stack_trace"
        | "err.stack"
        | "error.stack"
        | "thrown.extendedStackTrace" => Part::Exception,
        "stack" | "stack_info" | "stacktrace" => Part::Stack,
        _ => return None,
    })
}

/// True if parts have names of values in this object.
pub fn has_parts_inside(name: &str) -> bool {
    matches!(
        name,
        "log"
            | "log.origin"
            | "log.origin.file"
            | "host"
            | "process"
            | "process.thread"
            | "trace"
            | "span"
            | "error"
            | "err"
            | "source"
            | "thrown"
    )
}

/// Names that also occur as names of other values. They are used only if no other name gives the part.
pub const WEAK: &[(&str, Part)] = &[
    // Docker, and collectors that read files.
    ("log", Part::OutputLine),
    ("_msg", Part::MessageText),
    ("date", Part::Time),
    ("datetime", Part::Time),
    ("_time", Part::Time),
];
