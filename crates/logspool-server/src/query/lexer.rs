//! Splits the text of a query into tokens.
//!
//! A word ends at white space and at `( ) " | = < > ~ != !~`. Quoted text may contain any character. A quote in quoted
//! text is written `\"`. In stages, a word ends at a comma, too, and `parse FIELD /REGEX/` has a regular expression.

use std::borrow::Cow;

use super::{Comparison, QueryError};

/// A token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct QueryToken<'a> {
    pub kind: TokenKind<'a>,
    /// Position of the token's first byte in the query.
    pub position: usize,
    /// The token as it is written in the query.
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// Text without quotes.
    Word,
    /// The text between two quotes. Its backslashes are kept.
    Quoted(&'a str),
    Open,
    Close,
    Bar,
    /// A comma in a stage.
    Comma,
    /// The text between two slashes.
    Regex(&'a str),
    Operator(Operator),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operator {
    Compare(Comparison),
    Matches,
    MatchesNot,
}

/// The operators as they are written, longer ones first.
const OPERATORS: [(&str, Operator); 8] = [
    ("!=", Operator::Compare(Comparison::NotEqual)),
    ("!~", Operator::MatchesNot),
    (">=", Operator::Compare(Comparison::GreaterOrEqual)),
    ("<=", Operator::Compare(Comparison::LessOrEqual)),
    ("=", Operator::Compare(Comparison::Equal)),
    ("<", Operator::Compare(Comparison::Less)),
    (">", Operator::Compare(Comparison::Greater)),
    ("~", Operator::Matches),
];

/// The tokens of a query.
pub(super) fn tokens(text: &str) -> Result<Vec<QueryToken<'_>>, QueryError> {
    if let Some(position) = text.find('\0') {
        return Err(QueryError::new(text, position, "a query cannot contain a NUL character: remove it"));
    }
    let mut tokens: Vec<QueryToken<'_>> = Vec::new();
    let mut rest = text.trim_start();
    // For each open parenthesis: true in a stage.
    let mut in_stage = vec![false];
    while let Some(first) = rest.chars().next() {
        let position = text.len() - rest.len();
        let is_stage = in_stage.last().copied().unwrap_or_default();
        let (kind, length) = match first {
            '(' => {
                in_stage.push(is_stage);
                (TokenKind::Open, 1)
            }
            ')' => {
                if in_stage.len() > 1 {
                    in_stage.pop();
                }
                (TokenKind::Close, 1)
            }
            '|' => {
                in_stage.pop();
                in_stage.push(true);
                (TokenKind::Bar, 1)
            }
            ',' if is_stage => (TokenKind::Comma, 1),
            '/' if is_stage && is_after_parse(&tokens) => {
                let Some(inner) = regex(rest) else {
                    return Err(QueryError::new(text, position, "this expression is not closed: write / at its end"));
                };
                (TokenKind::Regex(inner), inner.len() + 2)
            }
            '"' => {
                let Some(inner) = quoted(rest) else {
                    return Err(QueryError::new(text, position, "this quote is not closed: write \" at its end"));
                };
                (TokenKind::Quoted(inner), inner.len() + 2)
            }
            _ => match operator(rest) {
                Some((written, operator)) => (TokenKind::Operator(operator), written.len()),
                None => {
                    let length = word_length(rest);
                    let comma = rest[..length].find(',').filter(|_| is_stage);
                    (TokenKind::Word, comma.unwrap_or(length))
                }
            },
        };
        let (token, after) = rest.split_at(length);
        tokens.push(QueryToken { kind, position, text: token });
        rest = after.trim_start();
    }
    Ok(tokens)
}

/// True after `| parse FIELD`.
fn is_after_parse(tokens: &[QueryToken<'_>]) -> bool {
    let [.., bar, name, field] = tokens else { return false };
    bar.kind == TokenKind::Bar
        && name.text.eq_ignore_ascii_case("parse")
        && matches!(field.kind, TokenKind::Word | TokenKind::Quoted(_))
}

/// The regular expression between the slash at the start of `text` and the closing slash. `\/` does not close it.
fn regex(text: &str) -> Option<&str> {
    let inner = &text[1..];
    let mut bytes = inner.bytes().enumerate();
    loop {
        match bytes.next()? {
            (at, b'/') => return Some(&inner[..at]),
            (_, b'\\') => drop(bytes.next()?),
            _ => {}
        }
    }
}

fn operator(text: &str) -> Option<(&'static str, Operator)> {
    OPERATORS.iter().find(|(written, _)| text.starts_with(written)).copied()
}

/// The text between the quote at the start of `text` and the closing quote.
fn quoted(text: &str) -> Option<&str> {
    let inner = &text[1..];
    let mut bytes = inner.bytes().enumerate();
    loop {
        match bytes.next()? {
            (at, b'"') => return Some(&inner[..at]),
            (_, b'\\') => drop(bytes.next()?),
            _ => {}
        }
    }
}

/// Length in bytes of the word at the start of the text; 0 if it does not start with a word.
fn word_length(text: &str) -> usize {
    let ends = |(at, character): (usize, char)| {
        character.is_whitespace() || "()\"|".contains(character) || operator(&text[at..]).is_some()
    };
    text.char_indices().find(|found| ends(*found)).map_or(text.len(), |(at, _)| at)
}

/// True if the whole text is a single word.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && word_length(text) == text.len()
}

/// True for keywords, which cannot be search words.
pub(super) fn is_keyword(word: &str) -> bool {
    ["and", "or", "not"].iter().any(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// Removes the escapes of quoted text: `\"` is a quote and `\\` a backslash. Any other backslash is kept.
pub(super) fn unquoted(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = (character == '\\').then(|| characters.next_if(|next| matches!(next, '"' | '\\'))).flatten();
        text.push(escaped.unwrap_or(character));
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_something_else_begins() {
        let texts = |text| tokens(text).unwrap().iter().map(|token| token.text).collect::<Vec<_>>();

        assert_eq!(
            vec!["level", ">=", "warning", "disk-full!", "a.b", "!=", "-1h"],
            texts(" level>=warning\tdisk-full! a.b!=-1h ")
        );
        assert_eq!(vec!["(", "ü@x", ")", "|", "\"a \\\" | b\"", "!~", "\"\""], texts("(ü@x)|\"a \\\" | b\"!~\"\""));
        assert_eq!(vec!["2026-11-22T10:00:00Z", "=", "="], texts("2026-11-22T10:00:00Z=="));
        assert!(texts(" \n ").is_empty());
    }

    #[test]
    fn a_quote_is_closed_and_a_nul_is_refused() {
        assert_eq!(2, tokens("a \"b\\\"").unwrap_err().position());
        assert_eq!(0, tokens("\"\\").unwrap_err().position());
        assert_eq!(1, tokens("a\0").unwrap_err().position());
    }

    #[test]
    fn within_quotes_few_backslashes_are_special() {
        assert_eq!(r#"C:\temp "x" \ \d"#, unquoted(r#"C:\temp \"x\" \\ \d"#));
    }
}
