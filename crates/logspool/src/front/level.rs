//! The levels of a Rust program.

use std::fmt;
use std::str::FromStr;

/// How important a record is. The numbers are those of Python's logging, so that programs of both languages agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum Level {
    /// Each step.
    Trace = 5,
    /// For the developer.
    Debug = 10,
    /// What the program does.
    Info = 20,
    /// Something is odd; the program goes on.
    Warn = 30,
    /// Something has failed.
    Error = 40,
}

/// All levels, lowest first.
const ALL: [Level; 5] = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error];

impl Level {
    /// The name in capital letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    /// The numbers and names of all levels, in the form of a format.
    pub(super) fn names() -> Vec<(u16, String)> {
        let names = ALL.iter().map(|level| (*level as u16, level.name().to_owned()));
        names.chain([(50, "CRITICAL".to_owned())]).collect()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A text that is not the name of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel(String);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} is not a level: use trace, debug, info, warn or error", self.0)
    }
}

impl std::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let is_named = |level: &Level| level.name().eq_ignore_ascii_case(text);
        ALL.into_iter().find(is_named).ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_from_its_name_and_an_unknown_one_names_the_choices() {
        assert_eq!(Ok(Level::Warn), "Warn".parse());
        let error = "warning".parse::<Level>().unwrap_err();

        assert_eq!("\"warning\" is not a level: use trace, debug, info, warn or error", error.to_string());
    }
}
