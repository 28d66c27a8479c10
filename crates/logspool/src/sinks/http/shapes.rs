//! Forms of a record and of options that several sinks over HTTP use.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::option::{OptionField, OptionShape};
use crate::sinks::parts::{RecordParts, level_name, push_time};
use logspool_record::definition::OptionValue;

/// Names and values as one text: `app=shop,env=prod`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairList(pub Vec<(String, String)>);

impl OptionField for PairList {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let pairs = parts.map(|part| match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
            _ => Err(format!("{part:?} is no pair (fix: NAME=VALUE,NAME=VALUE)")),
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    fn to_value(&self) -> OptionValue {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        OptionValue::Text(pairs.join(","))
    }
}

/// The name of the range that a level is in. Labels and fields for filters have only these values.
pub fn level_word(level: i64) -> &'static str {
    match level {
        50.. => "critical",
        40..50 => "error",
        30..40 => "warning",
        20..30 => "info",
        10..20 => "debug",
        _ => "trace",
    }
}

/// Time of a record in nanoseconds since the epoch.
pub fn time_ns(parts: &RecordParts<'_>) -> u64 {
    u64::from(parts.seconds) * 1_000_000_000 + u64::from(parts.nanoseconds)
}

/// The record as a flat JSON object. A field whose name is taken gets an underscore at its end.
pub fn json_object(parts: &RecordParts<'_>, with_fields: bool) -> Map<String, Value> {
    let mut object = Map::new();
    let mut time = String::new();
    push_time(&mut time, parts.seconds, parts.nanoseconds);
    object.insert("time".to_owned(), time.into());
    object.insert("level".to_owned(), level_name(parts.level).into());
    for (name, text) in texts(parts) {
        object.insert(name.to_owned(), text.into());
    }
    for (name, number) in [("line", parts.line), ("process", parts.process), ("thread", parts.thread)] {
        if let Some(number) = number {
            object.insert(name.to_owned(), number.into());
        }
    }
    for (name, value) in parts.fields.iter().filter(|_| with_fields) {
        let mut name = name.clone().into_owned();
        while object.contains_key(&name) {
            name.push('_');
        }
        object.insert(name, serde_json::to_value(value).unwrap_or(Value::Null));
    }
    object
}

/// The record in the form `name=value name="value with spaces"`.
pub fn logfmt(parts: &RecordParts<'_>, with_fields: bool) -> String {
    let mut line = String::new();
    for (name, value) in json_object(parts, with_fields) {
        if !line.is_empty() {
            line.push(' ');
        }
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '=' | '"');
        line.extend(name.chars().map(|c| if is_plain(c) { c } else { '_' }));
        line.push('=');
        let text = match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        if !text.is_empty() && text.chars().all(is_plain) {
            line.push_str(&text);
        } else {
            line.push_str(&Value::String(text).to_string());
        }
    }
    line
}

/// The parts of a record that are texts, without those that are missing.
fn texts<'p>(parts: &'p RecordParts<'_>) -> impl Iterator<Item = (&'static str, &'p str)> {
    fn given<'p>(part: &'p Option<Cow<'_, str>>) -> &'p str {
        part.as_deref().unwrap_or_default()
    }
    let all = [
        ("logger", &*parts.logger),
        ("message", &*parts.message),
        ("file", given(&parts.file)),
        ("function", given(&parts.function)),
        ("host", &*parts.host),
        ("process_name", given(&parts.process_name)),
        ("thread_name", given(&parts.thread_name)),
        ("task", given(&parts.task)),
        ("exception", given(&parts.exception)),
        ("stack", given(&parts.stack)),
    ];
    all.into_iter().filter(|(name, text)| *name == "message" || !text.is_empty())
}

/// Type and message of an exception, from the first line of its traceback's end: `ValueError: no such thing`.
pub fn exception_head(traceback: &str) -> Option<(&str, &str)> {
    let is_indented = |line: &&str| line.starts_with([' ', '\t']);
    let mut head = None;
    let mut was_indented = true;
    for line in traceback.lines().filter(|line| !line.is_empty()) {
        let indented = is_indented(&line);
        if !indented && was_indented && !line.starts_with("Traceback ") {
            head = Some(line);
        }
        was_indented = indented;
    }
    let (name, message) = head.map(|line| line.split_once(": ").unwrap_or((line, "")))?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    is_name.then_some((name, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::entry;

    #[test]
    fn pairs_are_read_and_written() {
        let read = |text: &str| PairList::from_value(&OptionValue::Text(text.to_owned()));
        let pairs = read("app=shop, env = prod,").unwrap();

        assert_eq!(OptionValue::Text("app=shop,env=prod".to_owned()), pairs.to_value());
        assert_eq!(Ok(PairList::default()), read(""));
        for wrong in ["app", "=a", "app=a,b"] {
            assert!(read(wrong).unwrap_err().contains("fix: NAME=VALUE"), "{wrong}");
        }
    }

    #[test]
    fn a_record_is_one_flat_object_and_no_field_replaces_a_part() {
        let bytes = entry(&[("logger", "shop"), ("message", "a \"b\""), ("user", "ann"), ("logger", "mine")]);
        let parts = RecordParts::read(&bytes);

        let expected = serde_json::json!({
            "time": "2024-02-29T12:34:56.789012Z", "level": "INFO", "logger": "shop", "message": "a \"b\"",
            "user": "ann", "logger_": "mine",
        });
        assert_eq!(expected, Value::Object(json_object(&parts, true)));
        assert_eq!(None, json_object(&parts, false).get("user"));
        let line = logfmt(&parts, true);
        assert!(line.contains("message=\"a \\\"b\\\"\"") && line.contains(" user=ann"), "{line}");
    }

    #[test]
    fn the_type_of_an_exception_is_read_from_the_end_of_its_traceback() {
        let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n";
        let head = |end: &str| exception_head(&format!("{traceback}{end}")).map(|(a, b)| format!("{a}|{b}"));

        assert_eq!(Some("ValueError|no: such\u{a0}thing".to_owned()), head("ValueError: no: such\u{a0}thing\nmore"));
        assert_eq!(Some("app.Stop|".to_owned()), head("app.Stop"));
        assert_eq!(None, head(""));
        assert_eq!(None, head("not a name: x"));
    }
}
