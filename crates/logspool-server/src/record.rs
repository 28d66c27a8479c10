//! A log record as the service knows it, whatever protocol it came by.

use std::borrow::Cow;

use serde::Serialize;
use serde::ser::SerializeMap;

use crate::value::Value;

/// One record. What a sender does not say is `None`, or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record<'a> {
    /// When it was logged, in nanoseconds since 1970; `None`: the sender does not say.
    pub time_ns: Option<i64>,
    /// The number of the level, as Python's `logging` counts: 10 DEBUG, 20 INFO, 30 WARNING, 40 ERROR, 50 CRITICAL.
    pub level: u16,
    /// Name of the logger.
    pub logger: Cow<'a, str>,
    /// The message, arguments put in.
    pub message: Cow<'a, str>,
    /// Path of the source file.
    pub file: Option<Cow<'a, str>>,
    /// Line in it, from 1.
    pub line: Option<u32>,
    /// Function around that line.
    pub function: Option<Cow<'a, str>>,
    /// Name of the machine.
    pub host: Option<Cow<'a, str>>,
    /// Id of the process.
    pub process: Option<u64>,
    /// Name of the process.
    pub process_name: Option<Cow<'a, str>>,
    /// Id of the thread, as the sender gives it.
    pub thread: Option<u64>,
    /// Name of the thread.
    pub thread_name: Option<Cow<'a, str>>,
    /// Name of the asyncio task.
    pub task: Option<Cow<'a, str>>,
    /// The trace that the record belongs to.
    pub trace_id: Option<Cow<'a, str>>,
    /// The span in it.
    pub span_id: Option<Cow<'a, str>>,
    /// An exception with its traceback, as text.
    pub exception: Option<Cow<'a, str>>,
    /// A stack, as text.
    pub stack: Option<Cow<'a, str>>,
    /// Everything else, in the order in which it came.
    pub fields: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl Record<'_> {
    /// The same, with text of its own.
    pub fn into_owned(self) -> Record<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let own = |found: Option<Cow<'_, str>>| found.map(text);
        Record {
            time_ns: self.time_ns,
            level: self.level,
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

struct Fields<'a, 'b>(&'b [(Cow<'a, str>, Value<'a>)]);

impl Serialize for Fields<'_, '_> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}
