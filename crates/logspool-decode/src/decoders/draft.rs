//! Builds a record from named values, in any order.
//!
//! Each part of a record is known by all its usual names (`parts.rs`). If several names give one part, the first
//! counts. The other values, and values that do not fit, become fields. When all values are there, the keys show who
//! the sender is (`shapes.rs`), which decides about the remaining fields and the scale of the level.

use std::borrow::Cow;

use super::convert::{self, into_text};
use super::levels::{self, Scale};
use super::line_parts::{self, OutputEnd};
use super::marks::{CONTAINER, Marks, PART, STREAM};
use super::parts::{self, Part};
use super::shapes::{self, Shape};
use super::times;
use crate::record::Record;
use crate::value::Value;

/// Maximum depth of objects that are searched for parts. The deepest part is `log.origin.file.name`.
const MAX_DEPTH: usize = 4;

/// A record that is being built.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub record: Record<'a>,
    pub has_logger: bool,
    has_message: bool,
    level: SentLevel<'a>,
    /// The scale of level numbers, if the protocol defines it.
    pub scale: Option<Scale>,
    marks: Marks,
    /// How the message ends, if it is a line of output.
    output: Option<OutputEnd>,
    /// A message that is no text, with its name.
    other_message: Option<(Cow<'a, str>, Value<'a>)>,
    template: Option<Cow<'a, str>>,
    shape: Option<&'static Shape>,
}

/// The level as sent.
#[derive(Debug, Default)]
enum SentLevel<'a> {
    #[default]
    None,
    /// Known, on Python's scale.
    Known(u16),
    /// A number on a scale that is not known yet, with its name and value.
    Number(i64, Cow<'a, str>, Value<'a>),
}

impl<'a> Draft<'a> {
    /// Stores a value in the part of the record to which it belongs, or as a field.
    pub fn set(&mut self, name: Cow<'a, str>, value: Value<'a>) {
        let Some(known) = parts::known(&name) else { return self.record.fields.push((name, value)) };
        if let Some(mark) = known.mark {
            self.marks.add(mark.of(&value));
        }
        let unused = match (known.part, value) {
            (_, Value::Map(pairs)) if known.has_parts_inside => self.search(name.clone(), pairs, MAX_DEPTH),
            (Some(part), value) => self.put(part, &name, value),
            (None, value) => Some(value),
        };
        self.record.fields.extend(unused.map(|value| (name, value)));
    }

