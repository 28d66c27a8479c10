//! The JSON encoding: names in lowerCamelCase, ids in hex, 64-bit numbers as text or numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Budget, MAX_DEPTH, OtlpError, OtlpLimits, RecordDraft, Resource, TOO_DEEP, UnreadableRecord};
use crate::batch::ROW_BYTES;
use crate::decoders::{convert, levels, times};
use crate::record::Record;
use crate::value::Value;

/// The keys of a `ResourceLogs` and of a `ScopeLogs`.
const RESOURCE_LOGS_KEYS: [&str; 5] = ["resource", "scopeLogs", "scope_logs", "schemaUrl", "schema_url"];
const SCOPE_LOGS_KEYS: [&str; 5] = ["scope", "logRecords", "log_records", "schemaUrl", "schema_url"];

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
    let raw: &'a RawValue = serde_json::from_slice(body).map_err(OtlpError::NotJson)?;
    let request: Request<'a> = parse(raw)?;
    for part in known_list(request.resource_logs, raw, &["resourceLogs", "resource_logs"])? {
        let scopes = parse(part).and_then(|logs: ResourceLogs<'a>| {
            Ok((logs.resource, known_list(logs.scope_logs, part, &RESOURCE_LOGS_KEYS)?))
        });
        let Some((raw_resource, scopes)) = readable(part, scopes, &mut each) else { continue };
        // Records are of use without their resource and scope, too.
        let found = raw_resource.map(|raw| readable(raw, resource(raw, limits), &mut each));
        let (resource, resource_bytes) = found.flatten().unwrap_or_default();
        for part in scopes {
            let records = parse(part).and_then(|logs: ScopeLogs<'a>| {
                Ok((logs.scope, known_list(logs.log_records, part, &SCOPE_LOGS_KEYS)?))
            });
            let Some((scope, records)) = readable(part, records, &mut each) else { continue };
            let scope = scope.and_then(|raw| readable(raw, parse(raw), &mut each));
            let scope = scope.map(|scope: Scope<'a>| text(scope.name)).unwrap_or_default();
            for part in records {
                left.take(ROW_BYTES + resource_bytes + scope.len(), OtlpError::TooLarge)?;
                let draft =
                    parse(part).and_then(|sent: LogRecord<'a>| match sent.is_empty() && part.get().contains(':') {
                        true => Err(OtlpError::Unknown("a log record")),
                        false => record(sent, RecordDraft::new(&resource, &scope), limits),
                    });
                if let Some(draft) = readable(part, draft, &mut each) {
                    each(Ok(draft.finish(&resource)));
                }
            }
        }
    }
    Ok(())
}

/// The result; without one, `each` gets the JSON that cannot be read.
fn readable<'a, T>(
    raw: &'a RawValue,
    read: Result<T, OtlpError>,
    each: &mut impl FnMut(Result<Record<'a>, UnreadableRecord<'a>>),
) -> Option<T> {
    let unread = |error| each(Err(UnreadableRecord { bytes: raw.get().as_bytes(), error }));
    read.map_err(unread).ok()
}

/// Parses an object. `serde` would take a list in its place.
fn parse<'a, Part: Deserialize<'a>>(raw: &'a RawValue) -> Result<Part, OtlpError> {
    if !raw.get().starts_with('{') {
        return Err(OtlpError::Json(serde::de::Error::custom("an object expected")));
    }
    serde_json::from_str(raw.get()).map_err(OtlpError::Json)
}

/// The values of the list in the object `raw`. If the list is missing, all keys of `raw` must be known: an object of
/// another kind may hold records under other names.
fn known_list<'a>(list: Option<RawList<'a>>, raw: &RawValue, known: &[&str]) -> Result<Vec<&'a RawValue>, OtlpError> {
    if let Some(RawList(values)) = list {
        return Ok(values);
    }
    let keys: HashMap<Cow<'_, str>, IgnoredAny> = serde_json::from_str(raw.get()).map_err(OtlpError::Json)?;
    match keys.keys().all(|key| known.contains(&&**key)) {
        true => Ok(Vec::new()),
        false => Err(OtlpError::Unknown("resourceLogs, scopeLogs and logRecords")),
    }
}

