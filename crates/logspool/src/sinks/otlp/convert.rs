//! Records as messages of OTLP, with the attribute names of OpenTelemetry's semantic conventions.

use super::proto::{AnyKind, AnyValue, ArrayValue, KeyValue, KeyValueList, LogRecord};
use crate::sinks::http::shapes::{exception_head, time_ns};
use crate::sinks::parts::{PartValue, RecordParts, level_name};

/// Names of fields with the id of a trace: those that users write, and those of OpenTelemetry's instrumentation of
/// `logging`.
const TRACE_NAMES: [&str; 2] = ["trace_id", "otelTraceID"];
const SPAN_NAMES: [&str; 2] = ["span_id", "otelSpanID"];

/// The message of a record.
pub fn log_record(parts: &RecordParts<'_>) -> LogRecord {
    let mut record = LogRecord {
        time_unix_nano: time_ns(parts),
        observed_time_unix_nano: time_ns(parts),
        severity_number: severity_number(parts.level),
        severity_text: level_name(parts.level).into_owned(),
        body: Some(text(&parts.message)),
        ..LogRecord::default()
    };
    let head = parts.exception.as_deref().and_then(exception_head);
    for (name, value) in [
        ("code.file.path", parts.file.as_deref()),
        ("code.function.name", parts.function.as_deref()),
        ("thread.name", parts.thread_name.as_deref()),
        ("process.name", parts.process_name.as_deref()),
        ("task.name", parts.task.as_deref()),
        ("exception.type", head.map(|(name, _)| name)),
        ("exception.message", head.map(|(_, message)| message).filter(|message| !message.is_empty())),
        ("exception.stacktrace", parts.exception.as_deref()),
        ("code.stacktrace", parts.stack.as_deref()),
    ] {
        if let Some(value) = value {
            record.attributes.push(KeyValue { key: name.to_owned(), value: Some(text(value)) });
        }
    }
    for (name, value) in [("code.line.number", parts.line), ("thread.id", parts.thread)] {
        if let Some(value) = value {
            record.attributes.push(attribute(name, AnyKind::Int(value)));
        }
    }
    for (name, value) in &parts.fields {
        let id = match value {
            PartValue::Text(text) if TRACE_NAMES.contains(&&**name) => id(text, 16).map(|id| (id, true)),
            PartValue::Text(text) if SPAN_NAMES.contains(&&**name) => id(text, 8).map(|id| (id, false)),
            _ => None,
        };
        match id {
            Some((id, true)) if record.trace_id.is_empty() => record.trace_id = id,
            Some((id, false)) if record.span_id.is_empty() => record.span_id = id,
            _ => {
                // Keys are unique in OTLP.
                let mut key = name.clone().into_owned();
                while record.attributes.iter().any(|attribute| attribute.key == key) {
                    key.push('_');
                }
                record.attributes.push(KeyValue { key, value: Some(any(value)) });
            }
        }
    }
    record
}

/// An attribute.
pub fn attribute(name: &str, value: AnyKind) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

fn text(text: &str) -> AnyValue {
    AnyValue { value: Some(AnyKind::Text(text.to_owned())) }
}

fn any(value: &PartValue<'_>) -> AnyValue {
    let kind = match value {
        PartValue::Nil => return AnyValue { value: None },
        PartValue::Bool(value) => AnyKind::Bool(*value),
        PartValue::Int(number) => match i64::try_from(*number) {
            Ok(number) => AnyKind::Int(number),
            Err(_) => AnyKind::Text(number.to_string()),
        },
        PartValue::Float(number) => AnyKind::Double(*number),
        PartValue::Text(text) => AnyKind::Text(text.clone().into_owned()),
        PartValue::Omitted => AnyKind::Text(value.as_text().into_owned()),
        PartValue::Array(items) => AnyKind::Array(ArrayValue { values: items.iter().map(any).collect() }),
        PartValue::Map(members) => AnyKind::Map(KeyValueList {
            values: members
                .iter()
                .map(|(key, value)| KeyValue { key: key.as_text().into_owned(), value: Some(any(value)) })
                .collect(),
        }),
    };
    AnyValue { value: Some(kind) }
}

