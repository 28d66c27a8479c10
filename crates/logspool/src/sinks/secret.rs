//! Secrets of the options. No text that logspool shows contains them.

use std::fmt;

use crate::option::{OptionField, OptionShape};
use logspool_record::definition::OptionValue;

/// A password, a token or a shared key.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl OptionField for Secret {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match String::from_value(value) {
            Ok(text) if text.bytes().all(|byte| byte > b' ' && byte != 0x7f) => Ok(Self(text)),
            Ok(_) => Err("it has a space, a line end or another character that no secret may have".to_owned()),
            Err(_) => Err("it is no text".to_owned()),
        }
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Secret, String> {
        Secret::from_value(&OptionValue::Text(text.to_owned()))
    }

    #[test]
    fn no_text_shows_a_secret() {
        assert!(!format!("{:?}", read("hunter2").unwrap()).contains("hunter2"));
        for wrong in ["hunter2\n", "hunter 2"] {
            assert!(!read(wrong).unwrap_err().contains("hunter"));
        }
    }
}
