//! Reads options and formats that are given as JSON text.

use logspool::option::{self, OptionRow, OptionShape, OptionValue, suggestion};
use logspool_record::definition::Zone;
use logspool_record::format::{ControlRule, Extras, FormatSpec, LevelWords, Style, unknown_directive};
use serde_json::{Map, Value};

use crate::status::Failure;

/// The layout of a sink that is opened without a format.
pub const DEFAULT_TEMPLATE: &str = "%(asctime)s %(levelname)s %(name)s %(message)s";

/// Keys of a format.
const FORMAT_KEYS: [&str; 13] = [
    "template",
    "pattern",
    "style",
    "date_format",
    "utc",
    "milliseconds",
    "terminator",
    "level_names",
    "level_words",
    "level",
    "escape_control",
    "json",
    "extras",
];
/// Keys that a format with a pattern does not take.
const NOT_WITH_PATTERN: [&str; 6] = ["template", "json", "style", "date_format", "milliseconds", "extras"];

/// Parses a JSON object. `what` names it in errors.
///
/// # Errors
///
/// The text is no JSON object. The error has the place in the text.
pub fn object(what: &str, text: &str) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Failure::invalid(format!("{what} must be a JSON object, not {text}"))),
        Err(error) => Err(Failure::invalid(format!("{what} is no JSON: {error}"))),
    }
}

/// The option values of an object, by the rows of a component.
///
/// # Errors
///
/// A value has a type that no option takes.
pub fn option_values(rows: &[OptionRow], object: Map<String, Value>) -> Result<Vec<(String, OptionValue)>, Failure> {
    object
        .into_iter()
        .map(|(name, value)| {
            let shape = rows.iter().find(|row| row.name == name).map(|row| row.shape);
            let value = option_value(&name, shape, value)?;
            Ok((name, value))
        })
        .collect()
}

fn option_value(name: &str, shape: Option<OptionShape>, value: Value) -> Result<OptionValue, Failure> {
    Ok(match value {
        Value::Null => OptionValue::Nothing,
        Value::Bool(value) => OptionValue::Switch(value),
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(number), _) => OptionValue::Whole(number),
            (None, Some(number)) => OptionValue::Seconds(number),
            _ => return Err(Failure::invalid(format!("{name} cannot be {number}"))),
        },
        Value::String(text) if shape == Some(OptionShape::Path) => OptionValue::Path(absolute(&text).into()),
        Value::String(text) if shape == Some(OptionShape::Seconds) && text == "inf" => {
            OptionValue::Seconds(f64::INFINITY)
        }
        Value::String(text) => OptionValue::Text(text),
        Value::Array(texts) if shape == Some(OptionShape::Texts) => {
            let texts: Option<Vec<String>> = texts.iter().map(|text| text.as_str().map(str::to_owned)).collect();
            OptionValue::Texts(texts.ok_or_else(|| Failure::invalid(format!("{name} must be a list of texts")))?)
        }
        Value::Array(levels) => {
            let all: Option<Vec<u16>> = levels.iter().map(level_of).collect();
            let all = all.ok_or_else(|| Failure::invalid(format!("{name} must be a list of levels")))?;
            OptionValue::Levels(all)
        }
        Value::Object(_) => return Err(Failure::invalid(format!("{name} cannot be an object"))),
    })
}

/// A level as its number or its name, in capitals or not.
fn level_of(level: &Value) -> Option<u16> {
    const NAMES: [(&str, u16); 7] =
        [("TRACE", 5), ("DEBUG", 10), ("INFO", 20), ("WARNING", 30), ("ERROR", 40), ("CRITICAL", 50), ("FATAL", 50)];
    match level {
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        Value::String(name) => {
            NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
        }
        _ => None,
    }
}

/// The path from the root. A path that the system cannot complete stays as it is.
pub fn absolute(path: &str) -> String {
    option::absolute(path.into()).to_string_lossy().into_owned()
}

/// How a sink treats records.
pub struct SinkFormat {
    /// The form of its lines.
    pub spec: FormatSpec,
    /// The lowest level that it takes.
    pub min_level: u16,
    /// The treatment of control characters, if the program names it.
    pub control: Option<ControlRule>,
}

