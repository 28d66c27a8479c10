//! The parts of a record by the names that a query calls them.

use super::Field;

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Number,
    /// Text.
    Text,
    /// Anything that JSON can say.
    Any,
}

/// All but the extra keys.
static KNOWN: [Field; 17] = [
    Field::Time,
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
    /// All but the extra keys.
    pub fn known() -> &'static [Self] {
        &KNOWN
    }

    /// The field that is called so; the process is called `pid`, and `process` as in [`crate::record::Record`]. Any
    /// other name is a key of the fields.
    pub fn named(name: &str) -> Self {
        let name = if name == "process" { "pid" } else { name };
        KNOWN.iter().find(|field| field.name() == name).cloned().unwrap_or_else(|| Self::Extra(name.to_owned()))
    }

    /// What a query calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Time => "time",
            Self::Process => "pid",
            Self::Extra(key) => key,
            other => other.column().unwrap_or_default(),
        }
    }

    /// Its column in a store, named as in [`crate::batch::Row`]; extra keys have none of their own.
    pub fn column(&self) -> Option<&'static str> {
        Some(match self {
            Self::Time => "time_ns",
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
            Self::Extra(_) => return None,
        })
    }

    /// What its values are.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Time | Self::Level | Self::Line | Self::Process | Self::Thread => Kind::Number,
            Self::Extra(_) => Kind::Any,
            _ => Kind::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_known_by_its_name() {
        for field in &KNOWN {
            assert_eq!(*field, Field::named(field.name()));
        }
        assert_eq!(Field::Process, Field::named("process"));
        assert_eq!(Field::Extra("http.status".to_owned()), Field::named("http.status"));
    }
}
