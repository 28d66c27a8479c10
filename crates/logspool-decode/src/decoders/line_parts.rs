//! Finds out which records are parts of one line. Docker and containerd cut long lines of their programs.
//!
//! | source | a part before the last one | the last part |
//! |---|---|---|
//! | Docker's files (`json-file`) | `log` has no line end | `log` ends with one |
//! | Docker's `fluentd` and `journald` | `partial_message` | `partial_last`, or no `partial_message` |
//! | CRI, as text or with the keys `logtag` or `_p` | `P` | `F` |

use std::borrow::Cow;

use super::convert::lossy;
use super::marks::{CONTAINER, Marks, PART, STREAM};
use super::times;
use crate::record::{LinePart, Record};
use crate::value::Value;

type Fields<'a> = [(Cow<'a, str>, Value<'a>)];

/// Whether a line of output has its line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputEnd {
    /// It ends with a line feed.
    Ended,
    /// It does not.
    Open,
}

impl OutputEnd {
    pub fn of(text: &str) -> Self {
        if text.ends_with('\n') { Self::Ended } else { Self::Open }
    }
}

/// The fields that say something only about a part. Docker's `journald` writes them in capitals.
const ABOUT_PART: &[&str] = &[
    "partial_message",
    "partial_id",
    "partial_ordinal",
    "partial_last",
    "CONTAINER_PARTIAL_MESSAGE",
    "CONTAINER_PARTIAL_ID",
    "CONTAINER_PARTIAL_ORDINAL",
    "CONTAINER_PARTIAL_LAST",
    "logtag",
    "_p",
];

/// The fields that name the output of a container.
const OUTPUT: &[&str] = &[
    "stream",
    "source",
    "container_id",
    "container_name",
    "CONTAINER_ID",
    "kubernetes",
    "pod",
    "container",
    "filename",
    "file_path",
    "tag",
];

/// The only fields of a line of Docker's files, after collectors have added theirs.
const DOCKER_FILE: &[&str] = &["stream", "time", "attrs", "date", "kubernetes", "filename", "tag"];

/// Decides about a record with these fields. `output` is given if the message is a line of output.
pub(super) fn part(fields: &Fields<'_>, marks: Marks, output: Option<OutputEnd>) -> LinePart {
    if marks.has_any(Marks(PART)) {
        if let Some(tag) = text(fields, "logtag").or_else(|| text(fields, "_p")) {
            // More tags may follow after a colon.
            return match tag.split(':').next() {
                Some("P") => LinePart::Inner,
                Some("F") => LinePart::Last,
                _ => LinePart::Whole,
            };
        }
        return match (is_true(fields, "partial_message"), is_true(fields, "partial_last")) {
            (true, false) => LinePart::Inner,
            _ => LinePart::Last,
        };
    }
    match output {
        Some(OutputEnd::Ended) if marks.has_all(Marks(STREAM)) => LinePart::Last,
        Some(OutputEnd::Open) if marks.has_all(Marks(STREAM)) => {
            let is_docker = fields.iter().all(|(name, _)| DOCKER_FILE.contains(&&**name));
            if is_docker { LinePart::Unended } else { LinePart::Whole }
        }
        // Docker before 20 does not mark the last part.
        _ if marks.has_all(Marks(CONTAINER)) => LinePart::Last,
        _ => LinePart::Whole,
    }
}

/// A name that all parts of a line have in common, and that other lines which are open at the same time do not have.
pub fn line_name(record: &Record<'_>) -> String {
    let fields = &record.fields;
    if let Some(id) = docker(fields, "partial_id") {
        return format!("id {}", shown(id));
    }
    let level = record.level.to_string();
    let mut name = format!("{level}\0{}\0{}", record.host.as_deref().unwrap_or_default(), record.logger);
    for (key, value) in fields.iter().filter(|(key, _)| OUTPUT.contains(&&**key)) {
        name.push_str(&format!("\0{key}={}", shown(value)));
    }
    name
}

/// The number of a part in its line, from 1; `None`: its sender does not count.
pub fn ordinal(record: &Record<'_>) -> Option<usize> {
    shown(docker(&record.fields, "partial_ordinal")?).parse().ok()
}

/// Removes the fields that say something only about a part.
pub fn remove_fields(record: &mut Record<'_>) {
    record.fields.retain(|(name, _)| !ABOUT_PART.contains(&&**name));
}

