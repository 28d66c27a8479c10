//! One JSON object per line, as the JSON formatters of many libraries write it.
//!
//! Each part of a record is known by all its usual names. If a line has several keys for one part, the first counts.
//! The other keys, and keys whose value does not fit, become fields.

use std::borrow::Cow;
use std::fmt;

use super::convert::{self, into_text};
use crate::record::Record;
use crate::value::{self, Value};

/// Reason why a line is not a record.
#[derive(Debug)]
pub enum JsonLineError {
    /// The line is not JSON.
    Json(serde_json::Error),
    /// The line is JSON, but not an object.
    NotAnObject,
}

/// Maximum number of JSON values in a line; keys count as well.
///
/// Chosen: three times the limit for a pickle, because lists of numbers are often sent as JSON. A line with this number
/// of values takes 2 MiB while it is decoded.
const MAX_VALUES: usize = 30_000;

impl fmt::Display for JsonLineError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(to, "the line is not JSON: {error}"),
            Self::NotAnObject => to.write_str("the line is not a JSON object"),
        }
    }
}

impl std::error::Error for JsonLineError {}

/// Reads one line.
///
/// # Errors
///
/// The line is not a JSON object, or is nested deeper than 128 (a limit of `serde_json`).
pub fn read(line: &[u8]) -> Result<Record<'_>, JsonLineError> {
    object(line).map(from_pairs)
}

/// Converts the pairs of an object to a record.
pub fn from_pairs<'a>(pairs: Vec<(Cow<'a, str>, Value<'a>)>) -> Record<'a> {
    let mut record = Record::default();
    let mut has = PartsSet::default();
    for (name, value) in pairs {
        if let Some((name, value)) = set(&mut record, &mut has, name, value) {
            record.fields.push((name, value));
        }
    }
    record
}

/// The pairs of an object.
pub fn object(line: &[u8]) -> Result<Vec<(Cow<'_, str>, Value<'_>)>, JsonLineError> {
    match value::from_json(line, MAX_VALUES).map_err(JsonLineError::Json)? {
        Value::Map(pairs) => Ok(pairs),
        _ => Err(JsonLineError::NotAnObject),
    }
}

/// Flags of parts that are already set. Only for parts whose value in the record does not show whether they are set.
#[derive(Default)]
pub(super) struct PartsSet {
    pub level: bool,
    pub logger: bool,
    pub message: bool,
}

/// Stores a value in the part of the record to which it belongs. Returns the pair if there is no such part.
pub(super) fn set<'a>(
    record: &mut Record<'a>,
    has: &mut PartsSet,
    name: Cow<'a, str>,
    value: Value<'a>,
) -> Option<(Cow<'a, str>, Value<'a>)> {
    match &*name {
        "time" | "timestamp" | "@timestamp" | "ts" | "created" | "asctime" if record.time_ns.is_none() => {
            record.time_ns = convert::nanoseconds(&value);
            // A time that cannot be parsed is kept as a field.
            return record.time_ns.is_none().then_some((name, value));
        }
        "level" | "levelname" | "severity" | "levelno" | "log.level" if !has.level && level(&value).is_some() => {
            record.level = level(&value).unwrap_or_default();
            has.level = true;
        }
        "line" | "lineno" if record.line.is_none() && convert::number::<u32>(&value).is_some() => {
            record.line = convert::number(&value);
        }
        "process" | "pid" if record.process.is_none() && convert::number::<u64>(&value).is_some() => {
            record.process = convert::number(&value);
        }
        "thread" if record.thread.is_none() && convert::number::<u64>(&value).is_some() => {
            record.thread = convert::number(&value);
        }
        "message" | "msg" | "event" if !has.message && matches!(value, Value::Text(_)) => {
            record.message = into_text(value);
            has.message = true;
        }
        "logger" | "name" | "logger_name" if !has.logger && matches!(value, Value::Text(_)) => {
            record.logger = into_text(value);
            has.logger = true;
        }
        other => {
            let Some(place) = text_of(record, other) else { return Some((name, value)) };
            if place.is_some() || !matches!(value, Value::Text(_)) {
                return Some((name, value));
            }
            *place = Some(into_text(value));
        }
    }
    None
}

