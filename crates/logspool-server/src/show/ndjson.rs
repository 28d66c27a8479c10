//! Writes one JSON object per line.

use std::fmt::Write;

use chrono::SecondsFormat;
use serde::Serialize;

use crate::clock::rfc3339;
use crate::query::{Field, FieldKind};
use crate::record::Record;
use crate::stores::AnswerRow;
use crate::visible::needs_escape;

#[derive(Serialize)]
struct JsonLine<'r, 'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrived: Option<String>,
    #[serde(flatten)]
    record: &'r Record<'a>,
}

/// Appends a row. A record has its times as numbers and also as text. Rows of a count or histogram are `{"FIELD":
/// value, "count": n}` or `{"time": text, "count": n}`.
pub(super) fn row(row: &AnswerRow<'_>, field: &Field, to: &mut String) -> serde_json::Result<()> {
    let json = match row {
        AnswerRow::Record(record) => {
            let text = |time_ns: Option<i64>| time_ns.map(|time_ns| rfc3339(time_ns, SecondsFormat::Nanos));
            let (time, arrived) = (text(record.time_ns), text(record.arrived_ns));
            serde_json::to_string(&JsonLine { time, arrived, record })?
        }
        AnswerRow::Count(value, count) => {
            let value = match value {
                // The store returns a counted number as text. Write it as a number.
                Some(value) if field.kind() == FieldKind::Number && value.parse::<u64>().is_ok() => (*value).to_owned(),
                value => serde_json::to_string(value)?,
            };
            format!("{{{}:{value},\"count\":{count}}}", serde_json::to_string(field.name())?)
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
