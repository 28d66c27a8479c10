//! The protobuf encoding: `opentelemetry/proto/logs/v1/logs.proto` and the files it imports.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;

use super::{Budget, MAX_DEPTH, OtlpError, OtlpLimits, RecordDraft, Resource, TOO_DEEP, UnreadableRecord};
use crate::batch::ROW_BYTES;
use crate::decoders::convert::lossy;
use crate::decoders::protobuf_wire::{FieldIter, FieldValue, messages, messages_and_rest};
use crate::record::Record;
use crate::value::Value;

/// Reads a body, and calls `each` with each record in the order sent. Parts that cannot be read are included: records,
/// and whatever else of the body is broken.
///
/// # Errors
///
/// The body is not a request, or is too large. `each` was called with the records before the error.
pub fn read<'a>(
    body: &'a [u8],
    limits: &OtlpLimits,
    mut each: impl FnMut(Result<Record<'a>, UnreadableRecord<'a>>),
) -> Result<(), OtlpError> {
    let mut left = Budget(limits.repeated);
    match messages(body, 1).next() {
        None if !body.is_empty() => return Err(OtlpError::Unknown("resource_logs")),
        Some(Err(error)) => return Err(error.into()),
        _ => {}
    }
    let unread = |bytes, error: OtlpError| Err(UnreadableRecord { bytes, error });
    for part in messages_and_rest(body, 1) {
        let resource_logs = match part {
            Ok(part) => part,
            Err((rest, error)) => {
                each(unread(rest, error.into()));
                break;
            }
        };
        // Records are of use without their resource and scope, too.
        let (resource, resource_bytes) = resource(resource_logs, limits).unwrap_or_else(|error| {
            each(unread(resource_logs, error));
            Default::default()
        });
        for part in messages_and_rest(resource_logs, 2) {
            let scope_logs = match part {
                Ok(part) => part,
                Err((rest, error)) => {
                    each(unread(rest, error.into()));
                    break;
                }
            };
            let scope = scope(scope_logs).unwrap_or_else(|error| {
                each(unread(scope_logs, error));
                Cow::Borrowed("")
            });
            for part in messages_and_rest(scope_logs, 2) {
                let bytes = match part {
                    Ok(part) => part,
                    Err((rest, error)) => {
                        each(unread(rest, error.into()));
                        break;
                    }
                };
                left.take(ROW_BYTES + resource_bytes + scope.len(), OtlpError::TooLarge)?;
                let draft = record(bytes, RecordDraft::new(&resource, &scope), limits);
                each(draft.map(|draft| draft.finish(&resource)).map_err(|error| UnreadableRecord { bytes, error }));
            }
        }
    }
    Ok(())
}

/// The resource of a `ResourceLogs`, and its size in bytes. In the bytes, the resource may follow its records.
fn resource<'a>(resource_logs: &'a [u8], limits: &OtlpLimits) -> Result<(Resource<'a>, usize), OtlpError> {
    let mut resource = Resource::default();
    let mut bytes = 0;
    let mut items = Budget(limits.items);
    // What follows a broken part is reported by the caller.
    for part in messages(resource_logs, 1).map_while(Result::ok) {
        bytes += part.len();
        for attribute in messages(part, 1) {
            let (name, value) = pair(attribute?, &mut items, MAX_DEPTH)?;
            resource.set(name, value);
        }
    }
    Ok((resource, bytes))
}

/// The name of a scope.
fn scope(scope_logs: &[u8]) -> Result<Cow<'_, str>, OtlpError> {
    let mut name = Cow::Borrowed("");
    for scope in messages(scope_logs, 1).map_while(Result::ok) {
        for part in messages(scope, 1) {
            name = lossy(part?);
        }
    }
    Ok(name)
}

