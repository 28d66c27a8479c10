//! The field types that a struct of options can have, and how each of them reads a value.

use std::path::PathBuf;
use std::time::Duration;

use logspool_record::definition::{OptionValue, Zone};

use super::row::{OptionError, OptionShape};

/// A type that an option can have in its struct.
pub trait OptionField: Sized {
    /// The kind of values that users give for this type.
    const SHAPE: OptionShape;

    /// Whether the option may have no value.
    const IS_OPTIONAL: bool = false;

    /// Converts a value to this type.
    ///
    /// # Errors
    ///
    /// The text says why the value is not valid for this type.
    fn from_value(value: &OptionValue) -> Result<Self, String>;

    /// Converts the field to the value that [`OptionField::from_value`] reads.
    fn to_value(&self) -> OptionValue;
}

/// Takes the next value and converts it for the option `name`.
///
/// # Errors
///
/// The error names the option.
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
            OptionValue::Path(path) => path.to_str().map(str::to_owned).ok_or_else(|| format!("{value} is not UTF-8")),
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
                OptionValue::Whole(*self as i128)
            }
        })*
    };
}

whole_numbers!(u16, u32, u64, usize, i32, i64);

/// The longest time that an option can have. A greater or infinite number of seconds becomes this value.
pub const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

impl OptionField for Duration {
    const SHAPE: OptionShape = OptionShape::Seconds;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let seconds = match value {
            OptionValue::Seconds(seconds) => *seconds,
            OptionValue::Whole(seconds) => *seconds as f64,
            other => return Err(format!("{other} is no number of seconds")),
        };
        if seconds.is_nan() || seconds < 0.0 {
            return Err(format!("{seconds} is no length of time"));
        }
        Ok(Self::try_from_secs_f64(seconds).map_or(FOR_EVER, |duration| duration.min(FOR_EVER)))
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Seconds(if *self == FOR_EVER { f64::INFINITY } else { self.as_secs_f64() })
    }
}

impl OptionField for PathBuf {
    const SHAPE: OptionShape = OptionShape::Path;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Text(text) => Ok(text.into()),
            OptionValue::Path(path) => Ok(path.clone()),
            other => Err(format!("{other} is no path")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Path(self.clone())
    }
}

/// Numbers of levels. An absent value means no level.
impl OptionField for Vec<u16> {
    const SHAPE: OptionShape = OptionShape::Levels;
    const IS_OPTIONAL: bool = true;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Nothing => Ok(Self::new()),
            OptionValue::Levels(levels) => Ok(levels.clone()),
            other => Err(format!("{other} is no collection of levels")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Levels(self.clone())
    }
}

/// Texts. An absent value means none.
impl OptionField for Vec<String> {
    const SHAPE: OptionShape = OptionShape::Texts;
    const IS_OPTIONAL: bool = true;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match value {
            OptionValue::Nothing => Ok(Self::new()),
            OptionValue::Texts(texts) => Ok(texts.clone()),
            other => Err(format!("{other} is no collection of texts")),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Texts(self.clone())
    }
}

impl<T: OptionField> OptionField for Option<T> {
    const SHAPE: OptionShape = T::SHAPE;
    const IS_OPTIONAL: bool = true;

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fmt::Debug;
    use std::os::unix::ffi::OsStrExt;

    fn comes_back<T: OptionField + PartialEq + Debug>(field: T) {
        assert_eq!(Ok(&field), T::from_value(&field.to_value()).as_ref());
    }

    #[test]
    fn a_field_is_restored_from_its_value() {
        for duration in [Duration::ZERO, Duration::from_millis(10), Duration::from_secs(3600), FOR_EVER] {
            comes_back(duration);
        }
        comes_back(PathBuf::from(OsStr::from_bytes(b"/a\xff")));
        comes_back(vec![10, 65535]);
        comes_back(Some(7_usize));
        comes_back(None::<Vec<u16>>);
    }

    #[test]
    fn an_infinite_or_too_long_time_means_forever() {
        for seconds in [f64::INFINITY, 1e300] {
            assert_eq!(Ok(FOR_EVER), Duration::from_value(&OptionValue::Seconds(seconds)));
        }
    }

    #[test]
    fn a_path_that_is_not_utf8_is_not_text() {
        let path = OptionValue::Path(OsStr::from_bytes(b"/a\xff").into());

        assert_eq!(Err("\"/a\\xFF\" is not UTF-8".to_owned()), String::from_value(&path));
    }
}
