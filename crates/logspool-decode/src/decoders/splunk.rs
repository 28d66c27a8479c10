//! Events of Splunk's HTTP Event Collector: JSON objects one after the other, each with an `event` and values about it.

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use super::convert;
use super::json_line;
use crate::record::Record;
use crate::value::Value;

/// Reason why an event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventError {
    /// The event is not a JSON object.
    Format(String),
    /// The object has no key `event`.
    Missing,
    /// The event is an empty text.
    Blank,
}

impl fmt::Display for EventError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(why) => write!(to, "invalid data format: {why}"),
            Self::Missing => to.write_str("event field is required"),
            Self::Blank => to.write_str("event field cannot be blank"),
        }
    }
}

impl std::error::Error for EventError {}

/// Calls `each` with the text of each object. Objects may follow each other without white space.
///
/// # Errors
///
/// The bytes after the last object that `each` was called with are not JSON.
pub fn objects(body: &[u8], mut each: impl FnMut(&[u8])) -> Result<(), serde_json::Error> {
    for object in serde_json::Deserializer::from_slice(body).into_iter::<&RawValue>() {
        each(object?.get().as_bytes());
    }
    Ok(())
}

/// Reads an event with the values about it.
///
/// # Errors
///
/// The event is no event of Splunk.
pub fn read(object: &[u8]) -> Result<Record<'_>, EventError> {
    let pairs = json_line::object(object).map_err(|error| EventError::Format(error.to_string()))?;
    let (mut event, mut time, mut host, mut about) = (None, None, None, Vec::new());
    for (name, value) in pairs {
        match (&*name, value) {
            ("event", value) => event = Some(value),
            ("time", value) => time = Some(value),
            ("host", Value::Text(text)) => host = Some(text),
            ("fields", Value::Map(fields)) => about.extend(fields),
            (_, value) => about.push((name, value)),
        }
    }
    let mut record = match event {
        None | Some(Value::Null) => return Err(EventError::Missing),
        Some(Value::Text(text)) if text.is_empty() => return Err(EventError::Blank),
        Some(Value::Map(mut pairs)) => {
            // Docker's log driver calls the message `line`.
            let is_message = |name: &str| matches!(name, "message" | "msg" | "event");
            if !pairs.iter().any(|(name, _)| is_message(name))
                && let Some(line) =
                    pairs.iter_mut().find(|(name, value)| name == "line" && matches!(value, Value::Text(_)))
            {
                line.0 = Cow::Borrowed("message");
            }
            json_line::from_pairs(pairs)
        }
        Some(Value::Text(text)) => of_text(text),
        Some(other) => Record { message: Cow::Owned(other.printed()), ..Record::default() },
    };
    record.time_ns = time.as_ref().and_then(seconds).or(record.time_ns);
    record.host = host.or(record.host);
    for (name, value) in about {
        match (&*name, &value) {
            ("level" | "severity", Value::Text(level)) if record.level == 0 && convert::level(level).is_some() => {
                record.level = convert::level(level).unwrap_or_default();
            }
            _ => record.fields.push((name, value)),
        }
    }
    Ok(record)
}

/// Reads an event of text. Many handlers send a JSON line as text.
fn of_text(text: Cow<'_, str>) -> Record<'_> {
    match text {
        Cow::Borrowed(line) => match json_line::object(line.as_bytes()) {
            Ok(pairs) if !pairs.is_empty() => json_line::from_pairs(pairs),
            _ => Record { message: text, ..Record::default() },
        },
        Cow::Owned(line) => match json_line::read(line.as_bytes()).map(Record::into_owned) {
            Ok(record) if record != Record::default() => record,
            _ => Record { message: Cow::Owned(line), ..Record::default() },
        },
    }
}

/// A time in seconds, as a number or as text.
fn seconds(time: &Value<'_>) -> Option<i64> {
    match time {
        Value::Text(text) => match text.trim().parse::<f64>() {
            Ok(number) => convert::nanoseconds(&Value::Float(number)),
            Err(_) => convert::nanoseconds(time),
        },
        _ => convert::nanoseconds(time),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json_of(object: &str) -> serde_json::Value {
        serde_json::to_value(read(object.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn text_and_object_events_are_read_with_their_metadata() {
        assert_eq!(
            json!({"time_ns": 1_700_000_000_125_000_000_i64, "level": 0, "logger": "", "message": "hello", "host": "h",
                "fields": {"source": "s", "sourcetype": "t", "index": "main", "order": 7}}),
            json_of(
                r#"{"time":"1700000000.125","host":"h","source":"s","sourcetype":"t","index":"main","event":"hello",
                "fields":{"order":7}}"#
            )
        );
        assert_eq!(
            json!({"time_ns": 1_700_000_000_125_000_000_i64, "level": 40, "logger": "", "message": "m", "fields": {"a": 1}}),
            json_of(r#"{"time":1700000000.125,"event":{"severity":"error","message":"m","a":1}}"#)
        );
        assert_eq!(
            json!({"level": 0, "logger": "", "message": "a line", "fields": {"tag": "x"}}),
            json_of(r#"{"event":{"line":"a line","tag":"x"}}"#)
        );
        assert_eq!(
            json!({"level": 40, "logger": "", "message": "m \"x\""}),
            json_of(r#"{"event":"{\"message\":\"m \\\"x\\\"\",\"level\":\"ERROR\"}"}"#)
        );
    }

    #[test]
    fn objects_follow_each_other_with_or_without_space() {
        let mut found = Vec::new();
        objects(b"{\"event\":1}{\"event\":\"}{\"}\n\n {\"event\":2}", |object| found.push(object.to_vec())).unwrap();
        assert_eq!(3, found.len());
        assert_eq!(Err(EventError::Missing), read(b"{}").map(|_| ()));
        assert_eq!(Err(EventError::Blank), read(br#"{"event":""}"#).map(|_| ()));
        assert!(objects(b"{\"event\":1} oops", |_| {}).is_err());
    }
}
