//! The option `synchronous`.

use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;

/// When SQLite syncs its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// Before a checkpoint.
    Normal,
    /// At each commit.
    Full,
}

impl OptionField for SyncMode {
    const SHAPE: OptionShape = OptionShape::Choice(&["normal", "full"]);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match String::from_value(value)?.as_str() {
            "normal" => Ok(Self::Normal),
            "full" => Ok(Self::Full),
            other => Err(format!("{other:?} is neither normal nor full")),
        }
    }

    fn to_value(&self) -> OptionValue {
        let word = match self {
            Self::Normal => "normal",
            Self::Full => "full",
        };
        OptionValue::Text(word.to_owned())
    }
}