/// The severity number for a level of `logging`. Levels between two named ones have the numbers in between.
fn severity_number(level: i64) -> i32 {
    match level {
        50.. => 21,
        45..50 => 18,
        40..45 => 17,
        35..40 => 14,
        30..35 => 13,
        25..30 => 10,
        20..25 => 9,
        15..20 => 6,
        10..15 => 5,
        1..10 => 1,
        _ => 0,
    }
}

/// The bytes of an id in hexadecimal digits. `None`: it has another length, or is only zeros, which is invalid.
fn id(text: &str, bytes: usize) -> Option<Vec<u8>> {
    if text.len() != bytes * 2 || !text.is_ascii() {
        return None;
    }
    let id: Option<Vec<u8>> =
        (0..bytes).map(|index| u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()).collect();
    id.filter(|id| id.iter().any(|byte| *byte != 0) && !text.contains('+'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::{entry, started};
    use logspool_record::msgpack;

    fn shown(record: &LogRecord) -> Vec<String> {
        let value = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|any| any.value.as_ref()) {
            Some(AnyKind::Text(text)) => text.clone(),
            other => format!("{other:?}"),
        };
        record.attributes.iter().map(|attribute| format!("{}={}", attribute.key, value(attribute))).collect()
    }

    #[test]
    fn the_parts_have_the_names_of_the_conventions() {
        let bytes = entry(&[
            ("file", "/app/a.py"),
            ("line", "7"),
            ("function", "pay"),
            ("message", "paid"),
            ("thread_name", "main"),
            ("exception", "Traceback (most recent call last):\n  File x\nValueError: no"),
            ("order", "9"),
            ("order", "10"),
        ]);
        let record = log_record(&RecordParts::read(&bytes));

        assert_eq!(
            (1_709_210_096_789_012_345, 9, "INFO"),
            (record.time_unix_nano, record.severity_number, &*record.severity_text)
        );
        assert_eq!(Some(text("paid")), record.body);
        let expected = [
            "code.file.path=/app/a.py",
            "code.function.name=pay",
            "thread.name=main",
            "exception.type=ValueError",
            "exception.message=no",
            "exception.stacktrace=Traceback (most recent call last):\n  File x\nValueError: no",
            "code.line.number=Some(Int(7))",
            "order=9",
            "order_=10",
        ];
        assert_eq!(expected, *shown(&record));
    }

    #[test]
    fn valid_ids_belong_to_the_trace_and_others_are_attributes() {
        let (trace, span) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef");
        let read = |fields: &[(&str, &str)]| log_record(&RecordParts::read(&entry(fields)));

        for names in [("trace_id", "span_id"), ("otelTraceID", "otelSpanID")] {
            let record = read(&[("message", "m"), (names.0, trace), (names.1, span)]);
            assert_eq!((16, 8, 0), (record.trace_id.len(), record.span_id.len(), record.attributes.len()));
            assert_eq!(0xef, record.trace_id[15]);
        }
        for wrong in [
            "0",
            "00000000000000000000000000000000",
            "x123456789abcdef0123456789abcdef",
            "+123456789abcdef0123456789abcdef",
        ] {
            let record = read(&[("message", "m"), ("trace_id", wrong)]);
            assert!(record.trace_id.is_empty(), "{wrong}");
            assert_eq!([format!("trace_id={wrong}")], *shown(&record));
        }
    }

    #[test]
    fn values_keep_their_types() {
        let mut out = started(1);
        msgpack::push_text(&mut out, b"all");
        msgpack::push_array(&mut out, 4);
        msgpack::push_nil(&mut out);
        msgpack::push_bool(&mut out, true);
        msgpack::push_float(&mut out, 0.5);
        msgpack::push_map(&mut out, 1);
        msgpack::push_int(&mut out, 1);
        msgpack::push_int(&mut out, -2);
        let record = log_record(&RecordParts::read(&out));
        let expected = AnyKind::Array(ArrayValue {
            values: vec![
                AnyValue { value: None },
                AnyValue { value: Some(AnyKind::Bool(true)) },
                AnyValue { value: Some(AnyKind::Double(0.5)) },
                AnyValue { value: Some(AnyKind::Map(KeyValueList { values: vec![attribute("1", AnyKind::Int(-2))] })) },
            ],
        });

        assert_eq!(vec![attribute("all", expected)], record.attributes);
    }
}
