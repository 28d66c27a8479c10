//! The bodies that Promtail, Grafana Alloy and other agents push to Loki: streams with labels, as JSON or as protobuf.
//!
//! Labels and the structured metadata of an entry are read like the keys of a JSON line, so `level` and `host` become
//! parts of the record. A line that is a JSON object is read as one; its keys come before the labels.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json_list::NotAList;
use super::protobuf_wire::{FieldIter, FieldValue, ProtobufError, messages};
use super::{convert, json_line, json_list, line_parts};
use crate::record::Record;
use crate::value::{self, Value};

type Pairs<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// Maximum number of labels of a stream, and of values in the metadata of an entry. Chosen: Loki itself accepts 15
/// labels and 128 values.
const MAX_VALUES: usize = 2_000;

/// Reason why a body is not a push request.
#[derive(Debug)]
pub enum LokiError {
    /// The body is not JSON, or has another form.
    Json(serde_json::Error),
    /// The body is not snappy.
    Snappy(snap::Error),
    /// The decompressed body would be longer than this number of bytes.
    TooLarge(usize),
    /// The body is not protobuf.
    Protobuf(&'static str),
    /// The streams, or the entries of a stream, are no list.
    NoList(NotAList),
    /// The labels of a stream are not written as `{name="value"}`.
    Labels,
    /// An entry has no time or no line.
    Entry,
}

impl fmt::Display for LokiError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(to, "the body is not JSON with streams: {error}"),
            Self::Snappy(error) => write!(to, "the body is not snappy: {error}"),
            Self::TooLarge(limit) => write!(to, "the decompressed body exceeds {limit} bytes"),
            Self::Protobuf(problem) => write!(to, "the body is not protobuf with streams: {problem}"),
            Self::NoList(problem) => write!(to, "the body is not JSON with streams: {problem}"),
            Self::Labels => to.write_str("the labels of a stream are not written as {name=\"value\"}"),
            Self::Entry => to.write_str("an entry is not a list of a time in nanoseconds and a line"),
        }
    }
}

impl std::error::Error for LokiError {}

impl From<ProtobufError> for LokiError {
    fn from(error: ProtobufError) -> Self {
        Self::Protobuf(error.0)
    }
}

impl From<NotAList> for LokiError {
    fn from(problem: NotAList) -> Self {
        Self::NoList(problem)
    }
}

impl From<serde_json::Error> for LokiError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// Receives each record, or an entry that cannot be read with the reason.
pub type EachEntry<'e> = &'e mut dyn FnMut(Result<&Record<'_>, (&[u8], LokiError)>);

#[derive(Deserialize)]
struct PushJson<'a> {
    #[serde(borrow)]
    streams: &'a RawValue,
}

/// A stream in the present form of JSON, or in the form of Loki before 1.0.
#[derive(Deserialize)]
struct StreamJson<'a> {
    #[serde(borrow, default)]
    stream: Option<&'a RawValue>,
    #[serde(borrow, default)]
    labels: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "entries")]
    values: &'a RawValue,
}

/// Reads a JSON body.
///
/// # Errors
///
/// The body is not a push request. `each` was called with the records before the error.
pub fn read_json(body: &[u8], each: EachEntry<'_>) -> Result<(), LokiError> {
    let push: PushJson<'_> = serde_json::from_slice(body)?;
    let mut problem = None;
    json_list::read(push.streams.get().as_bytes(), |stream| {
        if problem.is_none() {
            problem = stream_json(stream, each).err();
        }
    })?;
    problem.map_or(Ok(()), Err)
}

fn stream_json(stream: &[u8], each: EachEntry<'_>) -> Result<(), LokiError> {
    let stream: StreamJson<'_> = serde_json::from_slice(stream)?;
    let labels = match (stream.stream, &stream.labels) {
        (Some(labels), _) => match value::from_json(labels.get().as_bytes(), MAX_VALUES)?.0 {
            Value::Map(pairs) => pairs,
            _ => return Err(LokiError::Labels),
        },
        (None, Some(labels)) => labels_of(labels)?,
        (None, None) => Vec::new(),
    };
    json_list::read(stream.values.get().as_bytes(), |entry| match entry_json(entry) {
        Ok((time, line, metadata)) => each(Ok(&record(time, &line, metadata, &labels))),
        Err(error) => each(Err((entry, error))),
    })?;
    Ok(())
}

