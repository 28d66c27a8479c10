//! The levels of a Rust program.

use std::fmt;
use std::str::FromStr;

/// Declares [`Level`] with its names, and the macro of each level.
macro_rules! levels {
    ($dollar:tt $($(#[$meaning:meta])+ $level:ident = $number:literal $name:literal $call:ident!;)+) => {
        /// How important a record is. The numbers are those of Python's logging, so that programs of both languages
        /// agree.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Level {
            $($(#[$meaning])+ $level = $number,)+
        }

        /// All levels, lowest first.
        const ALL: &[Level] = &[$(Level::$level),+];

        impl Level {
            /// The name in capital letters.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$level => $name,)+
                }
            }
        }

        $(
            #[doc = concat!("Logs at the level `", $name, "`. See [`record!`](crate::record).")]
            #[macro_export]
            macro_rules! $call {
                ($dollar($dollar rest:tt)+) => {
                    $crate::record!($crate::front::Level::$level, $dollar($dollar rest)+)
                };
            }
        )+
    };
}

// A level is one row: meaning, variant, number, name, macro.
levels! { $
    /// Each step.
    Trace = 5 "TRACE" trace!;
    /// For the developer.
    Debug = 10 "DEBUG" debug!;
    /// What the program does.
    Info = 20 "INFO" info!;
    /// Something is odd; the program goes on.
    Warn = 30 "WARN" warn!;
    /// Something has failed.
    Error = 40 "ERROR" error!;
}

impl Level {
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
        let names: Vec<_> = ALL.iter().map(|level| level.name().to_lowercase()).collect();
        let (last, others) = names.split_last().expect("the table has levels");
        write!(formatter, "{:?} is not a level: use {} or {last}", self.0, others.join(", "))
    }
}

impl std::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, UnknownLevel> {
        let is_named = |level: &Level| level.name().eq_ignore_ascii_case(text);
        ALL.iter().copied().find(is_named).ok_or_else(|| UnknownLevel(text.to_owned()))
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
