//! A record as a GELF message: a JSON object.
//!
//! `short_message` is the message. `full_message` also has the traceback and the stack; it is there only if one of them
//! is. Values of additional fields are numbers and texts; any other value is JSON in a text.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::sinks::parts::{PartValue, RecordParts, cut, severity};

/// Smallest number of bytes to which texts are cut. Fields whose texts are longer together are left out.
const MIN_TEXT_BYTES: usize = 32;

/// Makes the longest message that `accept` accepts, and says whether it was cut. The texts of a message are cut to the
/// same length. `accept` returns what is sent.
pub fn fitting(parts: &RecordParts<'_>, accept: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> (Vec<u8>, bool) {
    let made = |most: usize, with_fields: bool| {
        // Writing to a vector never fails.
        serde_json::to_vec(&GelfMessage { parts, most, with_fields }).unwrap_or_default()
    };
    if let Some(message) = accept(made(usize::MAX, true)) {
        return (message, false);
    }
    let texts = [parts.message.len(), parts.full_message().len()];
    let fields = parts.fields.iter().map(|(_, value)| value.as_text().len());
    let mut most = texts.into_iter().chain(fields).max().unwrap_or_default() / 2;
    while most >= MIN_TEXT_BYTES {
        if let Some(message) = accept(made(most, true)) {
            return (message, true);
        }
        most /= 2;
    }
    (accept(made(MIN_TEXT_BYTES, false)).unwrap_or_default(), true)
}

/// A message whose texts have at most `most` bytes each.
struct GelfMessage<'r, 'a> {
    parts: &'r RecordParts<'a>,
    most: usize,
    with_fields: bool,
}

impl Serialize for GelfMessage<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.parts;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", "1.1")?;
        // Graylog refuses messages with an empty host or message.
        map.serialize_entry("host", &*self.shown(&parts.host, "unknown"))?;
        map.serialize_entry("short_message", &*self.shown(&parts.message, "-"))?;
        if parts.exception.is_some() || parts.stack.is_some() {
            map.serialize_entry("full_message", &*self.shown(&parts.full_message(), "-"))?;
        }
        let micros = u64::from(parts.seconds) * 1_000_000 + u64::from(parts.nanoseconds / 1000);
        map.serialize_entry("timestamp", &(micros as f64 / 1e6))?;
        map.serialize_entry("level", &severity(parts.level))?;
        let mut used = HashSet::new();
        for (name, text) in [
            ("_logger", Some(&parts.logger).filter(|name| !name.is_empty())),
            ("_file", parts.file.as_ref()),
            ("_function", parts.function.as_ref()),
            ("_process_name", parts.process_name.as_ref()),
            ("_thread_name", parts.thread_name.as_ref()),
            ("_task", parts.task.as_ref()),
        ] {
            if let Some(text) = text {
                map.serialize_entry(name, &*self.shown(text, ""))?;
                used.insert(Cow::Borrowed(name));
            }
        }
        for (name, number) in [("_line", parts.line), ("_process", parts.process), ("_thread", parts.thread)] {
            if let Some(number) = number {
                map.serialize_entry(name, &number)?;
                used.insert(Cow::Borrowed(name));
            }
        }
        for (name, value) in parts.fields.iter().filter(|_| self.with_fields) {
            let mut name = field_name(name);
            while !used.insert(Cow::Owned(name.clone())) {
                name.push('_');
            }
            match value {
                PartValue::Int(_) => map.serialize_entry(&name, value)?,
                PartValue::Float(number) if number.is_finite() => map.serialize_entry(&name, number)?,
                PartValue::Float(number) => map.serialize_entry(&name, &number.to_string())?,
                other => map.serialize_entry(&name, &*self.shown(&other.as_text(), ""))?,
            }
        }
        map.end()
    }
}

impl GelfMessage<'_, '_> {
    fn shown<'t>(&self, text: &'t str, if_empty: &'t str) -> Cow<'t, str> {
        if text.is_empty() {
            return Cow::Borrowed(if_empty);
        }
        if text.len() <= self.most {
            return Cow::Borrowed(text);
        }
        let mut text = text.to_owned();
        cut(&mut text, self.most);
        Cow::Owned(text)
    }
}