/// The time, line and metadata of an entry: `["ns", "line", {"name": "value"}]`, or `{"ts": "...", "line": "..."}`.
fn entry_json(entry: &[u8]) -> Result<(Option<i64>, Cow<'_, str>, Pairs<'_>), LokiError> {
    match value::from_json(entry, MAX_VALUES)?.0 {
        Value::List(values) => {
            let mut values = values.into_iter();
            let (Some(time), Some(Value::Text(line))) = (values.next(), values.next()) else {
                return Err(LokiError::Entry);
            };
            let metadata = match values.next() {
                Some(Value::Map(pairs)) => pairs,
                _ => Vec::new(),
            };
            let time = match &time {
                Value::Text(digits) => digits.parse().ok().or_else(|| convert::nanoseconds(&time)),
                _ => convert::nanoseconds(&time),
            };
            Ok((time, line, metadata))
        }
        Value::Map(pairs) => {
            let (mut time, mut line, mut metadata) = (None, None, Vec::new());
            for (name, value) in pairs {
                match (&*name, value) {
                    ("ts" | "timestamp", value) => time = convert::nanoseconds(&value),
                    ("line", Value::Text(text)) => line = Some(text),
                    ("structuredMetadata", Value::Map(pairs)) => metadata = pairs,
                    (_, value) => metadata.push((name, value)),
                }
            }
            Ok((time, line.ok_or(LokiError::Entry)?, metadata))
        }
        _ => Err(LokiError::Entry),
    }
}

/// Reads a protobuf body, which is compressed by snappy. At most `limit` bytes are decompressed.
///
/// # Errors
///
/// The body is not a push request. `each` was called with the records before the error.
pub fn read_protobuf(body: &[u8], limit: usize, each: EachEntry<'_>) -> Result<(), LokiError> {
    // Check the length before the memory is taken: a few bytes can announce any length.
    if snap::raw::decompress_len(body).map_err(LokiError::Snappy)? > limit {
        return Err(LokiError::TooLarge(limit));
    }
    let body = snap::raw::Decoder::new().decompress_vec(body).map_err(LokiError::Snappy)?;
    if !body.is_empty() && messages(&body, 1).next().is_none() {
        return Err(LokiError::Protobuf("streams expected"));
    }
    for stream in messages(&body, 1) {
        let stream = stream?;
        let mut labels = Vec::new();
        for text in messages(stream, 1) {
            labels = labels_of(&convert::lossy(text?))?;
        }
        for entry in messages(stream, 2) {
            let entry = entry?;
            match entry_protobuf(entry) {
                Ok((time, line, metadata)) => each(Ok(&record(time, &line, metadata, &labels))),
                Err(error) => each(Err((entry, error))),
            }
        }
    }
    Ok(())
}

fn entry_protobuf(entry: &[u8]) -> Result<(Option<i64>, Cow<'_, str>, Pairs<'_>), LokiError> {
    let (mut time, mut line, mut metadata) = (None, Cow::Borrowed(""), Vec::new());
    for field in FieldIter(entry) {
        match field? {
            (1, FieldValue::Bytes(stamp)) => time = timestamp(stamp)?,
            (2, FieldValue::Bytes(text)) => line = convert::lossy(text),
            (3, FieldValue::Bytes(pair)) if metadata.len() < MAX_VALUES => {
                let (mut name, mut value) = (Cow::Borrowed(""), Cow::Borrowed(""));
                for field in FieldIter(pair) {
                    match field? {
                        (1, FieldValue::Bytes(text)) => name = convert::lossy(text),
                        (2, FieldValue::Bytes(text)) => value = convert::lossy(text),
                        _ => {}
                    }
                }
                metadata.push((name, Value::Text(value)));
            }
            (3, _) => return Err(LokiError::Entry),
            _ => {}
        }
    }
    Ok((time, line, metadata))
}

/// Parses `google.protobuf.Timestamp` to nanoseconds.
fn timestamp(stamp: &[u8]) -> Result<Option<i64>, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (0_i64, 0_i64);
    for field in FieldIter(stamp) {
        match field? {
            (1, FieldValue::Number(number)) => seconds = number.cast_signed(),
            (2, FieldValue::Number(number)) => nanoseconds = number.cast_signed(),
            _ => {}
        }
    }
    Ok(seconds.checked_mul(1_000_000_000).and_then(|time| time.checked_add(nanoseconds)))
}

/// Builds the record of an entry.
fn record<'a>(time: Option<i64>, line: &'a str, metadata: Pairs<'a>, labels: &Pairs<'a>) -> Record<'a> {
    let text = line.trim_end_matches(['\n', '\r']);
    let cri = line_parts::read_cri(text.as_bytes());
    let mut pairs = match text.starts_with('{').then(|| json_line::object(text.as_bytes())) {
        Some(Ok(pairs)) if !pairs.is_empty() => pairs,
        _ => {
            let (message, fields) = cri.map_or((Cow::Borrowed(text), Vec::new()), |cri| (cri.message, cri.fields));
            [(Cow::Borrowed("message"), Value::Text(message))].into_iter().chain(fields).collect()
        }
    };
    let added = metadata.into_iter().chain(labels.iter().cloned());
    let mut detected = None;
    for (name, value) in added {
        match &*name {
            // Loki's agents guess a level if the sender gives no level.
            "detected_level" => detected = Some(value),
            _ => pairs.push((name, value)),
        }
    }
    pairs.extend(detected.map(|level| (Cow::Borrowed("level"), level)));
    let mut record = json_line::from_pairs(pairs);
    // The time of the entry is the time that Loki would show. A time in the line itself may be kept as a field.
    record.time_ns = time.filter(|time| *time != 0).or(record.time_ns);
    record
}

