//! Options that users give: one row each, with name, type, default, unit, range and meaning.
//!
//! Signatures, checks, stubs and reference pages come from these rows, in every language. A struct of options is
//! declared by [`options!`](crate::options), in the file of the part that reads it. A default outside its range does not
//! compile.

use std::fmt;

use crate::nearest::nearest;
pub use logspool_record::definition::OptionValue;
use logspool_record::definition::Zone;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionRow {
    /// As users write it.
    pub name: &'static str,
    /// Which values it takes.
    pub shape: OptionShape,
    /// Its value where none is given.
    pub default: OptionDefault,
    /// Unit of a number, empty where it has none.
    pub unit: &'static str,
    /// Least and greatest value of a number.
    pub range: OptionRange,
    /// What it does, for the reference page.
    pub meaning: &'static str,
}

/// The type of an option. Where the default is [`OptionDefault::Nothing`] the option may also be absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionShape {
    /// Any text.
    Text,
    /// Path of a file or folder. It is absolute when it gets here.
    Path,
    /// Yes or no.
    Switch,
    /// A whole number.
    Whole,
    /// A number of seconds, whole or not.
    Seconds,
    /// Levels, by number or name.
    Levels,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// The value of an option that is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionDefault {
    /// There is none: the option has to be given.
    Required,
    /// The option is absent.
    Nothing,
    /// Of a switch.
    Switch(bool),
    /// Of a whole number.
    Whole(i128),
    /// Of a number of seconds.
    Seconds(f64),
    /// Of a text, a path or a choice.
    Text(&'static str),
}

/// Values that a number may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionRange {
    /// All of its type.
    Any,
    /// Whole numbers.
    Whole(i128, i128),
    /// Seconds. The greatest may be infinite.
    Seconds(f64, f64),
}

/// Why options are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// There is no such option. The text names the nearest.
    Unknown(String),
    /// There is no such kind. The text names the nearest.
    Kind(String),
    /// A required option is not given.
    Missing(String),
    /// A value is of the wrong type.
    Type(String),
    /// A value is out of its range, or makes no sense.
    Value(String),
}

impl OptionRow {
    /// Refuses rows with a default of another type or out of range, at compile time.
    pub const fn check_all(rows: &[Self]) {
        let mut index = 0;
        while index < rows.len() {
            rows[index].check_default();
            index += 1;
        }
    }

    const fn check_default(&self) {
        match (self.default, self.shape) {
            (OptionDefault::Required | OptionDefault::Nothing, _) => {}
            (OptionDefault::Switch(_), OptionShape::Switch) => {}
            (OptionDefault::Whole(number), OptionShape::Whole) => match self.range {
                OptionRange::Any => {}
                OptionRange::Whole(least, most) => {
                    assert!(least <= number && number <= most, "a default is outside its range");
                }
                OptionRange::Seconds(..) => panic!("a whole number has a range of seconds"),
            },
            (OptionDefault::Seconds(number), OptionShape::Seconds) => match self.range {
                OptionRange::Any => {}
                OptionRange::Seconds(least, most) => {
                    assert!(least <= number && number <= most, "a default is outside its range");
                }
                OptionRange::Whole(..) => panic!("a number of seconds has a range of whole numbers"),
            },
            (OptionDefault::Text(_), OptionShape::Text | OptionShape::Path) => {}
            (OptionDefault::Text(word), OptionShape::Choice(words)) => {
                assert!(is_among(word, words), "a default is none of its choices");
            }
            _ => panic!("a default is of another type than its option"),
        }
    }

    /// The value that stands for an option that is not given; `None` where it has to be given.
    pub fn default_value(&self) -> Option<OptionValue> {
        Some(match self.default {
            OptionDefault::Required | OptionDefault::Seconds(_) => return None,
            OptionDefault::Nothing => OptionValue::Nothing,
            OptionDefault::Switch(value) => OptionValue::Switch(value),
            OptionDefault::Whole(value) => OptionValue::Whole(value),
            OptionDefault::Text(value) => OptionValue::Text(value.to_owned()),
        })
    }

    /// Checks type and range of a value.
    ///
    /// # Errors
    ///
    /// Says what was given and what is allowed.
    pub fn check(&self, value: &OptionValue) -> Result<(), OptionError> {
        let (name, unit) = (self.name, if self.unit.is_empty() { "" } else { " of " });
        let wrong = |wanted: &str| Err(OptionError::Type(format!("{name} must be {wanted}, not {value}")));
        match (self.shape, value) {
            (_, OptionValue::Nothing) if self.default == OptionDefault::Nothing => Ok(()),
            (OptionShape::Text | OptionShape::Path, OptionValue::Text(_)) => Ok(()),
            (OptionShape::Switch, OptionValue::Switch(_)) => Ok(()),
            (OptionShape::Choice(words), OptionValue::Text(word)) if words.contains(&word.as_str()) => Ok(()),
            (OptionShape::Choice(words), OptionValue::Text(word)) => {
                let near = suggestion(word, words.iter().copied());
                Err(OptionError::Value(format!("{name} has no value {word:?}; {near}")))
            }
            (OptionShape::Whole, OptionValue::Whole(number)) => match self.range {
                OptionRange::Whole(least, most) if !(least..=most).contains(number) => {
                    let unit = self.unit;
                    let space = if unit.is_empty() { "" } else { " " };
                    Err(OptionError::Value(format!("{name} must be {least} to {most}{space}{unit}, not {number}")))
                }
                _ => Ok(()),
            },
            (OptionShape::Text | OptionShape::Choice(_), _) => wrong("text"),
            (OptionShape::Path, _) => wrong("a path"),
            (OptionShape::Switch, _) => wrong("true or false"),
            (OptionShape::Whole, _) => wrong(&format!("a whole number{unit}{}", self.unit)),
            (OptionShape::Seconds, _) => wrong("a number of seconds"),
            (OptionShape::Levels, _) => wrong("a collection of levels"),
        }
    }
}

