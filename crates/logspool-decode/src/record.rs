//! A log record as the service keeps it, independent of the protocol.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::value::Value;

/// Containers cut long lines of their programs into parts, and send each part as a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LinePart {
    /// The record is not a part of a line.
    #[default]
    Whole,
    /// A part before the last one.
    Inner,
    /// A line of Docker's files without its line end. It is a part, unless something has removed all line ends.
    Unended,
    /// The last part, or the only one.
    Last,
}

/// One record. Values that the sender does not give are `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record<'a> {
    /// Time of logging in nanoseconds since 1970; `None`: not given.
    pub time_ns: Option<i64>,
    /// Time of arrival at the service in nanoseconds since 1970; `None`: not known.
    pub arrived_ns: Option<i64>,
    /// Number of the level, as in Python's `logging`: 10 DEBUG, 20 INFO, 30 WARNING, 40 ERROR, 50 CRITICAL.
    pub level: u16,
    /// The level as a number of the sender, if its scale was guessed. Stores do not keep it.
    pub sent_level: Option<i64>,
    /// True if the text of the time had no zone, so that it was read as UTC. Stores do not keep it.
    pub lacks_zone: bool,
    /// Whether the record is a whole line or a part of one. Stores do not keep it.
    pub part: LinePart,
    /// Name of the logger.
    pub logger: Cow<'a, str>,
    /// The message, with its arguments formatted.
    pub message: Cow<'a, str>,
    /// Path of the source file.
    pub file: Option<Cow<'a, str>>,
    /// Line number, from 1.
    pub line: Option<u32>,
    /// Function that contains the line.
    pub function: Option<Cow<'a, str>>,
    /// Name of the machine.
    pub host: Option<Cow<'a, str>>,
    /// Id of the process.
    pub process: Option<u64>,
    /// Name of the process.
    pub process_name: Option<Cow<'a, str>>,
    /// Id of the thread, as given by the sender.
    pub thread: Option<u64>,
    /// Name of the thread.
    pub thread_name: Option<Cow<'a, str>>,
    /// Name of the asyncio task.
    pub task: Option<Cow<'a, str>>,
    /// The trace that the record belongs to.
    pub trace_id: Option<Cow<'a, str>>,
    /// The span within the trace.
    pub span_id: Option<Cow<'a, str>>,
    /// An exception with its traceback, as text.
    pub exception: Option<Cow<'a, str>>,
    /// A stack, as text.
    pub stack: Option<Cow<'a, str>>,
    /// All other values, in the order in which they came.
    pub fields: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Record<'a> {
    /// The fields as a JSON object. If several fields have the same name, the later ones are called `name_2`, `name_3`
    /// and so on, because stores keep one value per name.
    pub fn fields_as_json(&self) -> String {
        serde_json::to_string(&Fields(&self.fields)).expect("values have no keys but text")
    }

    /// The fields of a JSON object; empty for other JSON.
    pub fn fields_from_json(object: &'a str) -> Vec<(Cow<'a, str>, Value<'a>)> {
        match serde_json::from_str(object) {
            Ok(Value::Map(fields)) => fields,
            _ => Vec::new(),
        }
    }

    /// Parses a record from JSON of this form; `None` for other JSON.
    pub fn from_json(object: &'a str) -> Option<Self> {
        let Ok(Value::Map(pairs)) = serde_json::from_str(object) else { return None };
        let mut record = Self::default();
        for (name, value) in pairs {
            record.set(&name, value);
        }
        Some(record)
    }

    fn set(&mut self, name: &str, value: Value<'a>) {
        let number = |value: &Value<'_>| match value {
            Value::Int(number) => u64::try_from(*number).ok(),
            // An integer above `i64::MAX` is text in JSON of this form.
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        match (name, value) {
            ("time_ns", Value::Int(time)) => self.time_ns = Some(time),
            ("arrived_ns", Value::Int(time)) => self.arrived_ns = Some(time),
            ("level", Value::Int(level)) => self.level = u16::try_from(level).unwrap_or_default(),
            ("logger", Value::Text(text)) => self.logger = text,
            ("message", Value::Text(text)) => self.message = text,
            ("fields", Value::Map(fields)) => self.fields = fields,
            ("line", value) => self.line = number(&value).and_then(|line| line.try_into().ok()),
            ("process", value) => self.process = number(&value),
            ("thread", value) => self.thread = number(&value),
            (name, Value::Text(text)) => {
                let place = match name {
                    "file" => &mut self.file,
                    "function" => &mut self.function,
                    "host" => &mut self.host,
                    "process_name" => &mut self.process_name,
                    "thread_name" => &mut self.thread_name,
                    "task" => &mut self.task,
                    "trace_id" => &mut self.trace_id,
                    "span_id" => &mut self.span_id,
                    "exception" => &mut self.exception,
                    "stack" => &mut self.stack,
                    _ => return,
                };
                *place = Some(text);
            }
            _ => {}
        }
    }

    /// Copies all borrowed text.
    pub fn into_owned(self) -> Record<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let own = |found: Option<Cow<'_, str>>| found.map(text);
        Record {
            time_ns: self.time_ns,
            arrived_ns: self.arrived_ns,
            level: self.level,
            sent_level: self.sent_level,
            lacks_zone: self.lacks_zone,
            part: self.part,
            logger: text(self.logger),
            message: text(self.message),
            file: own(self.file),
            line: self.line,
            function: own(self.function),
            host: own(self.host),
            process: self.process,
            process_name: own(self.process_name),
            thread: self.thread,
            thread_name: own(self.thread_name),
            task: own(self.task),
            trace_id: own(self.trace_id),
            span_id: own(self.span_id),
            exception: own(self.exception),
            stack: own(self.stack),
            fields: self.fields.into_iter().map(|(name, value)| (text(name), value.into_owned())).collect(),
        }
    }
}