/// A list whose values are parsed one by one, so that memory is allocated for only one value at a time. `null` is an
/// empty list.
#[derive(Default)]
struct RawList<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for RawList<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<Vec<&'a RawValue>>::deserialize(from)?.unwrap_or_default()))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow, default, alias = "resource_logs")]
    resource_logs: Option<RawList<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLogs<'a> {
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "scope_logs")]
    scope_logs: Option<RawList<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScopeLogs<'a> {
    #[serde(borrow)]
    scope: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "log_records")]
    log_records: Option<RawList<'a>>,
}

#[derive(Deserialize)]
struct Scope<'a> {
    #[serde(borrow)]
    name: Option<Value<'a>>,
}

#[derive(Deserialize)]
struct Attributes<'a> {
    #[serde(borrow)]
    attributes: Option<Value<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogRecord<'a> {
    #[serde(borrow, alias = "time_unix_nano")]
    time_unix_nano: Option<Value<'a>>,
    #[serde(borrow, alias = "observed_time_unix_nano")]
    observed_time_unix_nano: Option<Value<'a>>,
    #[serde(borrow, alias = "severity_number")]
    severity_number: Option<Value<'a>>,
    #[serde(borrow, alias = "severity_text")]
    severity_text: Option<Value<'a>>,
    #[serde(borrow)]
    body: Option<Value<'a>>,
    #[serde(borrow)]
    attributes: Option<Value<'a>>,
    #[serde(borrow, alias = "trace_id")]
    trace_id: Option<Value<'a>>,
    #[serde(borrow, alias = "span_id")]
    span_id: Option<Value<'a>>,
    #[serde(borrow, alias = "event_name")]
    event_name: Option<Value<'a>>,
}

impl LogRecord<'_> {
    /// True if the object has none of the keys of a record.
    fn is_empty(&self) -> bool {
        let Self { time_unix_nano, observed_time_unix_nano, severity_number, severity_text, body, .. } = self;
        let Self { attributes, trace_id, span_id, event_name, .. } = self;
        let parts = [time_unix_nano, observed_time_unix_nano, severity_number, severity_text, body, attributes];
        parts.into_iter().chain([trace_id, span_id, event_name]).all(Option::is_none)
    }
}

/// A resource, and the size of its JSON in bytes.
fn resource<'a>(raw: &'a RawValue, limits: &OtlpLimits) -> Result<(Resource<'a>, usize), OtlpError> {
    let mut resource = Resource::default();
    let mut items = Budget(limits.items);
    for pair in list(parse::<Attributes<'a>>(raw)?.attributes) {
        let (name, value) = self::pair(pair, &mut items, MAX_DEPTH)?;
        resource.set(name, value);
    }
    Ok((resource, raw.get().len()))
}

fn record<'a>(
    sent: LogRecord<'a>,
    mut draft: RecordDraft<'a>,
    limits: &OtlpLimits,
) -> Result<RecordDraft<'a>, OtlpError> {
    let mut items = Budget(limits.items);
    let nanoseconds = |value: &Value<'_>| match value {
        Value::Float(_) => times::nanoseconds(value),
        value => whole(value),
    };
    let time = |value: Option<Value<'_>>| value.as_ref().and_then(nanoseconds).filter(|time| *time != 0);
    draft.record.time_ns = time(sent.time_unix_nano).or_else(|| time(sent.observed_time_unix_nano));
    draft.record.trace_id = id(sent.trace_id);
    draft.record.span_id = id(sent.span_id);
    let (number, name) = severity(sent.severity_number, text(sent.severity_text));
    draft.level(number, name);
    if let Some(body) = sent.body {
        draft.body(any(body, &mut items, MAX_DEPTH)?);
    }
    for pair in list(sent.attributes) {
        let (name, value) = self::pair(pair, &mut items, MAX_DEPTH)?;
        draft.attribute(name, value);
    }
    let event = text(sent.event_name);
    if !event.is_empty() {
        draft.record.fields.push((Cow::Borrowed("event_name"), Value::Text(event)));
    }
    Ok(draft)
}