const fn is_among(word: &str, words: &[&str]) -> bool {
    let mut index = 0;
    while index < words.len() {
        if is_same_text(word.as_bytes(), words[index].as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn is_same_text(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// Names the known word that is most like `word`, or all of them where none is like it.
pub fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("the nearest one is {near:?}"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Puts the values that were given into the order of `rows`, with the defaults of the others.
///
/// # Errors
///
/// An option that `owner` does not have, a required one that is missing, a value of another type or out of range.
pub fn ordered(
    owner: &str,
    rows: &[OptionRow],
    given: impl IntoIterator<Item = (String, OptionValue)>,
) -> Result<Vec<OptionValue>, OptionError> {
    let mut values: Vec<Option<OptionValue>> = rows.iter().map(|_| None).collect();
    for (name, value) in given {
        let Some(index) = rows.iter().position(|row| row.name == name) else {
            let near = suggestion(&name, rows.iter().map(|row| row.name));
            return Err(OptionError::Unknown(format!("{owner} has no option {name:?}; {near}")));
        };
        rows[index].check(&value)?;
        values[index] = Some(value);
    }
    let filled = values.into_iter().zip(rows).map(|(value, row)| {
        let missing = || OptionError::Missing(format!("{owner} needs the option {:?}", row.name));
        value.or_else(|| row.default_value()).ok_or_else(missing)
    });
    filled.collect()
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unknown(text) | Self::Kind(text) | Self::Missing(text) | Self::Type(text) | Self::Value(text)) =
            self;
        formatter.write_str(text)
    }
}

impl std::error::Error for OptionError {}

/// A struct of options, declared by [`options!`](crate::options).
pub trait OptionTable: Sized {
    /// What the part does, for the reference page.
    const ABOUT: &'static str;
    /// Its options, in the order of the struct.
    const ROWS: &'static [OptionRow];

    /// The values in the order of the rows.
    fn values(&self) -> Vec<OptionValue>;

    /// Reads what [`OptionTable::values`] made, or values that were checked against the rows.
    ///
    /// # Errors
    ///
    /// Names the option that has another type, or a value that its type refuses.
    fn from_values(values: &[OptionValue]) -> Result<Self, OptionError>;
}

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

/// Declares a struct of options and its rows.
///
/// Each option is a documented field: `name: type`, then `as Path` where text is a path, then `["unit", least..=most]` for a
/// number, then `= Whole(0)` or another [`OptionDefault`]; one without a default has to be given. Ranges are literals
/// or constants in braces.
///
/// ```
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// Path of the jar.
///         pub path: String as Path,
///         /// Records that fit.
///         pub records: u32 ["records", 1..=1000] = Whole(10),
///     }
/// }
/// use logspool::option::OptionTable;
/// assert_eq!("records", JarOptions::ROWS[1].name);
/// ```
///
/// A default outside its range is an error of the compiler:
///
/// ```compile_fail
/// logspool::options! {
///     /// Keeps records in a jar.
///     pub struct JarOptions {
///         /// Records that fit.
///         pub records: u32 ["records", 1..=1000] = Whole(0),
///     }
/// }
/// ```
#[macro_export]
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty $(as $shape:ident)?
                $([$unit:literal $(, $least:literal..=$most:tt)?])? $(= $default:ident $(($value:expr))?)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl $crate::option::OptionTable for $name {
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const ROWS: &'static [$crate::option::OptionRow] = &[$($crate::option::OptionRow {
                name: stringify!($field),
                shape: $crate::options!(@shape $type $(, $shape)?),
                default: $crate::options!(@default $($default $(($value))?)?),
                unit: concat!("" $(, $unit)?),
                range: $crate::options!(@range $($($least, $most)?)?),
                meaning: concat!($($doc, "\n"),+),
            }),*];

            fn values(&self) -> Vec<$crate::option::OptionValue> {
                vec![$($crate::option::OptionField::to_value(&self.$field)),*]
            }

            fn from_values(
                values: &[$crate::option::OptionValue],
            ) -> Result<Self, $crate::option::OptionError> {
                #[allow(unused_variables, unused_mut, reason = "a struct may have no options")]
                let mut values = values.iter();
                Ok(Self { $($field: $crate::option::next_field(stringify!($field), &mut values)?),* })
            }
        }

        const _: () = $crate::option::OptionRow::check_all(<$name as $crate::option::OptionTable>::ROWS);
    };
    (@shape $type:ty) => { <$type as $crate::option::OptionField>::SHAPE };
    (@shape $type:ty, $shape:ident) => { $crate::option::OptionShape::$shape };
    (@default) => { $crate::option::OptionDefault::Required };
    (@default $default:ident $(($value:expr))?) => { $crate::option::OptionDefault::$default $(($value))? };
    (@range) => { $crate::option::OptionRange::Any };
    (@range $least:literal, $most:tt) => { $crate::option::OptionRange::Whole($least, $most as i128) };
}
