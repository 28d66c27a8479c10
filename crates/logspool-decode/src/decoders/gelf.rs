//! The payload of GELF 1.0 and 1.1: a JSON object whose additional fields begin with an underscore.
//!
//! The transport (UDP chunks and compression, NUL-terminated TCP) is not handled in this file; for UDP see
//! `gelf_chunks.rs`.

use std::borrow::Cow;

use super::convert::{self, into_text};
use super::json_line::{self, JsonLineError};
use crate::record::Record;
use crate::value::Value;

/// Reads one message.
///
/// # Errors
///
/// The message is not a JSON object.
pub fn read(message: &[u8]) -> Result<Record<'_>, JsonLineError> {
    json_line::object(message).map(from_pairs)
}

/// Converts the pairs of an object to a record.
pub fn from_pairs<'a>(pairs: Vec<(Cow<'a, str>, Value<'a>)>) -> Record<'a> {
    // In GELF 1.1 a missing level means 1, alert. No sender intends that. Like most servers, we use INFO.
    let mut record = Record { level: 20, ..Record::default() };
    let (mut short, mut full) = (None, None);
    for (name, value) in pairs {
        match (&*name, &value) {
            ("version", _) => {}
            ("host", Value::Text(_)) => record.host = Some(into_text(value)),
            ("short_message", Value::Text(_)) => short = Some(into_text(value)),
            ("full_message", Value::Text(_)) => full = Some(into_text(value)),
            ("timestamp", _) if record.time_ns.is_none() && convert::nanoseconds(&value).is_some() => {
                record.time_ns = convert::nanoseconds(&value);
            }
            ("level", Value::Int(severity)) if convert::level_of_severity(*severity).is_some() => {
                record.level = convert::level_of_severity(*severity).unwrap_or_default();
            }
            ("facility" | "_logger" | "_logger_name", Value::Text(_)) if record.logger.is_empty() => {
                record.logger = into_text(value);
            }
            ("line" | "_line", _) if record.line.is_none() && convert::number::<u32>(&value).is_some() => {
                record.line = convert::number(&value);
            }
            ("_pid", _) if record.process.is_none() && convert::number::<u64>(&value).is_some() => {
                record.process = convert::number(&value);
            }
            ("file" | "_file", Value::Text(_)) if record.file.is_none() => record.file = Some(into_text(value)),
            ("_function", Value::Text(_)) if record.function.is_none() => record.function = Some(into_text(value)),
            ("_process_name", Value::Text(_)) if record.process_name.is_none() => {
                record.process_name = Some(into_text(value));
            }
            ("_stack_info", Value::Text(_)) if record.stack.is_none() => record.stack = Some(into_text(value)),
            // graypy sends null in each message without a stack.
            ("_stack_info", Value::Null) => {}
            ("_thread_name", Value::Text(_)) if record.thread_name.is_none() => {
                record.thread_name = Some(into_text(value));
            }
            ("_trace_id", Value::Text(_)) if record.trace_id.is_none() => record.trace_id = Some(into_text(value)),
            ("_span_id", Value::Text(_)) if record.span_id.is_none() => record.span_id = Some(into_text(value)),
            _ => record.fields.push((without_underscore(name), value)),
        }
    }
    // If both are given, the full message begins with the short one. Only the full message has a traceback.
    match (short, full) {
        (Some(short), Some(full)) => match full.strip_prefix(&*short) {
            Some("") => record.message = short,
            Some(rest) if rest.starts_with('\n') => {
                record.exception = Some(Cow::Owned(rest[1..].to_owned()));
                record.message = short;
            }
            // graypy sends the traceback without the short message.
            _ if full.starts_with("Traceback (most recent call last)") => {
                record.message = short;
                record.exception = Some(full);
            }
            _ => {
                record.message = short;
                record.fields.push((Cow::Borrowed("full_message"), Value::Text(full)));
            }
        },
        (short, full) => record.message = short.or(full).unwrap_or_default(),
    }
    record
}

fn without_underscore(name: Cow<'_, str>) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix('_').unwrap_or(name)),
        Cow::Owned(name) => Cow::Owned(name.strip_prefix('_').map(str::to_owned).unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(message: &str) -> serde_json::Value {
        serde_json::to_value(read(message.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_message_of_the_specification_is_read() {
        let message = r#"{"version":"1.1","host":"example.org","short_message":"A short message",
            "full_message":"A short message\nBacktrace here\n\nmore stuff","timestamp":1385053862.3072,
            "level":1,"_user_id":9001,"_some_info":"foo","_some_env_var":"bar"}"#;

        assert_eq!(
            serde_json::json!({
                "time_ns": 1_385_053_862_307_200_000_i64, "level": 50, "logger": "", "message": "A short message",
                "host": "example.org", "exception": "Backtrace here\n\nmore stuff",
                "fields": {"user_id": 9001, "some_info": "foo", "some_env_var": "bar"},
            }),
            json(message)
        );
    }

    #[test]
    fn missing_and_odd_values_lose_nothing() {
        assert_eq!(serde_json::json!({"level": 20, "logger": "", "message": ""}), json("{}"));
        assert_eq!(
            serde_json::json!({
                "level": 20, "logger": "", "message": "short",
                "fields": {"level": "high", "full_message": "another text", "host": 5, "pid": -1},
            }),
            json(r#"{"short_message":"short","full_message":"another text","level":"high","host":5,"_pid":-1}"#)
        );
        assert!(read(b"no JSON").is_err());
    }
}