/// Reads a format. `None` is the default one.
///
/// # Errors
///
/// The text is no JSON object, or has an unknown key or an impossible value.
pub fn format(text: Option<&str>) -> Result<SinkFormat, Failure> {
    let mut spec = FormatSpec::text(Style::Percent, DEFAULT_TEMPLATE);
    let (mut min_level, mut control) = (0, None);
    if let Some(text) = text {
        let object = object("the format", text)?;
        if let Some(name) = object.keys().find(|name| !FORMAT_KEYS.contains(&name.as_str())) {
            let near = suggestion(name, FORMAT_KEYS.into_iter());
            return Err(Failure::invalid(format!("a format has no key {name:?}; {near}")));
        }
        let style = match word(&object, "style")?.as_deref() {
            None | Some("%") => Style::Percent,
            Some("{") => Style::Brace,
            Some("$") => Style::Dollar,
            Some(other) => {
                return Err(Failure::invalid(format!("style must be \"%\", \"{{\" or \"$\", not {other:?}")));
            }
        };
        let template = word(&object, "template")?;
        let extras = if switch(&object, "extras")? { Extras::Append } else { Extras::Omit };
        let pattern = word(&object, "pattern")?;
        if let (Some(_), Some(other)) = (&pattern, NOT_WITH_PATTERN.iter().find(|key| object.contains_key(**key))) {
            return Err(Failure::invalid(format!("a format with a pattern has no {other}")));
        }
        spec = match object.get("json") {
            None if pattern.is_some() => FormatSpec::pattern(pattern.as_deref().unwrap_or_default()),
            None => FormatSpec::text(style, template.as_deref().unwrap_or(DEFAULT_TEMPLATE)),
            Some(Value::Object(fields)) => {
                let fields: Option<Vec<_>> =
                    fields.iter().map(|(key, attribute)| Some((key.as_str(), attribute.as_str()?))).collect();
                let fields = fields.ok_or_else(|| Failure::invalid("json must map keys to names of attributes"))?;
                FormatSpec::json(&fields, extras)
            }
            Some(_) => return Err(Failure::invalid("json must map keys to names of attributes")),
        };
        spec.date_format = word(&object, "date_format")?;
        if let Some(format) = &spec.date_format
            && let Some(directive) = unknown_directive(format)
        {
            return Err(Failure::invalid(format!("date_format {format:?}: strftime has no {directive}")));
        }
        if switch(&object, "utc")? {
            spec.zone = Zone::Utc;
        }
        if object.contains_key("milliseconds") {
            spec.default_msec_format = word(&object, "milliseconds")?;
        }
        if let Some(terminator) = word(&object, "terminator")? {
            spec.terminator = terminator;
        }
        if let Some(words) = word(&object, "level_words")? {
            spec.level_names = level_words(&words)?.names();
        }
        if let Some(names) = object.get("level_names") {
            spec.level_names = level_names(names)?;
        }
        if let Some(level) = object.get("level") {
            min_level = level_of(level).ok_or_else(|| {
                Failure::invalid(format!(
                    "level must be a number from 0 to 65535 or a name such as \"warning\", not {level}"
                ))
            })?;
        }
        if object.contains_key("escape_control") {
            let escapes = switch(&object, "escape_control")?;
            control = Some(if escapes { ControlRule::Escape } else { ControlRule::Keep });
        }
    }
    spec.process_id = std::process::id();
    Ok(SinkFormat { spec, min_level, control })
}

fn level_words(words: &str) -> Result<LevelWords, Failure> {
    Ok(match words {
        "upper" => LevelWords::Upper,
        "lower" => LevelWords::Lower,
        "short" => LevelWords::Short,
        "letter" => LevelWords::Letter,
        other => {
            let text = format!("level_words must be \"upper\", \"lower\", \"short\" or \"letter\", not {other:?}");
            return Err(Failure::invalid(text));
        }
    })
}

fn level_names(names: &Value) -> Result<Vec<(u16, String)>, Failure> {
    let pair = |(level, name): (&String, &Value)| Some((level.parse().ok()?, name.as_str()?.to_owned()));
    let pairs: Option<Vec<_>> = names.as_object().and_then(|names| names.iter().map(pair).collect());
    pairs.ok_or_else(|| Failure::invalid("level_names must map numbers of levels to texts"))
}

fn word(object: &Map<String, Value>, key: &str) -> Result<Option<String>, Failure> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(Failure::invalid(format!("{key} must be text, not {other}"))),
    }
}

fn switch(object: &Map<String, Value>, key: &str) -> Result<bool, Failure> {
    match object.get(key) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(other) => Err(Failure::invalid(format!("{key} must be true or false, not {other}"))),
    }
}
