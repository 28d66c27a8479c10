//! The fields of a record, by their names in a query.

use super::Field;

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// The values are integers.
    Number,
    /// The values are text.
    Text,
    /// The values can be any JSON values.
    Any,
}

/// All fields except extra keys.
static KNOWN: [Field; 21] = [
    Field::Time,
    Field::Arrived,
    Field::ArrivalDelay,
    Field::Hour,
    Field::Weekday,
    Field::Level,
    Field::Logger,
    Field::Message,
    Field::File,
    Field::Line,
    Field::Function,
    Field::Host,
    Field::Process,
    Field::ProcessName,
    Field::Thread,
    Field::ThreadName,
    Field::Task,
    Field::TraceId,
    Field::SpanId,
    Field::Exception,
    Field::Stack,
];

impl Field {
    /// All fields except extra keys.
    pub fn known() -> &'static [Self] {
        &KNOWN
    }

    /// The field with this name. The process id is `pid`; `process`, its name in [`crate::record::Record`], works as
    /// well. Any other name is an extra key. `fields.NAME` is the extra key of this name, also if a field has it.
    pub fn named(name: &str) -> Self {
        if let Some(key) = name.strip_prefix("fields.").filter(|key| !key.is_empty()) {
            return Self::Extra(key.to_owned());
        }
        let name = if name == "process" { "pid" } else { name };
        KNOWN.iter().find(|field| field.name() == name).cloned().unwrap_or_else(|| Self::Extra(name.to_owned()))
    }

    /// The field's name in a query.
    pub fn name(&self) -> &str {
        match self {
            Self::Time => "time",
            Self::Arrived => "arrived",
            Self::ArrivalDelay => "arrival_delay",
            Self::Hour => "time.hour",
            Self::Weekday => "time.weekday",
            Self::Process => "pid",
            Self::Extra(key) => key,
            other => other.column().unwrap_or_default(),
        }
    }

    /// The column of the field in a store. It has the name of the field in [`crate::batch::Row`]. `None`: the field has
    /// no column of its own.
    pub fn column(&self) -> Option<&'static str> {
        Some(match self {
            Self::Time => "time_ns",
            Self::Arrived => "arrived_ns",
            Self::Level => "level",
            Self::Logger => "logger",
            Self::Message => "message",
            Self::File => "file",
            Self::Line => "line",
            Self::Function => "function",
            Self::Host => "host",
            Self::Process => "process",
            Self::ProcessName => "process_name",
            Self::Thread => "thread",
            Self::ThreadName => "thread_name",
            Self::Task => "task",
            Self::TraceId => "trace_id",
            Self::SpanId => "span_id",
            Self::Exception => "exception",
            Self::Stack => "stack",
            Self::ArrivalDelay | Self::Hour | Self::Weekday | Self::Extra(_) => return None,
        })
    }

    /// The type of the field's values.
    pub fn kind(&self) -> FieldKind {
        match self {
            Self::Time
            | Self::Arrived
            | Self::ArrivalDelay
            | Self::Hour
            | Self::Weekday
            | Self::Level
            | Self::Line
            | Self::Process
            | Self::Thread => FieldKind::Number,
            Self::Extra(_) => FieldKind::Any,
            _ => FieldKind::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_recognised_by_its_name() {
        for field in &KNOWN {
            assert_eq!(*field, Field::named(field.name()));
        }
        assert_eq!(Field::Process, Field::named("process"));
        assert_eq!(Field::Extra("http.status".to_owned()), Field::named("http.status"));
        assert_eq!(Field::Extra("pid".to_owned()), Field::named("fields.pid"));
        assert_eq!(Field::Extra("fields.".to_owned()), Field::named("fields."));
    }
}
