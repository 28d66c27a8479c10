//! A row describes one option. This file also checks values against rows.

use std::fmt;

use crate::nearest::nearest;
use logspool_record::definition::OptionValue;

/// One option.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OptionRow {
    /// The name of the option, as users write it.
    pub name: &'static str,
    /// The kind of values that the option takes.
    pub shape: OptionShape,
    /// Whether the option may have no value.
    pub is_optional: bool,
    /// The value of the option if none is given.
    pub default: OptionDefault,
    /// Unit of a number; empty if the option has no unit.
    pub unit: &'static str,
    /// Minimum and maximum of a number.
    pub range: OptionRange,
    /// What the option does, for the reference page.
    pub meaning: &'static str,
}

/// The type of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionShape {
    /// Any text.
    Text,
    /// Path of a file or folder. The binding has already made it absolute.
    Path,
    /// Yes or no.
    Switch,
    /// A whole number.
    Whole,
    /// A number of seconds, whole or not.
    Seconds,
    /// Levels, by number or name.
    Levels,
    /// Several texts.
    Texts,
    /// One word of this list.
    Choice(&'static [&'static str]),
}

/// The default of an option: its value if the user gives none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionDefault {
    /// There is no default: the option is required.
    Required,
    /// By default the option has no value.
    Nothing,
    /// The default of a switch.
    Switch(bool),
    /// The default of a whole number.
    Whole(i128),
    /// The default of a number of seconds.
    Seconds(f64),
    /// The default of a text, a path or a choice.
    Text(&'static str),
}

/// Values that a number may have, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptionRange {
    /// All values of the option's type.
    Any,
    /// Whole numbers from the first to the second.
    Whole(i128, i128),
    /// Seconds from the first number to the second. The second may be infinite.
    Seconds(f64, f64),
}

/// Why options are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// There is no such option. The text names the most similar option.
    Unknown(String),
    /// There is no such kind of component. The text names the most similar kind.
    Kind(String),
    /// A required option is not given.
    Missing(String),
    /// A value is of the wrong type.
    Type(String),
    /// A value is out of its range, or makes no sense.
    Value(String),
}

impl OptionRow {
    /// Refuses at compile time any row whose default has the wrong type or is out of range.
    pub const fn check_all(rows: &[Self]) {
        let mut index = 0;
        while index < rows.len() {
            rows[index].check_default();
            index += 1;
        }
    }

