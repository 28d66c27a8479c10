//! One JSON object per line, as the JSON formatters of many libraries write it.
//!
//! A line that is not quite JSON, as many programs write it, is read a second time, leniently.

use std::borrow::Cow;
use std::fmt;

use serde_json::error::Category;

use super::draft::Draft;
use super::lenient;
use crate::record::Record;
use crate::value::{self, Precision, Value};

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
    let mut draft = Draft::default();
    for (name, value) in pairs {
        draft.set(name, value);
    }
    draft.finish()
}

/// The pairs of an object. JSON with the usual faults is read leniently (`lenient.rs`).
///
/// # Errors
///
/// See [`read`].
pub fn object(line: &[u8]) -> Result<Vec<(Cow<'_, str>, Value<'_>)>, JsonLineError> {
    let value = match value::from_json(line, MAX_VALUES) {
        Ok((value, Precision::Exact)) => value,
        // A line that is cut off, or has too many values, cannot be mended.
        Err(error) if error.classify() != Category::Syntax => return Err(JsonLineError::Json(error)),
        strict => match (value::from_json(&lenient::rewritten(line), MAX_VALUES), strict) {
            (Ok((value, _)), _) => value.into_owned(),
            // The rewritten text has numbers as text, so it may have too many values where the line has not.
            (Err(_), Ok((value, _))) => value,
            // The position in the line as it was sent is of more use.
            (Err(_), Err(error)) => return Err(JsonLineError::Json(error)),
        },
    };
    match value {
        Value::Map(pairs) => Ok(pairs),
        _ => Err(JsonLineError::NotAnObject),
    }
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
        for line in ["", "{", "[1]", "12", "\"x\"", "{\"a\":1} trailing", "{\"a\":tru}"] {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
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
