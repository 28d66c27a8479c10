//! Reads the records of `logging.handlers.SocketHandler` and `DatagramHandler`: the attributes of a `LogRecord`,
//! pickled.
//!
//! `SocketHandler.makePickle` formats the message and drops the arguments. A handler that overrides `makePickle` may
//! keep the arguments. They then become the field `args`.

use std::borrow::Cow;
use std::fmt;

use super::convert::{self, into_text};
use super::pickle::{self, PickleError, PickleLimits};
use crate::record::Record;
use crate::value::Value;

/// Reason why a frame is not a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogRecordError {
    /// The frame is not a pickle.
    Pickle(PickleError),
    /// The frame is the pickle of something else.
    NotARecord,
}

impl fmt::Display for LogRecordError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pickle(error) => error.fmt(to),
            Self::NotARecord => to.write_str("the pickle is not a dict with the attributes of a log record"),
        }
    }
}

impl std::error::Error for LogRecordError {}

/// Reads one record, without the length of four bytes before it.
///
/// # Errors
///
/// The frame is not a record.
pub fn read(frame: &[u8], limits: PickleLimits) -> Result<Record<'_>, LogRecordError> {
    let mut found = PartialRecord::default();
    if pickle::flat::read(frame, limits, |name, value| found.take(Cow::Borrowed(name), value)).is_none() {
        found = PartialRecord::default();
        let pickle = pickle::read(frame, limits).map_err(LogRecordError::Pickle)?;
        for (name, value) in pickle.entries().ok_or(LogRecordError::NotARecord)? {
            found.take(name, value);
        }
    }
    if found.is_record { Ok(found.record) } else { Err(LogRecordError::NotARecord) }
}

#[derive(Default)]
struct PartialRecord<'a> {
    record: Record<'a>,
    is_record: bool,
}

impl<'a> PartialRecord<'a> {
    fn take(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        self.is_record |= matches!(&*name, "msg" | "levelno");
        set(&mut self.record, name, value);
    }
}

/// Stores an attribute in the part of the record to which it belongs. An attribute becomes a field if its type differs
/// from the type in `logging`.
pub(super) fn set<'a>(record: &mut Record<'a>, name: Cow<'a, str>, value: Value<'a>) {
    match (&*name, &value) {
        // These attributes have no information, or repeat other attributes.
        (
            "args" | "funcName" | "exc_info" | "exc_text" | "stack_info" | "taskName" | "threadName" | "processName"
            | "thread" | "process",
            Value::Null,
        )
        | ("levelname" | "filename" | "module" | "msecs" | "relativeCreated" | "asctime" | "message", _) => {}
        ("msg", Value::Text(_)) => record.message = into_text(value),
        ("msg", _) => record.message = Cow::Owned(value.printed()),
        ("name", Value::Text(_)) => record.logger = into_text(value),
        ("levelno", Value::Int(level)) => record.level = u16::try_from((*level).max(0)).unwrap_or(u16::MAX),
        ("created", _) if convert::seconds(&value).is_some() => record.time_ns = convert::seconds(&value),
        ("pathname", Value::Text(_)) => record.file = Some(into_text(value)),
        ("lineno", _) if convert::number::<u32>(&value).is_some() => record.line = convert::number(&value),
        ("funcName", Value::Text(_)) => record.function = Some(into_text(value)),
        ("process", _) if convert::number::<u64>(&value).is_some() => record.process = convert::number(&value),
        ("processName", Value::Text(_)) => record.process_name = Some(into_text(value)),
        ("thread", _) if convert::number::<u64>(&value).is_some() => record.thread = convert::number(&value),
        ("threadName", Value::Text(_)) => record.thread_name = Some(into_text(value)),
        ("taskName", Value::Text(_)) => record.task = Some(into_text(value)),
        ("exc_text", Value::Text(_)) => record.exception = Some(into_text(value)),
        ("stack_info", Value::Text(_)) => record.stack = Some(into_text(value)),
        ("hostname", Value::Text(_)) if record.host.is_none() => record.host = Some(into_text(value)),
        ("trace_id" | "otelTraceID", Value::Text(_)) => record.trace_id = Some(into_text(value)),
        ("span_id" | "otelSpanID", Value::Text(_)) => record.span_id = Some(into_text(value)),
        _ => record.fields.push((name, value)),
    }
}
