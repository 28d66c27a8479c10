//! Rules of rotation: the rules of CPython's releases, or the rules for several processes.

use crate::option::{OptionField, OptionShape};
use logspool_record::cpython::CpythonRules;
use logspool_record::definition::OptionValue;

/// Which rules to follow for rotating files: those of CPython, or those for several processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RotationRules {
    /// One process rotates the file, as a release of CPython does.
    Alone(CpythonRules),
    /// Several processes rotate one file, under the lock of its sidecar. All rules not listed here are those of the
    /// newest CPython.
    ///
    /// - The size is read from the file, and each write first checks for a rotation by another process.
    /// - All processes agree on the next time of a rotation.
    /// - Backups are renamed only up to the first free number.
    Together {
        /// How backups are compressed.
        compress: Option<Compression>,
    },
}

impl Default for RotationRules {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl RotationRules {
    /// The rules of CPython 3.10.13, 3.11.7 and 3.12.1.
    pub const EARLY: Self = Self::Alone(CpythonRules::EARLY_ROTATION);

    /// The rules of CPython 3.12.10 and later.
    pub const CURRENT: Self = Self::Alone(CpythonRules::CURRENT_ROTATION);

    /// The CPython rules that apply, except where rotation by several processes differs.
    pub fn cpython(self) -> CpythonRules {
        match self {
            Self::Alone(rules) => rules,
            Self::Together { .. } => CpythonRules::default(),
        }
    }

    /// How backups are compressed; `None`: not at all.
    pub fn compression(self) -> Option<Compression> {
        match self {
            Self::Together { compress } => compress,
            Self::Alone(_) => None,
        }
    }

    /// Whether several processes rotate the file.
    pub fn is_together(self) -> bool {
        matches!(self, Self::Together { .. })
    }
}

/// How a backup is compressed after the rollover has given it its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As `gzip` does. The name ends with `.gz`.
    Gzip,
    /// As `zstd` does. The name ends with `.zst`. Smaller than gzip and several times faster.
    Zstd,
}

impl Compression {
    /// The ending that compression adds to the name of a backup.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// The words for the rules in options, each with the rules that it selects.
const WORDS: [(&str, RotationRules); 5] = [
    ("early", RotationRules::EARLY),
    ("current", RotationRules::CURRENT),
    ("together", RotationRules::Together { compress: None }),
    ("together.gzip", RotationRules::Together { compress: Some(Compression::Gzip) }),
    ("together.zstd", RotationRules::Together { compress: Some(Compression::Zstd) }),
];

impl OptionField for RotationRules {
    const SHAPE: OptionShape = OptionShape::Choice(&["early", "current", "together", "together.gzip", "together.zstd"]);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let rules = WORDS.iter().find(|(word, _)| matches!(value, OptionValue::Text(text) if text == word));
        rules.map(|(_, rules)| *rules).ok_or_else(|| format!("there are no rules {value}"))
    }

    fn to_value(&self) -> OptionValue {
        let word = WORDS.iter().find(|(_, rules)| rules == self).map_or("", |(word, _)| word);
        OptionValue::Text(word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back() {
        let OptionShape::Choice(words) = RotationRules::SHAPE else { panic!("they are words") };

        assert_eq!(words, WORDS.map(|(word, _)| word));
        for word in words {
            let value = OptionValue::Text((*word).to_owned());

            assert_eq!(Ok(value.clone()), RotationRules::from_value(&value).map(|rules| rules.to_value()));
        }
    }
}