    const fn check_default(&self) {
        match (self.default, self.shape) {
            (OptionDefault::Required, _) => {}
            (OptionDefault::Nothing, _) => assert!(self.is_optional, "a default is absent, and its option may not be"),
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

    /// The default as a value. `None` if the option is required.
    pub fn default_value(&self) -> Option<OptionValue> {
        Some(match self.default {
            OptionDefault::Required => return None,
            OptionDefault::Nothing => OptionValue::Nothing,
            OptionDefault::Switch(value) => OptionValue::Switch(value),
            OptionDefault::Whole(value) => OptionValue::Whole(value),
            OptionDefault::Seconds(value) => OptionValue::Seconds(value),
            OptionDefault::Text(value) => OptionValue::Text(value.to_owned()),
        })
    }

    /// Checks the type and the range of a value.
    ///
    /// # Errors
    ///
    /// A value of another type or outside the range. The text names the value and the allowed values.
    pub fn check(&self, value: &OptionValue) -> Result<(), OptionError> {
        let name = self.name;
        match (self.shape, value) {
            (_, OptionValue::Nothing) if self.is_optional => Ok(()),
            (OptionShape::Text, OptionValue::Text(_)) => Ok(()),
            (OptionShape::Path, OptionValue::Text(_) | OptionValue::Path(_)) => Ok(()),
            (OptionShape::Switch, OptionValue::Switch(_)) => Ok(()),
            (OptionShape::Levels, OptionValue::Levels(_)) => Ok(()),
            (OptionShape::Texts, OptionValue::Texts(_)) => Ok(()),
            (OptionShape::Choice(words), OptionValue::Text(word)) if words.contains(&word.as_str()) => Ok(()),
            (OptionShape::Choice(words), OptionValue::Text(word)) => {
                Err(OptionError::Value(match nearest(word, words.iter().copied()) {
                    Some(near) => format!("{name} has no value {word:?}; the nearest one is {near:?}"),
                    None => format!("{name} must be {}, not {word:?}", listed(words)),
                }))
            }
            (OptionShape::Whole, OptionValue::Whole(number)) => match self.range {
                OptionRange::Whole(least, most) if !(least..=most).contains(number) => {
                    self.out_of_range(&format!("{least} to {most}"), value)
                }
                _ => Ok(()),
            },
            (OptionShape::Seconds, OptionValue::Seconds(number)) => self.check_seconds(*number, value),
            (OptionShape::Seconds, OptionValue::Whole(number)) => self.check_seconds(*number as f64, value),
            _ => Err(self.wrong_type(&value.to_string())),
        }
    }

    fn check_seconds(&self, number: f64, value: &OptionValue) -> Result<(), OptionError> {
        match self.range {
            OptionRange::Seconds(least, most) if !(least..=most).contains(&number) => {
                let upper = if most.is_finite() { format!(" to {most}") } else { " or more".to_owned() };
                self.out_of_range(&format!("{least}{upper}"), value)
            }
            _ => Ok(()),
        }
    }

    fn out_of_range(&self, range: &str, value: &OptionValue) -> Result<(), OptionError> {
        let (name, unit) = (self.name, self.unit);
        let space = if unit.is_empty() { "" } else { " " };
        Err(OptionError::Value(format!("{name} must be {range}{space}{unit}, not {value}")))
    }

    /// The error for a value of the wrong type. `value` is the text that shows the value.
    pub fn wrong_type(&self, value: &str) -> OptionError {
        let (name, unit) = (self.name, if self.unit.is_empty() { "" } else { " of " });
        let wanted = match self.shape {
            OptionShape::Text | OptionShape::Choice(_) => "text",
            OptionShape::Path => "a path",
            OptionShape::Switch => "true or false",
            OptionShape::Whole => &format!("a whole number{unit}{}", self.unit),
            OptionShape::Seconds => &format!("a number{unit}{}", self.unit),
            OptionShape::Levels => "a collection of levels",
            OptionShape::Texts => "a collection of texts",
        };
        OptionError::Type(format!("{name} must be {wanted}, not {value}"))
    }
}

/// Joins the words for use in a sentence.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

const fn is_among(word: &str, words: &[&str]) -> bool {
    let mut index = 0;
    while index < words.len() {
        if same(word.as_bytes(), words[index].as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

/// Names the known word that is most similar to `word`, or all known words if none is similar.
pub fn suggestion<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("the nearest one is {near:?}"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// Puts the given values into the order of `rows`, and fills in the defaults of the options that were not given.
///
/// # Errors
///
/// Fails for an option that `owner` does not have, for a missing required option, and for a value of the wrong type or
/// out of range.
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: OptionRow = OptionRow {
        name: "patience",
        shape: OptionShape::Seconds,
        is_optional: false,
        default: OptionDefault::Seconds(0.5),
        unit: "seconds",
        range: OptionRange::Seconds(0.02, 3600.0),
        meaning: "",
    };

    fn refused(row: OptionRow, value: OptionValue) -> String {
        row.check(&value).unwrap_err().to_string()
    }

    #[test]
    fn a_refused_value_is_an_error_that_says_what_is_allowed() {
        let open = OptionRow { range: OptionRange::Seconds(0.0, f64::INFINITY), ..ROW };
        let mode = OptionRow { name: "mode", shape: OptionShape::Choice(&["none", "some", "all"]), unit: "", ..ROW };
        let text = |text: &str| OptionValue::Text(text.to_owned());

        for (row, value, expected) in [
            (ROW, OptionValue::Seconds(0.01), "patience must be 0.02 to 3600 seconds, not 0.01"),
            (ROW, OptionValue::Whole(3601), "patience must be 0.02 to 3600 seconds, not 3601"),
            (ROW, OptionValue::Seconds(f64::NAN), "patience must be 0.02 to 3600 seconds, not NaN"),
            (open, OptionValue::Seconds(-1.0), "patience must be 0 or more seconds, not -1"),
            (ROW, OptionValue::Nothing, "patience must be a number of seconds, not nothing"),
            (ROW, text("1"), "patience must be a number of seconds, not \"1\""),
            (mode, text("nnoe"), "mode has no value \"nnoe\"; the nearest one is \"none\""),
            (mode, text("disk"), "mode must be \"none\", \"some\" or \"all\", not \"disk\""),
            (mode, OptionValue::Switch(true), "mode must be text, not true"),
        ] {
            assert_eq!(expected, refused(row, value));
        }
    }

    #[test]
    fn a_value_in_its_range_is_accepted() {
        let optional = OptionRow { is_optional: true, default: OptionDefault::Nothing, ..ROW };

        for (row, value) in [
            (ROW, OptionValue::Seconds(0.02)),
            (ROW, OptionValue::Whole(3600)),
            (optional, OptionValue::Nothing),
            (OptionRow { shape: OptionShape::Path, ..ROW }, OptionValue::Path("/a".into())),
            (OptionRow { shape: OptionShape::Levels, ..ROW }, OptionValue::Levels(vec![40])),
        ] {
            assert_eq!(Ok(()), row.check(&value));
        }
    }
}
