//! A value of a record's fields, with the types of JSON. Text is borrowed from the frame where it can be.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number; JSON has no infinity and no NaN, they become text there.
    Float(f64),
    /// Text; also what has no type of its own in JSON: large integers, times, decimals.
    Text(Cow<'a, str>),
    /// Values in their order.
    List(Vec<Self>),
    /// Values by name, in the order in which they came.
    Map(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Value<'a> {
    /// Text from anything that makes some.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Int(value) => to.serialize_i64(*value),
            Self::Float(value) if value.is_nan() => to.serialize_str("nan"),
            Self::Float(value) if value.is_infinite() => to.serialize_str(if *value > 0.0 { "inf" } else { "-inf" }),
            Self::Float(value) => to.serialize_f64(*value),
            Self::Text(value) => to.serialize_str(value),
            Self::List(values) => to.collect_seq(values),
            Self::Map(values) => {
                let mut map = to.serialize_map(Some(values.len()))?;
                for (name, value) in values {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}
