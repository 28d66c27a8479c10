//! Reads the requests of `logging.handlers.HTTPHandler`: the attributes of a `LogRecord` as a form, each formatted by
//! `str`.
//!
//! The handler does not format the message. `msg` is the format string, and `args` is the `repr` of a tuple. Arguments
//! that are not empty are kept as a field. If another handler of the program has formatted the record before, the form
//! also has `message`. The message is then taken from it, without the field for the arguments.

use std::borrow::Cow;
use std::fmt;

use super::log_record;
use crate::record::Record;
use crate::value::Value;

/// The form has neither `msg` nor `levelno`, so it is not a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotARecord;

impl fmt::Display for NotARecord {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the form has none of the attributes of a log record (msg, levelno)")
    }
}

impl std::error::Error for NotARecord {}

/// Reads a query string or a body of `application/x-www-form-urlencoded`. Bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
///
/// The form is not a log record.
pub fn read(form: &[u8]) -> Result<Record<'_>, NotARecord> {
    let mut record = Record::default();
    let mut is_record = false;
    let mut message = None;
    for (name, value) in form_urlencoded::parse(form) {
        is_record |= matches!(&*name, "msg" | "levelno");
        if name == "message" {
            message = Some(value);
            continue;
        }
        let value = typed(&name, value);
        log_record::set(&mut record, name, value);
    }
    if let Some(message) = message {
        record.message = message;
        record.fields.retain(|(name, _)| name != "args");
    }
    if is_record { Ok(record) } else { Err(NotARecord) }
}

/// Converts an attribute to the type that it has in a `LogRecord`. Text that cannot be converted stays text.
fn typed<'a>(name: &str, text: Cow<'a, str>) -> Value<'a> {
    let typed = match (name, &*text) {
        ("args", "()") => Some(Value::Null),
        (
            "funcName" | "exc_info" | "exc_text" | "stack_info" | "taskName" | "threadName" | "processName" | "thread"
            | "process",
            "None",
        ) => Some(Value::Null),
        ("levelno" | "lineno" | "process" | "thread", digits) => digits.parse().ok().map(Value::Int),
        ("created", number) => number.parse().ok().map(Value::Float),
        _ => None,
    };
    typed.unwrap_or(Value::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form that CPython 3.12 sends for `log.warning("took %d ms", 5, extra={"user": "a&b"})`.
    const SENT: &str = "name=shop&msg=took+%25d+ms&args=%285%2C%29&levelname=WARNING&levelno=30\
        &pathname=%2Fsrv%2Fshop.py&filename=shop.py&module=shop&exc_info=None&exc_text=None&stack_info=None&lineno=7\
        &funcName=pay&created=1700000000.125&msecs=125.0&relativeCreated=12.5&thread=140000000000001\
        &threadName=MainThread&processName=MainProcess&process=4711&taskName=None&user=a%26b";

    #[test]
    fn a_form_from_python_is_read() {
        assert_eq!(
            serde_json::json!({
                "time_ns": 1_700_000_000_125_000_000_i64, "level": 30, "logger": "shop", "message": "took %d ms",
                "file": "/srv/shop.py", "line": 7, "function": "pay", "process": 4711, "process_name": "MainProcess",
                "thread": 140_000_000_000_001_i64, "thread_name": "MainThread",
                "fields": {"args": "(5,)", "user": "a&b"},
            }),
            serde_json::to_value(read(SENT.as_bytes()).unwrap()).unwrap()
        );
    }

    #[test]
    fn an_already_formatted_message_is_used() {
        let record = read(b"msg=took+%25d+ms&args=%285%2C%29&levelno=20&message=took+5+ms").unwrap();
        assert_eq!(("took 5 ms", 0), (&*record.message, record.fields.len()));
    }

    #[test]
    fn unfit_values_become_fields_and_other_forms_are_refused() {
        let record = read(b"msg=%FF&levelno=high&lineno=-1&created=nan&thread=x&process=1.5&args=()").unwrap();
        assert_eq!("\u{FFFD}", record.message);
        let names: Vec<_> = record.fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(vec!["levelno", "lineno", "created", "thread", "process"], names);
        for none in [&b""[..], b"a=b", b"\0\xFF&&&==", b"{}"] {
            assert_eq!(Err(NotARecord), read(none));
        }
    }
}
