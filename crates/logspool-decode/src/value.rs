//! A value of a record's field, with the types of JSON. Text is borrowed from the frame if possible.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// The value null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A double. JSON has no infinity and no NaN, so these become text in JSON.
    Float(f64),
    /// Text. Also used for values without a JSON type: large integers, times, decimals.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Self>),
    /// Named values, in the order in which they came.
    Map(Vec<(Cow<'a, str>, Self)>),
}

impl<'a> Value<'a> {
    /// Creates a text value.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    /// The value as Python prints it, as far as its type is known.
    pub fn printed(&self) -> String {
        match self {
            Self::Null => "None".to_owned(),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) if value.is_nan() => "nan".to_owned(),
            Self::Float(value) => format!("{value:?}"),
            Self::Text(text) => text.clone().into_owned(),
            Self::List(values) => format!("[{}]", values.iter().map(Self::printed).collect::<Vec<_>>().join(", ")),
            Self::Map(pairs) => {
                let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}: {}", value.printed())).collect();
                format!("{{{}}}", pairs.join(", "))
            }
        }
    }

    /// Copies all borrowed text.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Float(value) => Value::Float(value),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::List(values) => Value::List(values.into_iter().map(Self::into_owned).collect()),
            Self::Map(pairs) => {
                let owned = |(name, value): (Cow<'a, str>, Self)| (Cow::Owned(name.into_owned()), value.into_owned());
                Value::Map(pairs.into_iter().map(owned).collect())
            }
        }
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

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        LimitedValue(&ValueBudget::new(usize::MAX)).deserialize(from)
    }
}

/// Says whether the values have all digits of their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// They have.
    Exact,
    /// A double is so large that it may have been an integer with more digits.
    Rounded,
}

/// Parses JSON with at most `most` values. Each value of a list or map counts, and so does each name.
///
/// # Errors
///
/// The text is not JSON, or has more than `most` values.
pub fn from_json(json: &[u8], most: usize) -> serde_json::Result<(Value<'_>, Precision)> {
    let mut from = serde_json::Deserializer::from_slice(json);
    let budget = ValueBudget::new(most);
    let value = LimitedValue(&budget).deserialize(&mut from)?;
    from.end()?;
    Ok((value, budget.precision.get()))
}

/// The number of values that may still be parsed, and the facts noticed until now.
struct ValueBudget {
    left: Cell<usize>,
    precision: Cell<Precision>,
}

impl ValueBudget {
    fn new(most: usize) -> Self {
        Self { left: Cell::new(most), precision: Cell::new(Precision::Exact) }
    }
}

/// Parses a value. Parsing fails when no more values may be parsed.
#[derive(Clone, Copy)]
struct LimitedValue<'c>(&'c ValueBudget);

impl LimitedValue<'_> {
    fn count<E: Error>(self) -> Result<(), E> {
        let left = self.0.left.get().checked_sub(1).ok_or_else(|| E::custom("too many values"))?;
        self.0.left.set(left);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for LimitedValue<'_> {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value<'de>, D::Error> {
        self.count()?;
        from.deserialize_any(self)
    }
}

/// Parses a name in a map. It is borrowed from the input if it has no escapes.
struct MapName<'c>(LimitedValue<'c>);

impl<'de> DeserializeSeed<'de> for MapName<'_> {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        self.0.count()?;
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for MapName<'_> {
    type Value = Cow<'de, str>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("text")
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(value.to_owned()))
    }
}

impl<'de> Visitor<'de> for LimitedValue<'_> {
    type Value = Value<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value<'de>, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value<'de>, E> {
        Ok(i64::try_from(value).map_or_else(|_| Value::text(value.to_string()), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value<'de>, E> {
        // Integers beyond 64 bits arrive here.
        if value.abs() >= 9.2e18 {
            self.0.precision.set(Precision::Rounded);
        }
        Ok(Value::Float(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = from.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some((name, value)) = from.next_entry_seed(MapName(self), self)? {
            values.push((name, value));
        }
        Ok(Value::Map(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_too_many_values_is_an_error_before_they_are_kept() {
        let json = br#"{"a":[1,2,{"b":null}]}"#;

        assert_eq!(br#"{"a":[1,2,{"b":null}]}"#, &*serde_json::to_vec(&from_json(json, 8).unwrap().0).unwrap());
        assert!(from_json(json, 7).unwrap_err().to_string().starts_with("too many values at line 1"));
        assert!(from_json(b"1 2", 7).is_err());
    }
}
