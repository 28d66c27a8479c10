//! Regular expressions of a query, compiled once and limited in size.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Maximum bytes of a compiled expression, and maximum bytes of its cache of states.
///
/// Chosen: 1 MiB is enough for every expression that a person writes by hand. A larger value would let a query take too
/// much memory, because it may have [`super::parser::MAX_PATTERNS`] expressions.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// A regular expression in the syntax of the crate `regex`.
#[derive(Clone)]
pub struct Pattern {
    regex: Regex,
}

/// Reason why a text is not a valid regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError(String);

impl Pattern {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or too large when compiled.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let compiled = RegexBuilder::new(source)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_COMPILED_BYTES)
            .build()
            .map_err(|error| PatternError(in_one_line(&error)))?;
        Ok(Self { regex: compiled })
    }

    /// The expression as it was written.
    pub fn source(&self) -> &str {
        self.regex.as_str()
    }

    /// The names of the expression's groups.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.regex.capture_names().flatten()
    }

    /// The groups of the first match. `None`: the expression does not match.
    pub fn captures<'t>(&self, text: &'t str) -> Option<regex::Captures<'t>> {
        self.regex.captures(text)
    }

    /// True if the expression matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// Returns the last line of the error of the crate `regex`. It has the reason. The lines before it show the position in
/// the expression.
fn in_one_line(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("it takes more than {limit} bytes when compiled: use fewer repetitions or character classes")
        }
        other => {
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Pattern").field(&self.source()).finish()
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_must_be_valid_and_bounded() {
        assert!(Pattern::new("^5..$").unwrap().is_match("503"));
        assert_eq!("unclosed group", Pattern::new("a(b").unwrap_err().to_string());
        let large = Pattern::new(r"\w{1000}{1000}").unwrap_err().to_string();
        assert!(large.starts_with("it takes more than 1048576 bytes"), "{large}");
    }
}