    /// Searches an object for parts. Returns the rest of it.
    fn search(&mut self, path: Cow<'a, str>, pairs: Vec<(Cow<'a, str>, Value<'a>)>, depth: usize) -> Option<Value<'a>> {
        let mut rest = Vec::new();
        let was_empty = pairs.is_empty();
        for (name, value) in pairs {
            let inner = format!("{path}.{name}");
            let shaped = self.shape.and_then(|shape| shape.part(&inner));
            let known = parts::known(&inner);
            let has_parts = known.is_some_and(|known| known.has_parts_inside)
                || self.shape.is_some_and(|shape| shape.has_parts_inside(&inner));
            let unused = match (shaped.or_else(|| known.and_then(|known| known.part)), value) {
                (Some(part), value) => self.put(part, &inner, value),
                (None, Value::Map(pairs)) if has_parts && depth > 0 => self.search(inner.into(), pairs, depth - 1),
                (None, value) => Some(value),
            };
            rest.extend(unused.map(|value| (name, value)));
        }
        (was_empty || !rest.is_empty()).then_some(Value::Map(rest))
    }

    /// Stores a value in a part. Returns the value if it does not fit, or the part is already set.
    pub fn put(&mut self, part: Part, name: &str, value: Value<'a>) -> Option<Value<'a>> {
        let record = &mut self.record;
        let place = match part {
            Part::Time => {
                let Some(time) = times::read(&value).filter(|_| record.time_ns.is_none()) else { return Some(value) };
                record.time_ns = Some(time.nanoseconds);
                record.lacks_zone = time.lacks_zone;
                return None;
            }
            Part::Nanoseconds => {
                let Value::Int(time) = value else { return Some(value) };
                record.time_ns = Some(time);
                return None;
            }
            Part::Level | Part::PythonLevel | Part::OtelLevel => return self.put_level(part, name, value),
            Part::Message | Part::MessageText | Part::OutputLine | Part::MessageBytes => {
                return self.put_message(part, name, value);
            }
            Part::Arguments => return self.put_arguments(value),
            Part::Template => {
                return match value {
                    Value::Text(text) if self.template.is_none() => {
                        self.template = Some(text);
                        None
                    }
                    value => Some(value),
                };
            }
            Part::Logger => {
                return match value {
                    Value::Text(text) if !self.has_logger => {
                        record.logger = text;
                        self.has_logger = true;
                        None
                    }
                    value => Some(value),
                };
            }
            Part::Line => return set_number(&mut record.line, value),
            Part::Process => return set_number(&mut record.process, value),
            Part::Thread => match set_number(&mut record.thread, value) {
                Some(Value::Text(text)) if record.thread_name.is_none() => {
                    record.thread_name = Some(text);
                    return None;
                }
                unused => return unused,
            },
            Part::Caller => return set_caller(record, value),
            Part::Fields => {
                let Value::Map(pairs) = value else { return Some(value) };
                record.fields.extend(pairs);
                return None;
            }
            Part::Repeated => return None,
            Part::File => &mut record.file,
            Part::Function => &mut record.function,
            Part::Host => &mut record.host,
            Part::ProcessName => &mut record.process_name,
            Part::ThreadName => &mut record.thread_name,
            Part::Task => &mut record.task,
            Part::TraceId => &mut record.trace_id,
            Part::SpanId => &mut record.span_id,
            Part::Exception => &mut record.exception,
            Part::Stack => &mut record.stack,
        };
        match value {
            Value::Text(text) if place.is_none() => *place = Some(text),
            value => return Some(value),
        }
        None
    }

    fn put_level(&mut self, part: Part, name: &str, value: Value<'a>) -> Option<Value<'a>> {
        if !matches!(self.level, SentLevel::None) {
            return Some(value);
        }
        let number = levels::number(&value);
        let stated = match part {
            Part::PythonLevel => number.and_then(|number| Scale::Python.level(number)),
            Part::OtelLevel => number.and_then(|number| Scale::OpenTelemetry.level(number)),
            _ => None,
        };
        if let Some(level) = stated {
            self.level = SentLevel::Known(level);
            return None;
        }
        if let Some(number) = number {
            self.level = SentLevel::Number(number, Cow::Owned(name.to_owned()), value);
            return None;
        }
        let Value::Text(text) = &value else { return Some(value) };
        let Some(named) = levels::named(text) else { return Some(value) };
        self.level = SentLevel::Known(named.level);
        if named.is_specific {
            self.keep_level_name(levels::without_colours(text).trim().to_owned());
        }
        None
    }

    /// Keeps the name of a level that says more than the level itself.
    pub fn keep_level_name(&mut self, name: impl Into<Cow<'a, str>>) {
        self.record.fields.push((Cow::Borrowed("severity"), Value::text(name)));
    }

    fn put_message(&mut self, part: Part, name: &str, value: Value<'a>) -> Option<Value<'a>> {
        if self.has_message {
            return Some(value);
        }
        match value {
            Value::Text(text) => {
                self.record.message = match part {
                    Part::OutputLine => {
                        self.output = Some(OutputEnd::of(&text));
                        without_line_end(text)
                    }
                    _ => text,
                };
                self.has_message = true;
            }
            Value::List(bytes) if part == Part::MessageBytes => {
                let byte = |value: &Value<'_>| convert::number::<u8>(value);
                let Some(bytes) = bytes.iter().map(byte).collect::<Option<Vec<u8>>>() else {
                    return Some(Value::List(bytes));
                };
                self.record.message = Cow::Owned(convert::lossy(&bytes).into_owned());
                self.has_message = true;
            }
            value if part == Part::Message && value != Value::Null && self.other_message.is_none() => {
                self.other_message = Some((Cow::Owned(name.to_owned()), value));
            }
            value => return Some(value),
        }
        None
    }

    fn put_arguments(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        let Value::List(values) = value else { return Some(value) };
        if self.has_message {
            return Some(Value::List(values));
        }
        let text: Vec<_> = values.iter().map(text_of).collect();
        self.record.message = Cow::Owned(text.join(" "));
        self.has_message = true;
        // Objects among the arguments can then be searched.
        values.iter().any(|value| !matches!(value, Value::Text(_))).then_some(Value::List(values))
    }

    /// Completes the record.
    pub fn finish(mut self) -> Record<'a> {
        self.shape = shapes::of(self.marks);
        if let Some(shape) = self.shape.filter(|shape| !shape.keys.is_empty()) {
            self.apply(shape);
        }
        for (name, part) in parts::WEAK {
            let is_missing = match part {
                Part::Time => self.record.time_ns.is_none(),
                _ => !self.has_message,
            };
            if is_missing && !self.record.fields.is_empty() {
                self.move_field(name, *part);
            }
        }
        self.finish_message();
        self.finish_level();
        if self.marks.has_any(Marks(STREAM | PART | CONTAINER)) {
            self.record.part = line_parts::part(&self.record.fields, self.marks, self.output);
        }
        self.record
    }

    /// Moves the fields that are parts for this sender.
    fn apply(&mut self, shape: &'static Shape) {
        for (name, value) in std::mem::take(&mut self.record.fields) {
            let rest = match value {
                Value::Map(pairs) if shape.has_parts_inside(&name) => self.search(name.clone(), pairs, MAX_DEPTH),
                value => Some(value),
            };
            let unused = match (shape.part(&name), rest) {
                (Some(part), Some(value)) => self.put(part, &name, value),
                (_, rest) => rest,
            };
            self.record.fields.extend(unused.map(|value| (name, value)));
        }
    }

    fn move_field(&mut self, name: &str, part: Part) {
        let Some(at) = self.record.fields.iter().position(|(field, _)| field == name) else { return };
        let (name, value) = self.record.fields.remove(at);
        if let Some(value) = self.put(part, &name, value) {
            self.record.fields.insert(at, (name, value));
        }
    }

    fn finish_message(&mut self) {
        if let Some(template) = self.template.take() {
            if self.has_message {
                self.record.fields.push((Cow::Borrowed("@mt"), Value::Text(template)));
            } else {
                self.record.message = filled(&template, &self.record.fields).map_or(template, Cow::Owned);
                self.has_message = true;
            }
        }
        match self.other_message.take() {
            Some((_, value)) if !self.has_message => self.record.message = Cow::Owned(text_of(&value)),
            Some(field) => self.record.fields.push(field),
            None => {}
        }
        // The formatted text of loguru ends with the traceback.
        if self.shape.is_some_and(|shape| shape.name == "loguru") {
            self.split_text();
        }
    }

    fn split_text(&mut self) {
        const BEGIN: &str = "Traceback (most recent call last):";
        let Some(at) = self.record.fields.iter().position(|(name, _)| name == "text") else { return };
        let (_, text) = self.record.fields.remove(at);
        let text = into_text(text);
        if let Some(begin) = text.find(BEGIN).filter(|_| self.record.exception.is_none()) {
            self.record.exception = Some(Cow::Owned(text[begin..].trim_end().to_owned()));
        }
    }

    fn finish_level(&mut self) {
        let shape_level = self.shape.map_or(0, |shape| shape.level);
        match std::mem::take(&mut self.level) {
            SentLevel::None if self.record.level == 0 => self.record.level = shape_level,
            SentLevel::None => {}
            SentLevel::Known(level) => self.record.level = level,
            SentLevel::Number(number, name, value) => {
                let scale = self.scale.or(self.shape.and_then(|shape| shape.scale)).unwrap_or(Scale::Python);
                if self.scale.is_none() {
                    self.record.sent_level = Some(number);
                }
                // If the keys misled, Python's scale is the next guess.
                let guess = || Scale::Python.level(number).filter(|_| self.scale.is_none());
                match scale.level(number).or_else(guess) {
                    Some(level) => {
                        self.record.level = level;
                        if let Some(name) = scale.name_of(number) {
                            self.keep_level_name(name);
                        }
                    }
                    None => {
                        self.record.level = shape_level.max(self.record.level);
                        self.record.fields.push((name, value));
                    }
                }
            }
        }
    }
}

/// The text without the line end that Docker keeps.
fn without_line_end(text: Cow<'_, str>) -> Cow<'_, str> {
    let length = text.strip_suffix('\n').map_or(text.len(), |line| line.strip_suffix('\r').unwrap_or(line).len());
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..length]),
        Cow::Owned(mut text) => {
            text.truncate(length);
            Cow::Owned(text)
        }
    }
}

/// A value as text: text itself, everything else as JSON.
fn text_of(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.clone().into_owned(),
        other => serde_json::to_string(other).expect("values have no keys but text"),
    }
}

