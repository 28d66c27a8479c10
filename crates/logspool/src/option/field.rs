//! Types of the fields in a struct of options, and how each reads a value.

use logspool_record::definition::{OptionValue, Zone};

use super::row::{OptionError, OptionShape};

/// A type that an option can have in its struct.
pub trait OptionField: Sized {
    /// Which values users give.
    const SHAPE: OptionShape;

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// Why it is none.
    fn from_value(value: &OptionValue) -> Result<Self, String>;

    /// The value that [`OptionField::from_value`] reads.
    fn to_value(&self) -> OptionValue;
}

/// Reads the next of some values for the option `name`.
///
/// # Errors
///
/// Names the option.
pub fn next_field<'a, T: OptionField>(
    name: &str,
    values: &mut impl Iterator<Item = &'a OptionValue>,
) -> Result<T, OptionError> {
    T::from_value(values.next().unwrap_or(&OptionValue::Nothing))
        .map_err(|why| OptionError::Value(format!("{name}: {why}")))
}

impl OptionField for String {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Text(text) => Ok(text.clone()),
            other => Err(format!("{other} is no text")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.clone())
    }
}

impl OptionField for bool {
    const SHAPE: OptionShape = OptionShape::Switch;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Switch(value) => Ok(*value),
            other => Err(format!("{other} is neither true nor false")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Switch(*self)
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {
        $(impl OptionField for $type {
            const SHAPE: OptionShape = OptionShape::Whole;

            fn from_value(value: &OptionValue) -> Result<Self, String> {
                let OptionValue::Whole(number) = value else { return Err(format!("{value} is no whole number")) };
                Self::try_from(*number).map_err(|_| format!("{number} is not {} to {}", Self::MIN, Self::MAX))
            }

            fn to_value(&self) -> OptionValue {
                OptionValue::Whole(i128::from(*self))
            }
        })*
    };
}

whole_numbers!(u16, u32, u64, i32, i64);

impl<T: OptionField> OptionField for Option<T> {
    const SHAPE: OptionShape = T::SHAPE;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Nothing => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }

    fn to_value(&self) -> OptionValue {
        self.as_ref().map_or(OptionValue::Nothing, T::to_value)
    }
}

impl OptionField for Zone {
    const SHAPE: OptionShape = OptionShape::Choice(&["local", "utc"]);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Text(word) if word == "local" => Ok(Self::Local),
            OptionValue::Text(word) if word == "utc" => Ok(Self::Utc),
            other => Err(format!("{other} is neither local nor utc")),
        }
    }

    fn to_value(&self) -> OptionValue {
        let word = match self {
            Self::Local => "local",
            Self::Utc => "utc",
        };
        OptionValue::Text(word.to_owned())
    }
}