/// The number of a level, from a number or a name.
fn level(value: &Value<'_>) -> Option<u16> {
    match value {
        Value::Text(text) => convert::level(text),
        _ => convert::number(value),
    }
}

/// The text part of the record that has the key `name`.
fn text_of<'r, 'a>(record: &'r mut Record<'a>, name: &str) -> Option<&'r mut Option<Cow<'a, str>>> {
    Some(match name {
        "file" | "pathname" | "filename" => &mut record.file,
        "function" | "funcName" | "func_name" => &mut record.function,
        "host" | "hostname" => &mut record.host,
        "process_name" | "processName" => &mut record.process_name,
        "thread_name" | "threadName" => &mut record.thread_name,
        "task" | "taskName" => &mut record.task,
        "trace_id" | "traceId" | "trace.id" | "dd.trace_id" | "otelTraceID" => &mut record.trace_id,
        "span_id" | "spanId" | "span.id" | "dd.span_id" | "otelSpanID" => &mut record.span_id,
        "exception" | "exc_info" | "exc_text" | "stack_trace" | "error.stack_trace" => &mut record.exception,
        "stack" | "stack_info" => &mut record.stack,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(line: &str) -> serde_json::Value {
        serde_json::to_value(read(line.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn lines_written_by_logspool_are_read() {
        let line = r#"{"time":"2023-11-14T22:13:20.125000Z","level":"WARNING","logger":"shop","message":"a \"b\"",
            "file":"cart.py","line":42,"function":"pay","exception":"Traceback","stack":"Stack","user":7}"#;

        assert_eq!(
            serde_json::json!({
                "time_ns": 1_700_000_000_125_000_000_i64, "level": 30, "logger": "shop", "message": "a \"b\"",
                "file": "cart.py", "line": 42, "function": "pay", "exception": "Traceback", "stack": "Stack",
                "fields": {"user": 7},
            }),
            json(line)
        );
    }

    #[test]
    fn the_usual_names_of_other_libraries_are_known() {
        let line = r#"{"@timestamp":1700000000125,"severity":"err","msg":"m","name":"n","pid":1,"thread":2,
            "hostname":"h","traceId":"t","dd.span_id":"s","threadName":"T","taskName":"k","processName":"p"}"#;

        assert_eq!(
            serde_json::json!({
                "time_ns": 1_700_000_000_125_000_000_i64, "level": 40, "logger": "n", "message": "m", "process": 1,
                "thread": 2, "host": "h", "trace_id": "t", "span_id": "s", "thread_name": "T", "task": "k",
                "process_name": "p",
            }),
            json(line)
        );
    }

    #[test]
    fn unfit_and_repeated_values_become_fields() {
        let line = r#"{"level":"loud","level":10,"time":"soon","message":5,"event":"e","msg":"second","line":"x",
            "pid":-1,"host":null,"big":18446744073709551615,"list":[1.5,{"a":true}]}"#;

        assert_eq!(
            serde_json::json!({
                "level": 10, "logger": "", "message": "e",
                "fields": {
                    "level": "loud", "time": "soon", "message": 5, "msg": "second", "line": "x", "pid": -1, "host": null,
                    "big": "18446744073709551615", "list": [1.5, {"a": true}],
                },
            }),
            json(line)
        );
    }

    #[test]
    fn a_line_that_is_not_an_object_is_an_error_with_the_position() {
        for line in ["", "{", "[1]", "12", "\"x\"", "{\"a\":1} trailing", "{\"a\":\"\u{1}\"}"] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
        assert!(read(b"{\"a\":\"\xFF\"}").is_err());
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
        assert_eq!("the line is not a JSON object", read(b"[]").unwrap_err().to_string());
        assert_eq!(
            "the line is not JSON: EOF while parsing an object at line 1 column 1",
            read(b"{").unwrap_err().to_string()
        );
    }

    #[test]
    fn text_is_borrowed_where_it_can_be() {
        let record = read(br#"{"message":"plain","logger":"esc\n"}"#).unwrap();
        assert!(matches!(record.message, Cow::Borrowed("plain")));
        assert!(matches!(record.logger, Cow::Owned(_)));
    }
}