/// The number of a severity, and its name. The number may be sent as the name of the enum (`SEVERITY_NUMBER_INFO`).
fn severity<'a>(number: Option<Value<'a>>, name: Cow<'a, str>) -> (i64, Cow<'a, str>) {
    let whole = number.as_ref().and_then(whole).unwrap_or_default();
    match number {
        Some(Value::Text(text)) if whole == 0 && name.is_empty() => (0, text),
        Some(Value::Text(text)) if whole == 0 => {
            // The level of the enum, with the name that was sent beside it.
            let level = levels::named(&text).map_or(0, |named| named.level);
            let numbers = [(5, 1), (10, 5), (20, 9), (30, 13), (40, 17), (50, 21)];
            (numbers.iter().find(|(known, _)| *known == level).map_or(0, |(_, number)| *number), name)
        }
        _ => (whole, name),
    }
}

/// Parses a `KeyValue`.
fn pair<'a>(pair: Value<'a>, items: &mut Budget, depth: usize) -> Result<(Cow<'a, str>, Value<'a>), OtlpError> {
    let (mut name, mut value) = (Cow::Borrowed(""), Value::Null);
    for (part, found) in map(pair) {
        match &*part {
            "key" => name = text(Some(found)),
            "value" => value = any(found, items, depth)?,
            _ => {}
        }
    }
    Ok((name, value))
}

/// Parses an `AnyValue`.
fn any<'a>(value: Value<'a>, items: &mut Budget, depth: usize) -> Result<Value<'a>, OtlpError> {
    items.take(1, OtlpError::TooMany)?;
    // At most one of these keys is set; other keys are unknown and ignored.
    let known = ["stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue"];
    let Some((name, value)) = map(value).into_iter().find(|(name, _)| known.contains(&&**name)) else {
        return Ok(Value::Null);
    };
    Ok(match &*name {
        "intValue" => whole(&value).map_or(value, Value::Int),
        "doubleValue" => match value {
            Value::Int(number) => Value::Float(number as f64),
            // "NaN", "Infinity" and "-Infinity" are text.
            Value::Text(text) => text.parse().map_or(Value::Text(text), Value::Float),
            other => other,
        },
        "arrayValue" | "kvlistValue" if depth == 0 => Value::text(TOO_DEEP),
        "arrayValue" => {
            let values = values(value).into_iter().map(|value| any(value, items, depth - 1));
            Value::List(values.collect::<Result<_, _>>()?)
        }
        "kvlistValue" => {
            let pairs = values(value).into_iter().map(|value| pair(value, items, depth - 1));
            Value::Map(pairs.collect::<Result<_, _>>()?)
        }
        _ => value,
    })
}

/// The `values` of a list or map.
fn values(value: Value<'_>) -> Vec<Value<'_>> {
    list(map(value).into_iter().find(|(name, _)| name == "values").map(|(_, values)| values))
}

fn list(value: Option<Value<'_>>) -> Vec<Value<'_>> {
    match value {
        Some(Value::List(values)) => values,
        _ => Vec::new(),
    }
}

fn map<'a>(value: Value<'a>) -> Vec<(Cow<'a, str>, Value<'a>)> {
    match value {
        Value::Map(pairs) => pairs,
        _ => Vec::new(),
    }
}

fn text(value: Option<Value<'_>>) -> Cow<'_, str> {
    value.map(convert::into_text).unwrap_or_default()
}

/// An id; `None` if it is empty or zero.
fn id(value: Option<Value<'_>>) -> Option<Cow<'_, str>> {
    Some(text(value)).filter(|id| id.bytes().any(|digit| digit != b'0'))
}

/// An integer, from a number or from text.
fn whole(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        // Some senders write all numbers as doubles.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => Some(*number as i64),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}
