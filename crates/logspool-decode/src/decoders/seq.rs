//! Events of Serilog and other senders of Seq: CLEF, one JSON object per line, and the older envelope with `Events`.
//!
//! Keys that begin with `@` are parts of the event, and `@@` is an escaped `@`. A message template is rendered with the
//! event's own properties, as Seq does.

use std::borrow::Cow;

use super::draft::filled;
use super::json_line::{self, JsonLineError};
use crate::record::Record;
use crate::value::Value;

type Pairs<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// The level of an event without one, as Seq defines it.
const DEFAULT_LEVEL: u16 = 20;

/// Reads one event in CLEF.
///
/// # Errors
///
/// The line is not a JSON object.
pub fn read_clef(line: &[u8]) -> Result<Record<'_>, JsonLineError> {
    json_line::object(line).map(from_clef)
}

/// Reads one event of the list `Events`.
///
/// # Errors
///
/// The event is not a JSON object.
pub fn read_raw(event: &[u8]) -> Result<Record<'_>, JsonLineError> {
    let mut named = Vec::new();
    for (name, value) in json_line::object(event)? {
        let part = match (&*name, value) {
            ("Properties", Value::Map(pairs)) => {
                named.extend(pairs.into_iter().map(|(name, value)| (escaped(name), value)));
                continue;
            }
            ("Timestamp", value) => ("@t", value),
            ("Level", value) => ("@l", value),
            ("MessageTemplate", value) => ("@mt", value),
            ("RenderedMessage", value) => ("@m", value),
            ("Exception", value) => ("@x", value),
            ("EventType", value) => ("@i", value),
            (_, value) => {
                named.push((escaped(name), value));
                continue;
            }
        };
        named.push((Cow::Borrowed(part.0), part.1));
    }
    Ok(from_clef(named))
}

/// The name of a property as CLEF writes it.
fn escaped(name: Cow<'_, str>) -> Cow<'_, str> {
    if name.starts_with('@') { Cow::Owned(format!("@{name}")) } else { name }
}

fn from_clef(pairs: Pairs<'_>) -> Record<'_> {
    let (mut parts, mut properties) = (Vec::new(), Vec::new());
    let (mut template, mut message, mut logger, mut has_level) = (None, None, None, false);
    for (name, value) in pairs {
        let part = match (&*name, &value) {
            ("@m", Value::Text(_)) => {
                message = Some(value);
                continue;
            }
            ("@mt", Value::Text(_)) => {
                template = Some(value);
                continue;
            }
            ("SourceContext" | "LoggerName", Value::Text(_)) if logger.is_none() => {
                logger = Some(value);
                continue;
            }
            ("@t", _) => "time",
            ("@l", _) => {
                has_level = true;
                "level"
            }
            ("@x", Value::Text(_)) => "exception",
            ("@tr", Value::Text(_)) => "trace_id",
            ("@sp", Value::Text(_)) => "span_id",
            // The id of the template, and its renderings for programs that show events.
            ("@i", _) => "event_type",
            _ => {
                let name = match name.strip_prefix("@@") {
                    Some(name) => Cow::Owned(format!("@{name}")),
                    None => name,
                };
                properties.push((name, value));
                continue;
            }
        };
        parts.push((Cow::Borrowed(part), value));
    }
    let message = match (message, &template) {
        (Some(message), _) => Some(message),
        (None, Some(Value::Text(template))) => {
            Some(filled(template, &properties).map_or_else(|| Value::text(template.clone()), Value::text))
        }
        (None, _) => None,
    };
    let differs = message.is_some() && template.is_some() && message != template;
    parts.extend(message.map(|message| (Cow::Borrowed("message"), message)));
    parts.extend(logger.map(|logger| (Cow::Borrowed("logger"), logger)));
    let mut record = json_line::from_pairs(parts);
    if !has_level {
        record.level = DEFAULT_LEVEL;
    }
    // Properties are the program's own values, so they are never parts of the record.
    record.fields.extend(template.filter(|_| differs).map(|template| (Cow::Borrowed("message_template"), template)));
    record.fields.extend(properties);
    record
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_in_clef_is_read() {
        let line =
            br#"{"@t":"2023-11-14T22:13:20.125Z","@mt":"{User} paid {Cents:000} of {Other} {{x}}","@l":"Warning",
            "@x":"System.Exception: no","@tr":"t","@sp":"s","@i":"1f","User":"Ann","Cents":7,"@@odd":1,"host":"h",
            "SourceContext":"Shop"}"#;

        assert_eq!(
            json!({
                "time_ns": 1_700_000_000_125_000_000_i64, "level": 30, "logger": "Shop",
                "message": "Ann paid 7 of {Other} {x}", "exception": "System.Exception: no", "trace_id": "t",
                "span_id": "s",
                "fields": {"event_type": "1f", "message_template": "{User} paid {Cents:000} of {Other} {{x}}",
                    "User": "Ann", "Cents": 7, "@odd": 1, "host": "h"},
            }),
            serde_json::to_value(read_clef(line).unwrap()).unwrap()
        );
        assert_eq!(20, read_clef(br#"{"@m":"x"}"#).unwrap().level);
    }

    #[test]
    fn an_event_of_the_envelope_is_read() {
        let event = br#"{"Timestamp":"2023-11-14T22:13:20.125Z","Level":"Error","MessageTemplate":"a {B}",
            "Properties":{"B":[1],"@c":2},"Exception":"e"}"#;

        assert_eq!(
            json!({
                "time_ns": 1_700_000_000_125_000_000_i64, "level": 40, "logger": "", "message": "a [1]",
                "exception": "e", "fields": {"message_template": "a {B}", "B": [1], "@c": 2},
            }),
            serde_json::to_value(read_raw(event).unwrap()).unwrap()
        );
    }
}
