//! The payload of GELF 1.0 and 1.1: a JSON object whose additional fields begin with an underscore.
//!
//! The transport (UDP chunks and compression, NUL-terminated TCP) is not handled in this file; for UDP see
//! `gelf_chunks.rs`.

use std::borrow::Cow;

use super::draft::Draft;
use super::json_line::{self, JsonLineError};
use super::levels::Scale;
use super::parts::Part;
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
    let mut draft = Draft::default();
    draft.record.level = 20;
    draft.scale = Some(Scale::Syslog);
    let (mut short, mut full) = (None, None);
    for (name, value) in pairs {
        let unused = match (&*name, value) {
            ("version", _) => None,
            ("short_message", Value::Text(text)) => short.replace(text).map(Value::Text),
            ("full_message", Value::Text(text)) => full.replace(text).map(Value::Text),
            // graypy sends null in each message without a stack.
            ("_stack_info", Value::Null) => None,
            (_, value) => match part(&name) {
                Some(part) => draft.put(part, &name, value),
                None => Some(value),
            },
        };
        draft.record.fields.extend(unused.map(|value| (without_underscore(name), value)));
    }
    let mut record = draft.finish();
    // If both are given, the full message usually begins with the short one. Only the full message has a traceback.
    match (short, full) {
        (Some(short), Some(full)) => match full.strip_prefix(&*short) {
            Some("") => record.message = short,
            Some(rest) if rest.starts_with('\n') => {
                record.exception = Some(Cow::Owned(rest[1..].to_owned()));
                record.message = short;
            }
            // graypy and log4j2 send the traceback without the short message.
            _ if record.exception.is_none() && is_traceback(&full) => {
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

/// The part of a record with this name. Names of the specification have no underscore, all others have one.
fn part(name: &str) -> Option<Part> {
    Some(match name {
        "host" => Part::Host,
        "timestamp" => Part::Time,
        "level" => Part::Level,
        "facility" | "_logger" | "_logger_name" | "_loggerName" => Part::Logger,
        "line" | "_line" => Part::Line,
        "_pid" => Part::Process,
        "file" | "_file" => Part::File,
        "_function" => Part::Function,
        "_process_name" => Part::ProcessName,
        // log4j2 and logback
        "_thread" | "_thread_name" | "_threadName" => Part::Thread,
        "_stack_info" => Part::Stack,
        "_stack_trace" | "_stacktrace" | "_exc_info" => Part::Exception,
        "_trace_id" => Part::TraceId,
        "_span_id" => Part::SpanId,
        _ => return None,
    })
}

/// True if a text is the traceback of Python or Java.
fn is_traceback(text: &str) -> bool {
    text.starts_with("Traceback (most recent call last)") || text.contains("\n\tat ")
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
                "fields": {"user_id": 9001, "some_info": "foo", "some_env_var": "bar", "severity": "alert"},
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
