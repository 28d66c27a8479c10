//! Rules of rotation: those of CPython's releases, or those for several processes.

use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;

/// Which rules to follow for rotating files: those of CPython, or those for several processes.
///
/// CPython changed its rules within minor versions, so capture tells them apart by the code of the handler's class:
/// size rules are early where `RotatingFileHandler.shouldRollover` calls `seek`, time rules where
/// `TimedRotatingFileHandler.doRollover` has a local `newRolloverAt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RotationRules {
    /// The rules of CPython 3.10.13, 3.11.7 and 3.12.1.
    ///
    /// - By size: an empty file is rotated too, and the size is read from the file.
    /// - By time: an existing backup is overwritten, and `interval` is ignored for `midnight` and weekdays.
    Early,
    /// The rules of CPython 3.12.10 and 3.13.0.
    ///
    /// - By size: an empty file is never rotated, and the size is the position of the handler's own stream.
    /// - By time: the file is not rotated while a backup of that name exists, and `interval` counts for every `when`.
    #[default]
    Current,
    /// Rules of logspool: several processes rotate one file, under the lock of its sidecar. As `Current`, except:
    ///
    /// - The size is read from the file, and each write first checks for a rotation by another process.
    /// - All processes agree on the next time of a rotation.
    /// - Backups are renamed only up to the first free number.
    Together {
        /// How backups are compressed.
        compress: Option<Compression>,
    },
}

impl RotationRules {
    /// How backups are compressed.
    pub fn compression(self) -> Option<Compression> {
        match self {
            Self::Together { compress } => compress,
            Self::Early | Self::Current => None,
        }
    }

    /// Whether several processes rotate the file.
    pub fn is_together(self) -> bool {
        matches!(self, Self::Together { .. })
    }
}

/// How a backup is compressed once it has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As `gzip` does: `.gz` after the name.
    Gzip,
    /// As `zstd` does: `.zst` after the name. Smaller and several times faster.
    Zstd,
}

impl Compression {
    /// The end of the name of a backup.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// The words for the rules, each with what it stands for.
const WORDS: [(&str, RotationRules); 5] = [
    ("early", RotationRules::Early),
    ("current", RotationRules::Current),
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
    fn every_word_comes_back() {
        let OptionShape::Choice(words) = RotationRules::SHAPE else { panic!("they are words") };

        assert_eq!(words, WORDS.map(|(word, _)| word));
        for word in words {
            let value = OptionValue::Text((*word).to_owned());

            assert_eq!(Ok(value.clone()), RotationRules::from_value(&value).map(|rules| rules.to_value()));
        }
    }
}
