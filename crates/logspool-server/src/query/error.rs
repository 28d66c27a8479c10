//! The error for a text that is not a valid query, with its position.

use std::fmt;

use unicode_width::UnicodeWidthStr;

use crate::visible::visible;

/// Maximum number of characters of the text that are shown before and after the position. Chosen: together they fit on
/// one line of a terminal.
const SHOWN_BEFORE: usize = 60;
const SHOWN_AFTER: usize = 40;

/// A text that is not a valid query. Its `Display` shows the text around the error, with a caret below the position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// The begin of the printed text.
    failure: &'static str,
    position: usize,
    message: String,
    /// The part of the text around the error, with control characters made visible.
    shown: String,
    /// Number of columns before the caret.
    caret: usize,
}

impl QueryError {
    /// Creates an error at byte `position` of the text, which is a character boundary or the end of the text.
    pub(super) fn new(text: &str, position: usize, message: impl Into<String>) -> Self {
        let (before, after) = text.split_at_checked(position).unwrap_or((text, ""));
        let begins = before.char_indices().rev().take(SHOWN_BEFORE).last().map_or(position, |(at, _)| at);
        let length = after.char_indices().nth(SHOWN_AFTER).map_or(after.len(), |(at, _)| at);
        let mut shown = if begins > 0 { "…".to_owned() } else { String::new() };
        shown += &visible(&before[begins.min(before.len())..]);
        let caret = shown.width();
        shown += &visible(&after[..length]);
        if length < after.len() {
            shown.push('…');
        }
        let message = visible(&message.into()).into_owned();
        Self { failure: "cannot read the query", position, message, shown, caret }
    }

    /// Creates the error of a stage that cannot be finished.
    pub fn while_running(text: &str, position: usize, message: impl Into<String>) -> Self {
        Self { failure: "cannot answer the query", ..Self::new(text, position, message) }
    }

    /// Position of the error, in bytes from the start of the text.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The problem and how to fix it.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { failure, message, shown, caret, .. } = self;
        write!(to, "{failure}: {message}\n  {shown}\n  {:>caret$}^", "")
    }
}

impl std::error::Error for QueryError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_below_the_position() {
        for (expected, text, position) in [
            ("  a= b\n  ..^", "a= b", 2),
            ("  漢字 )\n  .....^", "漢字 )", 7),
            ("  \\x1b\\t x\n  .......^", "\u{1b}\t x", 3),
            ("  \n  ^", "", 0),
            ("  a\n  .^", "a", 1),
        ] {
            let printed = QueryError::new(text, position, "why").to_string();

            assert_eq!(format!("cannot read the query: why\n{}", expected.replace('.', " ")), printed);
        }
    }

    #[test]
    fn a_long_text_is_shown_around_the_position() {
        let text = format!("{}X{}", "ä".repeat(100), "b".repeat(100));
        let printed = QueryError::new(&text, 200, "why").to_string();

        let shown = format!("  …{}X{}…\n  {}^", "ä".repeat(60), "b".repeat(39), " ".repeat(61));
        assert_eq!(format!("cannot read the query: why\n{shown}"), printed);
    }
}