/// Parses a `LogRecord`.
fn record<'a>(bytes: &'a [u8], mut draft: RecordDraft<'a>, limits: &OtlpLimits) -> Result<RecordDraft<'a>, OtlpError> {
    let mut items = Budget(limits.items);
    let (mut time, mut observed, mut severity, mut severity_name) = (0, 0, 0, Cow::Borrowed(""));
    for part in FieldIter(bytes) {
        match part? {
            (1, FieldValue::Fixed64(nanoseconds)) => time = nanoseconds,
            (2, FieldValue::Number(number)) => severity = number as i64,
            (3, FieldValue::Bytes(name)) => severity_name = lossy(name),
            (5, FieldValue::Bytes(value)) => draft.body(any(value, &mut items, MAX_DEPTH)?),
            (6, FieldValue::Bytes(attribute)) => {
                let (name, value) = pair(attribute, &mut items, MAX_DEPTH)?;
                draft.attribute(name, value);
            }
            (9, FieldValue::Bytes(id)) => draft.record.trace_id = hex(id),
            (10, FieldValue::Bytes(id)) => draft.record.span_id = hex(id),
            (11, FieldValue::Fixed64(nanoseconds)) => observed = nanoseconds,
            (12, FieldValue::Bytes(name)) if !name.is_empty() => {
                let name = Value::Text(lossy(name));
                draft.record.fields.push((Cow::Borrowed("event_name"), name));
            }
            _ => {}
        }
    }
    let time = if time == 0 { observed } else { time };
    draft.record.time_ns = i64::try_from(time).ok().filter(|time| *time != 0);
    draft.level(severity, severity_name);
    Ok(draft)
}

/// Parses a `KeyValue`.
fn pair<'a>(bytes: &'a [u8], items: &mut Budget, depth: usize) -> Result<(Cow<'a, str>, Value<'a>), OtlpError> {
    let (mut name, mut value) = (Cow::Borrowed(""), Value::Null);
    for part in FieldIter(bytes) {
        match part? {
            (1, FieldValue::Bytes(text)) => name = lossy(text),
            (2, FieldValue::Bytes(bytes)) => value = any(bytes, items, depth)?,
            _ => {}
        }
    }
    Ok((name, value))
}

/// Parses an `AnyValue`. If it has several values, the last one counts.
fn any<'a>(bytes: &'a [u8], items: &mut Budget, depth: usize) -> Result<Value<'a>, OtlpError> {
    items.take(1, OtlpError::TooMany)?;
    let mut value = Value::Null;
    for part in FieldIter(bytes) {
        value = match part? {
            (1, FieldValue::Bytes(text)) => Value::Text(lossy(text)),
            // Bytes that are no text keep their value as base64, as in the JSON encoding.
            (7, FieldValue::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Value::text(text),
                Err(_) => Value::text(BASE64.encode(bytes)),
            },
            (2, FieldValue::Number(number)) => Value::Bool(number != 0),
            // Negative numbers are encoded in two's complement.
            (3, FieldValue::Number(number)) => Value::Int(number as i64),
            (4, FieldValue::Fixed64(bits)) => Value::Float(f64::from_bits(bits)),
            (5 | 6, FieldValue::Bytes(_)) if depth == 0 => Value::text(TOO_DEEP),
            (5, FieldValue::Bytes(list)) => {
                let values = messages(list, 1).map(|part| any(part?, items, depth - 1));
                Value::List(values.collect::<Result<_, _>>()?)
            }
            (6, FieldValue::Bytes(map)) => {
                let pairs = messages(map, 1).map(|part| pair(part?, items, depth - 1));
                Value::Map(pairs.collect::<Result<_, _>>()?)
            }
            _ => value,
        };
    }
    Ok(value)
}

/// An id in hex; `None` if it is empty or zero.
fn hex(id: &[u8]) -> Option<Cow<'static, str>> {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    let is_id = id.len() <= 16 && id.iter().any(|byte| *byte != 0);
    is_id.then(|| Cow::Owned(id.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0F)]).collect()))
}
