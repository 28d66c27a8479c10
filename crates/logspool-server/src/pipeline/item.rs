//! A row between two steps.

use std::sync::Arc;

use crate::query::{Field, FieldKind, FieldValues, path};
use crate::record::Record;
use crate::stores::RowValues;
use crate::value::Value;

/// A row between two steps.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A record. Columns that steps add are extra keys.
    Record(Box<Record<'static>>),
    /// Named values.
    Row(RowValues),
}

impl Item {
    /// The value of a field. `None`: the row has no value, or it is null.
    pub fn value(&self, field: &Field) -> Option<Value<'static>> {
        let found = match (self, field.kind()) {
            (Self::Row(_), _) => self.extra(field.name()).cloned(),
            (_, FieldKind::Any) => {
                path::values(field.name(), |key| self.extra(key)).first().map(|value| (*value).clone())
            }
            (Self::Record(_), FieldKind::Text) => self.text(field).map(|text| Value::text(text.to_owned())),
            (Self::Record(_), FieldKind::Number) => self.number(field).map(|number| match i64::try_from(number) {
                Ok(number) => Value::Int(number),
                Err(_) => Value::text(number.to_string()),
            }),
        };
        found.filter(|value| *value != Value::Null)
    }

    /// The time of the row, if it has one.
    pub fn time_ns(&self) -> Option<i64> {
        match self {
            Self::Record(record) => record.time_ns,
            Self::Row(_) => match self.extra("time")? {
                Value::Int(time) => Some(*time),
                _ => None,
            },
        }
    }

    /// Adds a column, or replaces the column of this name. A missing value of a record is left out.
    pub fn set(&mut self, name: &Arc<str>, value: Option<Value<'static>>) {
        match self {
            Self::Record(record) => {
                record.fields.retain(|(known, _)| **known != **name);
                record.fields.extend(value.map(|value| (name.to_string().into(), value)));
            }
            Self::Row(values) => {
                values.retain(|(known, _)| known != name);
                values.push((name.clone(), value.unwrap_or(Value::Null)));
            }
        }
    }

    /// Approximate size in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Record(record) => {
                let texts = [
                    record.file.as_deref(),
                    record.function.as_deref(),
                    record.host.as_deref(),
                    record.process_name.as_deref(),
                    record.thread_name.as_deref(),
                    record.task.as_deref(),
                    record.trace_id.as_deref(),
                    record.span_id.as_deref(),
                    record.exception.as_deref(),
                    record.stack.as_deref(),
                ];
                let texts: usize = texts.into_iter().flatten().map(str::len).sum();
                let fields: usize =
                    record.fields.iter().map(|(name, value)| size_of::<Value<'_>>() + name.len() + bytes(value)).sum();
                size_of::<Record<'_>>() + texts + record.logger.len() + record.message.len() + fields
            }
            Self::Row(values) => values.iter().map(|(_, value)| size_of::<Value<'_>>() + 16 + bytes(value)).sum(),
        }
    }
}

/// Size of the parts of a value that are not in the value itself.
pub(super) fn bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(values) => values.iter().map(|value| size_of::<Value<'_>>() + bytes(value)).sum(),
        Value::Map(pairs) => {
            pairs.iter().map(|(name, value)| 2 * size_of::<Value<'_>>() + name.len() + bytes(value)).sum()
        }
        _ => 0,
    }
}

impl FieldValues<'static> for Item {
    fn text(&self, field: &Field) -> Option<&str> {
        match self {
            Self::Record(record) => record.text(field),
            Self::Row(_) => match self.extra(field.name())? {
                Value::Text(text) => Some(text),
                _ => None,
            },
        }
    }

    fn number(&self, field: &Field) -> Option<i128> {
        match self {
            Self::Record(record) => record.number(field),
            Self::Row(_) => match self.extra(field.name())? {
                Value::Int(number) => Some((*number).into()),
                Value::Text(text) => text.parse().ok(),
                _ => None,
            },
        }
    }

    fn extra(&self, key: &str) -> Option<&Value<'static>> {
        match self {
            Self::Record(record) => record.extra(key),
            Self::Row(values) => values.iter().find(|(name, _)| **name == *key).map(|(_, value)| value),
        }
    }
}