/// The name of an additional field: it begins with `_` and has the characters that GELF allows. The name `_id` is
/// reserved.
fn field_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut shown = String::from("_");
    shown.extend(name.chars().map(|c| if is_allowed(c) { c } else { '_' }));
    if shown == "_id" {
        shown.push('_');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::{entry, started};
    use logspool_record::msgpack::{push_array, push_bool, push_float, push_int, push_nil, push_text};

    fn message(entry: &[u8]) -> String {
        String::from_utf8(fitting(&RecordParts::read(entry), Some).0).unwrap()
    }

    #[test]
    fn every_part_of_a_record_is_in_its_place() {
        let parts = [
            ("logger", "shop"),
            ("file", "/srv/shop.py"),
            ("line", "7"),
            ("function", "pay"),
            ("process", "77"),
            ("host", "web-1"),
            ("message", "paid"),
            ("process_name", "MainProcess"),
            ("thread", "5"),
            ("thread_name", "MainThread"),
            ("task", "Task-1"),
            ("exception", "Traceback"),
            ("stack", "Stack"),
            ("user name", "ann"),
            ("id", "4"),
            ("logger", "mine"),
        ];

        assert_eq!(
            "{\"version\":\"1.1\",\"host\":\"web-1\",\"short_message\":\"paid\",\
             \"full_message\":\"paid\\nTraceback\\nStack\",\"timestamp\":1709210096.789012,\"level\":6,\
             \"_logger\":\"shop\",\"_file\":\"/srv/shop.py\",\"_function\":\"pay\",\"_process_name\":\"MainProcess\",\
             \"_thread_name\":\"MainThread\",\"_task\":\"Task-1\",\"_line\":7,\"_process\":77,\"_thread\":5,\
             \"_user_name\":\"ann\",\"_id_\":\"4\",\"_logger_\":\"mine\"}",
            message(&entry(&parts))
        );
        assert_eq!(
            "{\"version\":\"1.1\",\"host\":\"unknown\",\"short_message\":\"-\",\"timestamp\":1709210096.789012,\
             \"level\":6}",
            message(&entry(&[]))
        );
    }

    #[test]
    fn values_become_numbers_or_texts() {
        let mut out = started(6);
        push_text(&mut out, b"none");
        push_nil(&mut out);
        push_text(&mut out, b"yes");
        push_bool(&mut out, true);
        push_text(&mut out, b"few");
        push_int(&mut out, -3);
        push_text(&mut out, b"half");
        push_float(&mut out, 0.5);
        push_text(&mut out, b"nan");
        push_float(&mut out, f64::NAN);
        push_text(&mut out, b"list");
        push_array(&mut out, 2);
        push_int(&mut out, 1);
        push_text(&mut out, b"a");

        let expected = "\"_none\":\"null\",\"_yes\":\"true\",\"_few\":-3,\"_half\":0.5,\"_nan\":\"NaN\",\
                        \"_list\":\"[1,\\\"a\\\"]\"}";
        assert!(message(&out).ends_with(expected), "{}", message(&out));
    }

    #[test]
    fn texts_are_cut_until_the_message_fits_and_then_fields_are_left_out() {
        let many: Vec<(String, String)> = (0..500).map(|n| (format!("field {n}"), "x".repeat(40))).collect();
        let mut parts = vec![("message", "y".repeat(500))];
        parts.extend(many.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let parts: Vec<(&str, &str)> = parts.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let bytes = entry(&parts);
        let made = |most: usize| {
            let (message, is_cut) =
                fitting(&RecordParts::read(&bytes), |message| (message.len() <= most).then_some(message));
            (String::from_utf8(message).unwrap(), is_cut)
        };

        assert!(!made(100_000).1);
        let whole = made(100_000).0.len();
        let (message, is_cut) = made(whole - 1);
        assert!(is_cut && message.contains("yyy...") && message.contains("_field_499"), "{message}");
        let (message, is_cut) = made(480);
        assert!(is_cut && message.contains("yyy...") && !message.contains("_field"), "{message}");
    }
}