/// Parses labels that are written as `{name="value", other="a \"b\""}`.
fn labels_of(text: &str) -> Result<Pairs<'static>, LokiError> {
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or(LokiError::Labels)?;
    let (mut rest, mut labels) = (inner.trim_start(), Vec::new());
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or(LokiError::Labels)?;
        let after = after.trim_start().strip_prefix('"').ok_or(LokiError::Labels)?;
        let (value, after) = quoted(after).ok_or(LokiError::Labels)?;
        if labels.len() >= MAX_VALUES {
            return Err(LokiError::Labels);
        }
        labels.push((Cow::Owned(name.trim().to_owned()), Value::Text(Cow::Owned(value))));
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return Err(LokiError::Labels),
        };
    }
    Ok(labels)
}

/// The text up to the next quote, without its escapes, and the text after the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(read: impl FnOnce(EachEntry<'_>) -> Result<(), LokiError>) -> Result<Vec<serde_json::Value>, LokiError> {
        let mut rows = Vec::new();
        read(&mut |found| {
            rows.push(match found {
                Ok(record) => serde_json::to_value(record).unwrap(),
                Err((bytes, error)) => json!([String::from_utf8_lossy(bytes), error.to_string()]),
            });
        })?;
        Ok(rows)
    }

    #[test]
    fn streams_in_json_are_read_with_labels_and_metadata() {
        let body = br#"{"streams":[{"stream":{"job":"shop","level":"warn","host":"web-1"},"values":[
            ["1700000000125000001","paid\n"],["1700000000125000002","{\"msg\":\"m\",\"level\":\"error\"}",{"trace_id":"t"}],
            [5]]}]}"#;

        assert_eq!(
            vec![
                json!({"time_ns": 1_700_000_000_125_000_001_i64, "level": 30, "logger": "", "message": "paid",
                    "host": "web-1", "fields": {"job": "shop"}}),
                json!({"time_ns": 1_700_000_000_125_000_002_i64, "level": 40, "logger": "", "message": "m",
                    "host": "web-1", "trace_id": "t", "fields": {"job": "shop", "level": "warn"}}),
                json!(["[5]", LokiError::Entry.to_string()]),
            ],
            all(|each| read_json(body, each)).unwrap()
        );
    }

    #[test]
    fn the_json_of_old_agents_is_read() {
        let body = br#"{"streams":[{"labels":"{a=\"x \\\"y\\\"\", b=\"\"}","entries":[
            {"ts":"2023-11-14T22:13:20.125Z","line":"old"}]}]}"#;

        assert_eq!(
            vec![json!({"time_ns": 1_700_000_000_125_000_000_i64, "level": 0, "logger": "", "message": "old",
                "fields": {"a": "x \"y\"", "b": ""}})],
            all(|each| read_json(body, each)).unwrap()
        );
    }

    #[test]
    fn protobuf_is_read_and_a_bomb_of_snappy_refused_before_it_takes_memory() {
        // A stream `{job="shop"}` with an entry at 5 s and 7 ns, the line `paid` and the metadata `order=7`.
        let entry = b"\x0a\x04\x08\x05\x10\x07\x12\x04paid\x1a\x0a\x0a\x05order\x12\x017";
        let stream = [b"\x0a\x0c{job=\"shop\"}\x12".as_slice(), &[entry.len() as u8], entry].concat();
        let push = [b"\x0a".as_slice(), &[stream.len() as u8], &stream].concat();
        let body = snap::raw::Encoder::new().compress_vec(&push).unwrap();

        assert_eq!(
            vec![json!({"time_ns": 5_000_000_007_i64, "level": 0, "logger": "", "message": "paid",
                "fields": {"order": "7", "job": "shop"}})],
            all(|each| read_protobuf(&body, 1000, each)).unwrap()
        );
        for length in 0..body.len() {
            assert!(all(|each| read_protobuf(&body[..length], 1000, each)).is_err(), "{length} bytes");
        }
        let bomb = b"\xFF\xFF\xFF\xFF\x0Fx";
        assert!(matches!(all(|each| read_protobuf(bomb, 1000, each)), Err(LokiError::TooLarge(1000))));
    }

    #[test]
    fn labels_of_another_form_are_refused() {
        for bad in ["", "{", "{a}", "{a=b}", "{a=\"b}", "{a=\"b\" c=\"d\"}", "a=\"b\""] {
            assert!(labels_of(bad).is_err(), "{bad}");
        }
        assert!(labels_of("{}").unwrap().is_empty());
    }
}
