//! A record as a document of the Elastic Common Schema.

use serde_json::{Map, Value, json};

use crate::sinks::http::shapes::exception_head;
use crate::sinks::parts::{RecordParts, level_name, push_time};

/// Version of the schema.
const ECS_VERSION: &str = "1.6.0";

/// Names that have a fixed type in the schema. A field of the record with one of these names is a label.
const RESERVED: [&str; 9] = ["@timestamp", "ecs", "error", "host", "labels", "log", "log.level", "message", "process"];

/// The document of a record. Extra and bound fields are at its top, as `ecs_logging` does.
pub fn document(parts: &RecordParts<'_>) -> Map<String, Value> {
    let mut document = Map::new();
    let mut labels = Map::new();
    let mut time = String::new();
    push_time(&mut time, parts.seconds, parts.nanoseconds);
    document.insert("@timestamp".to_owned(), time.into());
    document.insert("log.level".to_owned(), level_name(parts.level).to_lowercase().into());
    document.insert("message".to_owned(), (*parts.message).into());
    document.insert("ecs".to_owned(), json!({"version": ECS_VERSION}));
    let file = object([("name", parts.file.as_deref().map(Value::from)), ("line", parts.line.map(Value::from))]);
    let origin = object([("file", file), ("function", parts.function.as_deref().map(Value::from))]);
    let logger = Some(&*parts.logger).filter(|logger| !logger.is_empty()).map(Value::from);
    let thread =
        object([("id", parts.thread.map(Value::from)), ("name", parts.thread_name.as_deref().map(Value::from))]);
    let process = object([
        ("pid", parts.process.map(Value::from)),
        ("name", parts.process_name.as_deref().map(Value::from)),
        ("thread", thread),
    ]);
    let host = Some(&*parts.host).filter(|host| !host.is_empty()).map(|host| json!({"hostname": host}));
    let head = parts.exception.as_deref().and_then(exception_head);
    let stack = parts.exception.as_deref().or(parts.stack.as_deref());
    let error = object([
        ("type", head.map(|(name, _)| name.into())),
        ("message", head.map(|(_, message)| message.into())),
        ("stack_trace", stack.map(Value::from)),
    ]);
    for (name, value) in [
        ("log", object([("logger", logger), ("origin", origin)])),
        ("process", process),
        ("host", host),
        ("error", error),
    ] {
        if let Some(value) = value {
            document.insert(name.to_owned(), value);
        }
    }
    if let Some(task) = &parts.task {
        labels.insert("task".to_owned(), (**task).into());
    }
    for (name, value) in &parts.fields {
        let first = name.split('.').next().unwrap_or_default();
        if name.is_empty() || RESERVED.contains(&first) || document.contains_key(&**name) {
            labels.insert(name.replace('.', "_"), value.as_text().into());
        } else {
            document.insert(name.clone().into_owned(), serde_json::to_value(value).unwrap_or(Value::Null));
        }
    }
    if !labels.is_empty() {
        document.insert("labels".to_owned(), labels.into());
    }
    document
}

/// An object of the members that have a value; `None` if there are none.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let given: Map<_, _> = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    (!given.is_empty()).then_some(Value::Object(given))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::entry;

    #[test]
    fn a_record_has_the_names_of_the_schema() {
        let bytes = entry(&[
            ("logger", "shop"),
            ("file", "/app/a.py"),
            ("line", "7"),
            ("function", "pay"),
            ("process", "77"),
            ("host", "web"),
            ("message", "paid"),
            ("thread_name", "main"),
            ("exception", "Traceback (most recent call last):\n  File x\nValueError: no"),
            ("order", "9"),
            ("http.method", "GET"),
            ("host", "mine"),
            ("error.code", "5"),
        ]);
        let expected = json!({
            "@timestamp": "2024-02-29T12:34:56.789012Z",
            "log.level": "info",
            "message": "paid",
            "ecs": {"version": "1.6.0"},
            "log": {"logger": "shop", "origin": {"file": {"name": "/app/a.py", "line": 7}, "function": "pay"}},
            "process": {"pid": 77, "thread": {"name": "main"}},
            "host": {"hostname": "web"},
            "error": {
                "type": "ValueError",
                "message": "no",
                "stack_trace": "Traceback (most recent call last):\n  File x\nValueError: no",
            },
            "order": "9",
            "http.method": "GET",
            "labels": {"host": "mine", "error_code": "5"},
        });

        assert_eq!(expected, Value::Object(document(&RecordParts::read(&bytes))));
    }

    #[test]
    fn a_record_with_little_has_no_empty_objects() {
        let bytes = entry(&[("message", "m")]);

        let document = document(&RecordParts::read(&bytes));

        let names: Vec<_> = document.keys().map(String::as_str).collect();
        assert_eq!(["@timestamp", "ecs", "log.level", "message"], *names);
    }
}