/// Reads a line of containerd or Podman: a time, the name of the stream, `P` or `F`, and the text. `None`: it is
/// another line.
pub fn read_cri(line: &[u8]) -> Option<Record<'_>> {
    let mut words = line.splitn(4, |byte| *byte == b' ');
    let (time, stream, tag) = (words.next()?, words.next()?, words.next()?);
    let (stream, tag) = (std::str::from_utf8(stream).ok()?, std::str::from_utf8(tag).ok()?);
    let part = match tag.split(':').next()? {
        "P" => LinePart::Inner,
        "F" => LinePart::Last,
        _ => return None,
    };
    if !matches!(stream, "stdout" | "stderr") {
        return None;
    }
    let time = times::nanoseconds(&Value::Text(lossy(time)))?;
    Some(Record {
        time_ns: Some(time),
        part,
        message: lossy(words.next().unwrap_or_default()),
        fields: vec![
            (Cow::Borrowed("stream"), Value::Text(Cow::Borrowed(stream))),
            (Cow::Borrowed("logtag"), Value::Text(Cow::Borrowed(tag))),
        ],
        ..Record::default()
    })
}

/// Reads a line of text: a line of containerd or Podman, or any other line as a message.
pub fn read_text(line: &[u8]) -> Record<'_> {
    read_cri(line).unwrap_or_else(|| Record { message: lossy(line), ..Record::default() })
}

fn value<'f, 'a>(fields: &'f Fields<'a>, name: &str) -> Option<&'f Value<'a>> {
    fields.iter().find(|(found, _)| found == name).map(|(_, value)| value)
}

/// A field of Docker, with the name that its `fluentd` or its `journald` gives it.
fn docker<'f, 'a>(fields: &'f Fields<'a>, name: &str) -> Option<&'f Value<'a>> {
    value(fields, name).or_else(|| value(fields, &format!("CONTAINER_{}", name.to_uppercase())))
}

fn text<'f>(fields: &'f Fields<'_>, name: &str) -> Option<&'f str> {
    match value(fields, name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn is_true(fields: &Fields<'_>, name: &str) -> bool {
    docker(fields, name).is_some_and(|value| shown(value) == "true")
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.clone().into_owned(),
        other => serde_json::to_string(other).expect("values have no keys but text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoders::json_line;

    #[test]
    fn parts_are_known_by_the_keys_of_their_senders() {
        for (expected, line) in [
            (LinePart::Unended, r#"{"log":"a","stream":"stdout","time":"2026-09-21T14:13:20.1Z"}"#),
            (LinePart::Last, r#"{"log":"a\n","stream":"stdout","time":"2026-09-21T14:13:20.1Z"}"#),
            (LinePart::Whole, r#"{"log":"a","stream":"stdout","user":1}"#),
            (LinePart::Whole, r#"{"log":"a","date":1790000000.1}"#),
            (
                LinePart::Inner,
                r#"{"log":"a","container_id":"c","source":"stdout","partial_message":"true","partial_id":"x","partial_ordinal":"1","partial_last":"false"}"#,
            ),
            (
                LinePart::Last,
                r#"{"log":"a","container_id":"c","source":"stdout","partial_message":"true","partial_id":"x","partial_ordinal":"2","partial_last":"true"}"#,
            ),
            (LinePart::Last, r#"{"log":"a","container_id":"c","source":"stdout"}"#),
            (LinePart::Inner, r#"{"MESSAGE":"a","CONTAINER_ID":"c","CONTAINER_PARTIAL_MESSAGE":"true"}"#),
            (LinePart::Last, r#"{"MESSAGE":"a","CONTAINER_PARTIAL_MESSAGE":"true","CONTAINER_PARTIAL_LAST":"true"}"#),
            (LinePart::Inner, r#"{"time":"2026-09-21T14:13:20Z","stream":"stderr","logtag":"P","message":"a"}"#),
            (LinePart::Last, r#"{"time":"2026-09-21T14:13:20Z","stream":"stderr","_p":"F","log":"a"}"#),
            (LinePart::Whole, r#"{"message":"a"}"#),
        ] {
            assert_eq!(expected, json_line::read(line.as_bytes()).unwrap().part, "{line}");
        }
    }

    #[test]
    fn lines_of_containerd_are_read() {
        let record = read_cri(b"2026-09-21T16:13:20.125+02:00 stderr P two  words ").unwrap();
        assert_eq!((Some(1_790_000_000_125_000_000), LinePart::Inner), (record.time_ns, record.part));
        assert_eq!("two  words ", record.message);
        assert_eq!(LinePart::Last, read_cri(b"2026-09-21T14:13:20Z stdout F").unwrap().part);
        for other in ["", "2026-09-21T14:13:20Z stdout X text", "2026-09-21T14:13:20Z stdin F a", "now stdout F a"] {
            assert_eq!(None, read_cri(other.as_bytes()), "{other}");
        }
    }
}
