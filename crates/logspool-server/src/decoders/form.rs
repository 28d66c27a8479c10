//! What `logging.handlers.HTTPHandler` sends: the attributes of a `LogRecord` as a form, each as `str` prints it.
//!
//! The handler does not put the arguments into the message: `msg` comes as it was written, and `args` as the `repr` of
//! a tuple, which is kept as a field where there are any.

use std::borrow::Cow;
use std::fmt;

use super::words;
use crate::record::Record;
use crate::value::Value;

/// A form without `msg` and `levelno`: it is no log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRecord;

impl fmt::Display for NoRecord {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the form has none of the attributes of a log record (msg, levelno)")
    }
}

impl std::error::Error for NoRecord {}

/// Reads a query or a body of `application/x-www-form-urlencoded`. Bytes that are no UTF-8 are shown as U+FFFD.
///
/// # Errors
///
/// It is no log record.
pub fn read(form: &[u8]) -> Result<Record<'_>, NoRecord> {
    let mut record = Record::default();
    let mut is_record = false;
    for (name, value) in form_urlencoded::parse(form) {
        is_record |= matches!(&*name, "msg" | "levelno");
        if let Some((name, value)) = set(&mut record, name, value) {
            record.fields.push((name, Value::Text(value)));
        }
    }
    if is_record { Ok(record) } else { Err(NoRecord) }
}

/// Puts an attribute where it belongs; gives back what belongs nowhere.
fn set<'a>(record: &mut Record<'a>, name: Cow<'a, str>, value: Cow<'a, str>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    match &*name {
        // Says nothing, or what others say.
        "levelname" | "filename" | "module" | "msecs" | "relativeCreated" | "asctime" | "message" => {}
        "args" if &*value == "()" => {}
        "exc_info" | "exc_text" | "stack_info" | "taskName" | "threadName" | "processName" | "thread" | "process"
            if &*value == "None" => {}
        "msg" => record.message = value,
        "name" => record.logger = value,
        "levelno" => match value.parse() {
            Ok(level) => record.level = level,
            Err(_) => return Some((name, value)),
        },
        "created" => match value.parse().ok().and_then(words::of_float) {
            Some(time) => record.time_ns = Some(time),
            None => return Some((name, value)),
        },
        "lineno" => match value.parse() {
            Ok(line) => record.line = Some(line),
            Err(_) => return Some((name, value)),
        },
        "process" => match value.parse() {
            Ok(id) => record.process = Some(id),
            Err(_) => return Some((name, value)),
        },
        "thread" => match value.parse() {
            Ok(id) => record.thread = Some(id),
            Err(_) => return Some((name, value)),
        },
        "pathname" => record.file = Some(value),
        "funcName" => record.function = Some(value),
        "processName" => record.process_name = Some(value),
        "threadName" => record.thread_name = Some(value),
        "taskName" => record.task = Some(value),
        "exc_text" => record.exception = Some(value),
        "stack_info" => record.stack = Some(value),
        _ => return Some((name, value)),
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.12 sends for `log.warning("took %d ms", 5, extra={"user": "a&b"})`.
    const SENT: &str = "name=shop&msg=took+%25d+ms&args=%285%2C%29&levelname=WARNING&levelno=30\
        &pathname=%2Fsrv%2Fshop.py&filename=shop.py&module=shop&exc_info=None&exc_text=None&stack_info=None&lineno=7\
        &funcName=pay&created=1700000000.125&msecs=125.0&relativeCreated=12.5&thread=140000000000001\
        &threadName=MainThread&processName=MainProcess&process=4711&taskName=None&user=a%26b";

    #[test]
    fn what_python_sends_is_read() {
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
    fn what_does_not_fit_is_a_field_and_other_forms_are_no_records() {
        let record = read(b"msg=%FF&levelno=high&lineno=-1&created=nan&thread=x&process=1.5&args=()").unwrap();
        assert_eq!("\u{FFFD}", record.message);
        let names: Vec<_> = record.fields.iter().map(|(name, _)| &**name).collect();
        assert_eq!(vec!["levelno", "lineno", "created", "thread", "process"], names);
        for none in [&b""[..], b"a=b", b"\0\xFF&&&==", b"{}"] {
            assert_eq!(Err(NoRecord), read(none));
        }
    }
}
