//! OpenTelemetry logs over HTTP: an `ExportLogsServiceRequest` as protobuf or JSON.
//!
//! The scope is the logger. Attributes for code location, thread and exception become parts of the record. The other
//! attributes become fields, also those of the resource. `telemetry.sdk.*` of the resource is dropped: it says nothing
//! about the program.
//!
//! Our own readers parse both encodings piece by piece. The structs of `prost` would take 100 bytes and more for two
//! bytes of a body.

mod answer;
mod json;
mod protobuf;

use std::borrow::Cow;
use std::fmt;

pub use answer::{Encoding, RejectedRecords};
pub use json::read as read_json;
pub use protobuf::read as read_protobuf;

use super::convert::{self, into_text};
use super::levels::{self, Scale};
use super::protobuf_wire::ProtobufError;
use crate::record::Record;
use crate::value::Value;

/// Limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct OtlpLimits {
    /// Maximum number of values in a record, and in a resource.
    pub items: usize,
    /// Maximum bytes of the rows of a request's records ([`crate::batch::ROW_BYTES`] each). The sizes of resource and
    /// scope are added for each of their records.
    pub repeated: usize,
}

impl Default for OtlpLimits {
    /// 10,000 values, 64 MiB.
    ///
    /// Chosen: enough for a request of the OpenTelemetry Collector with 8,000 records and a resource of 8 KiB.
    fn default() -> Self {
        Self { items: 10_000, repeated: 64 << 20 }
    }
}

/// Maximum nesting depth. Deeper values are shown as [`TOO_DEEP`].
const MAX_DEPTH: usize = 32;

/// Replaces values that are nested too deeply.
const TOO_DEEP: &str = "...";

/// An unreadable log record in a request that is readable otherwise.
#[derive(Debug)]
pub struct UnreadableRecord<'a> {
    /// The record as sent.
    pub bytes: &'a [u8],
    /// The error.
    pub error: OtlpError,
}

/// Reason why a body is not a request.
#[derive(Debug)]
pub enum OtlpError {
    /// The body is not protobuf, or not this message.
    Protobuf(&'static str),
    /// The body is not JSON. No record was read.
    NotJson(serde_json::Error),
    /// The JSON is not this message.
    Json(serde_json::Error),
    /// The body has other values in place of this one.
    Unknown(&'static str),
    /// A record or a resource has more values than [`OtlpLimits::items`].
    TooMany,
    /// The records take more memory than [`OtlpLimits::repeated`].
    TooLarge,
}

impl fmt::Display for OtlpError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protobuf(problem) => write!(to, "the body is not protobuf with log records: {problem}"),
            Self::NotJson(error) | Self::Json(error) => write!(to, "the body is not JSON with log records: {error}"),
            Self::Unknown(wanted) => write!(to, "the body has no log records of OTLP: {wanted} expected"),
            Self::TooMany => to.write_str("a log record or its resource has too many values"),
            Self::TooLarge => to.write_str(
                "there are too many log records, or they are too large together with their resource: send fewer \
                 at once",
            ),
        }
    }
}

impl std::error::Error for OtlpError {}

impl From<ProtobufError> for OtlpError {
    fn from(error: ProtobufError) -> Self {
        Self::Protobuf(error.0)
    }
}

/// Values of a resource that all its records share.
#[derive(Debug, Default)]
struct Resource<'a> {
    host: Option<Cow<'a, str>>,
    process: Option<u64>,
    fields: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Resource<'a> {
    fn set(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        match (&*name, &value) {
            ("host.name", Value::Text(_)) if self.host.is_none() => self.host = Some(into_text(value)),
            ("process.pid", _) if self.process.is_none() && convert::number::<u64>(&value).is_some() => {
                self.process = convert::number(&value);
            }
            (sdk, _) if sdk.starts_with("telemetry.sdk.") => {}
            _ => self.fields.push((name, value)),
        }
    }
}

/// A record that is being built.
#[derive(Debug)]
struct RecordDraft<'a> {
    record: Record<'a>,
    kind: Option<Cow<'a, str>>,
    reason: Option<Cow<'a, str>>,
}

impl<'a> RecordDraft<'a> {
    fn new(resource: &Resource<'a>, scope: &Cow<'a, str>) -> Self {
        let record = Record {
            logger: scope.clone(),
            host: resource.host.clone(),
            process: resource.process,
            ..Record::default()
        };
        Self { record, kind: None, reason: None }
    }

    /// Sets the level by number, else by name. An unknown name becomes a field.
    fn level(&mut self, number: i64, name: Cow<'a, str>) {
        let by_name = levels::named(&name);
        let level = Scale::OpenTelemetry.level(number).or(by_name.map(|named| named.level));
        self.record.level = level.unwrap_or_default();
        if by_name.is_none_or(|named| named.is_specific) && !name.is_empty() {
            self.record.fields.push((Cow::Borrowed("severity_text"), Value::Text(name)));
        }
    }

    fn body(&mut self, value: Value<'a>) {
        self.record.message = match value {
            Value::Text(text) => text,
            Value::Null => Cow::Borrowed(""),
            other => Cow::Owned(serde_json::to_string(&other).expect("values have no keys but text")),
        };
    }

    fn attribute(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        let record = &mut self.record;
        let place = match &*name {
            "code.file.path" | "code.filepath" => &mut record.file,
            "code.function.name" | "code.function" => &mut record.function,
            "thread.name" => &mut record.thread_name,
            "exception.stacktrace" => &mut record.exception,
            "exception.type" => &mut self.kind,
            "exception.message" => &mut self.reason,
            "code.line.number" | "code.lineno" if record.line.is_none() => {
                record.line = convert::number(&value);
                return if record.line.is_none() {
                    record.fields.push((name, value))
                };
            }
            "thread.id" if record.thread.is_none() => {
                record.thread = convert::number(&value);
                return if record.thread.is_none() {
                    record.fields.push((name, value))
                };
            }
            _ => return record.fields.push((name, value)),
        };
        match value {
            Value::Text(text) if place.is_none() => *place = Some(text),
            value => record.fields.push((name, value)),
        }
    }

    fn finish(mut self, resource: &Resource<'a>) -> Record<'a> {
        // A stack trace contains the exception. Without a stack trace use type and message.
        if self.record.exception.is_none() {
            self.record.exception = match (self.kind.take(), self.reason.take()) {
                (Some(kind), Some(reason)) => Some(Cow::Owned(format!("{kind}: {reason}"))),
                (kind, reason) => kind.or(reason),
            };
        }
        let trace = self.record.exception.as_deref().unwrap_or_default();
        let unsaid = |part: &Option<Cow<'_, str>>| part.as_deref().is_some_and(|part| !trace.contains(part));
        let (kind, reason) = (unsaid(&self.kind), unsaid(&self.reason));
        let fields = &mut self.record.fields;
        if kind {
            fields.extend(self.kind.map(|kind| (Cow::Borrowed("exception.type"), Value::Text(kind))));
        }
        if reason {
            fields.extend(self.reason.map(|reason| (Cow::Borrowed("exception.message"), Value::Text(reason))));
        }
        fields.extend(resource.fields.iter().cloned());
        self.record
    }
}

/// The amount that is left of a limit.
struct Budget(usize);

impl Budget {
    fn take(&mut self, amount: usize, error: OtlpError) -> Result<(), OtlpError> {
        self.0 = self.0.checked_sub(amount).ok_or(error)?;
        Ok(())
    }
}
