//! Writes one JSON object per line.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use chrono::SecondsFormat;
use serde::Serialize;

use super::table::kind_of;
use crate::clock::rfc3339;
use crate::query::{ColumnKind, Field, FieldKind, RowColumn};
use crate::record::Record;
use crate::record_id::RecordId;
use crate::stores::AnswerRow;
use crate::value::Value;
use crate::visible::needs_escape;

#[derive(Serialize)]
struct JsonLine<'r, 'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived: Option<String>,
    #[serde(flatten)]
    record: &'r Record<'a>,
}

/// Appends a row. A record has its times as numbers and also as text. Rows of a count or histogram are `{"FIELD":
/// value, "count": n}` or `{"time": text, "count": n}`.
pub(super) fn row(
    row: &AnswerRow<'_>,
    field: &Field,
    columns: &[RowColumn],
    to: &mut String,
) -> serde_json::Result<()> {
    let json = match row {
        AnswerRow::Record(record) => {
            let text = |time_ns: Option<i64>| time_ns.map(|time_ns| rfc3339(time_ns, SecondsFormat::Nanos));
            let (time, arrived) = (text(record.time_ns), text(record.arrived_ns));
            serde_json::to_string(&JsonLine { id: RecordId::of(record).to_string(), time, arrived, record })?
        }
        AnswerRow::Count(value, count) => {
            let value = match value {
                // The store returns a counted number as text. Write it as a number.
                Some(value) if field.kind() == FieldKind::Number && value.parse::<u64>().is_ok() => (*value).to_owned(),
                value => serde_json::to_string(value)?,
            };
            format!("{{{}:{value},\"count\":{count}}}", serde_json::to_string(field.name())?)
        }
        AnswerRow::Row(values) => {
            let value = |(name, value): &(Arc<str>, Value<'static>)| {
                let value = match (kind_of(columns, name), value) {
                    (ColumnKind::Time, Value::Int(time)) => Value::text(rfc3339(*time, SecondsFormat::AutoSi)),
                    (_, value) => value.clone(),
                };
                (Cow::Owned(name.to_string()), value)
            };
            serde_json::to_string(&Value::Map(values.iter().map(value).collect()))?
        }
        AnswerRow::Interval(begins, count) => {
            format!("{{\"time\":\"{}\",\"count\":{count}}}", rfc3339(*begins, SecondsFormat::AutoSi))
        }
    };
    append(&json, to);
    to.push('\n');
    Ok(())
}

/// Appends JSON, and replaces its control characters by escapes. In this JSON, control characters occur only within
/// strings.
fn append(json: &str, to: &mut String) {
    let mut rest = json;
    while let Some(at) = rest.find(needs_escape) {
        let (before, after) = rest.split_at(at);
        let mut characters = after.chars();
        to.push_str(before);
        if let Some(character) = characters.next() {
            // Writing to a string cannot fail. Every such character has a code of at most four hex digits.
            let _ = write!(to, "\\u{:04x}", u32::from(character));
        }
        rest = characters.as_str();
    }
    to.push_str(rest);
}