/// Stores a number that is an integer or text. Returns the value if it does not fit, or the place is taken.
fn set_number<'a, N>(place: &mut Option<N>, value: Value<'a>) -> Option<Value<'a>>
where
    N: TryFrom<i64> + std::str::FromStr,
{
    if place.is_some() {
        return Some(value);
    }
    *place = match &value {
        Value::Text(text) => text.parse().ok(),
        other => convert::number(other),
    };
    place.is_none().then_some(value)
}

/// Splits `FILE:LINE`.
fn set_caller<'a>(record: &mut Record<'a>, value: Value<'a>) -> Option<Value<'a>> {
    let split = |text: &str| -> Option<(usize, u32)> {
        let (file, line) = text.rsplit_once(':')?;
        Some((file.len(), line.parse().ok()?))
    };
    match value {
        Value::Text(text) if record.file.is_none() && record.line.is_none() => match split(&text) {
            Some((length, line)) => {
                record.line = Some(line);
                record.file = Some(match text {
                    Cow::Borrowed(text) => Cow::Borrowed(&text[..length]),
                    Cow::Owned(text) => Cow::Owned(text[..length].to_owned()),
                });
                None
            }
            None => Some(Value::Text(text)),
        },
        value => Some(value),
    }
}

/// Renders a message template: replaces `{Name}`, `{@Name}`, `{Name:format}` and `{Name,width}` by the values of the
/// fields, and `{{` and `}}` by braces. A name without a field stays as it is. `None`: the template has no braces.
pub(super) fn filled(template: &str, fields: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    if !template.contains(['{', '}']) {
        return None;
    }
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        text.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            text.push_str(brace);
            rest = after;
            continue;
        }
        let place = (brace == "{").then(|| after.split_once('}')).flatten();
        let value = place.and_then(|(place, _)| {
            let name = place.split([':', ',']).next().unwrap_or_default().trim_start_matches(['@', '$']);
            fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
        });
        match (place, value) {
            (Some((_, after)), Some(value)) => {
                text.push_str(&text_of(value));
                rest = after;
            }
            _ => {
                text.push_str(brace);
                rest = after;
            }
        }
    }
    text.push_str(rest);
    Some(text)
}