impl Serialize for Record<'_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if let Some(time) = self.time_ns {
            map.serialize_entry("time_ns", &time)?;
        }
        if let Some(time) = self.arrived_ns {
            map.serialize_entry("arrived_ns", &time)?;
        }
        map.serialize_entry("level", &self.level)?;
        map.serialize_entry("logger", &self.logger)?;
        map.serialize_entry("message", &self.message)?;
        let texts = [
            ("file", &self.file),
            ("function", &self.function),
            ("host", &self.host),
            ("process_name", &self.process_name),
            ("thread_name", &self.thread_name),
            ("task", &self.task),
            ("trace_id", &self.trace_id),
            ("span_id", &self.span_id),
            ("exception", &self.exception),
            ("stack", &self.stack),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        let numbers = [("line", self.line.map(u64::from)), ("process", self.process), ("thread", self.thread)];
        for (name, number) in numbers {
            if let Some(number) = number {
                map.serialize_entry(name, &number)?;
            }
        }
        if !self.fields.is_empty() {
            map.serialize_entry("fields", &Fields(&self.fields))?;
        }
        map.end()
    }
}

/// True if there are few fields and all names differ. For few fields comparing all pairs is faster than a hash table.
fn are_few_and_different(fields: &[(Cow<'_, str>, Value<'_>)]) -> bool {
    fields.len() <= 8
        && fields.iter().enumerate().all(|(at, (name, _))| fields[..at].iter().all(|(other, _)| other != name))
}

struct Fields<'a, 'b>(&'b [(Cow<'a, str>, Value<'a>)]);

impl Serialize for Fields<'_, '_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if are_few_and_different(self.0) {
            for (name, value) in self.0 {
                map.serialize_entry(name, value)?;
            }
            return map.end();
        }
        // The number for the next field of each name.
        let mut names: HashMap<Cow<'_, str>, u32> = HashMap::with_capacity(self.0.len());
        for (name, value) in self.0 {
            let Some(mut number) = names.insert(Cow::Borrowed(&**name), 2) else {
                map.serialize_entry(name, value)?;
                continue;
            };
            let numbered = loop {
                let numbered = format!("{name}_{number}");
                number += 1;
                if !names.contains_key(&*numbered) {
                    break numbered;
                }
            };
            map.serialize_entry(&numbered, value)?;
            names.insert(Cow::Owned(numbered), 2);
            names.insert(Cow::Borrowed(&**name), number);
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_the_same_name_get_numbers() {
        let fields = ["a", "a_2", "a", "b", "a"].iter().zip(1..);
        let fields = fields.map(|(name, number)| (Cow::Borrowed(*name), Value::Int(number))).collect();
        let record = Record { fields, ..Record::default() };

        assert_eq!(r#"{"a":1,"a_2":2,"a_3":3,"b":4,"a_4":5}"#, record.fields_as_json());
    }

    #[test]
    fn json_of_a_record_is_read_back() {
        let record = Record {
            time_ns: Some(5),
            arrived_ns: Some(6),
            level: 40,
            message: "m".into(),
            thread: Some(u64::MAX),
            line: Some(3),
            task: Some("t".into()),
            fields: vec![("a".into(), Value::Null)],
            ..Record::default()
        };
        let json = serde_json::to_string(&record).unwrap();

        assert_eq!(Some(record), Record::from_json(&json));
        assert_eq!(None, Record::from_json("[]"));
    }
}
