//! Recognises text that would be read as plain words although its author meant something else, and says what to write.

use super::lexer::{QueryToken, TokenKind, is_keyword};
use super::{Field, path};

/// Maximum length of a word that an error message repeats, in bytes.
const MAX_SHOWN: usize = 60;

/// The error for a word or phrase that is likely to be a comparison or a wildcard. `next` is the token after it.
pub(super) fn reason(token: QueryToken<'_>, next: Option<&QueryToken<'_>>) -> Option<String> {
    match token.kind {
        TokenKind::Quoted(inner) => has_wildcard(inner.strip_suffix('*').unwrap_or(inner))
            .then(|| "`*` is a wildcard at the end only: for another part of a word write message~\"part\"".to_owned()),
        TokenKind::Word if token.text == "&&" => {
            Some("conditions follow each other: leave `&&` out, or write `and`".to_owned())
        }
        TokenKind::Word if is_exclusion(token.text) => {
            let word = &token.text[1..];
            Some(format!("to exclude a word write not {word}; to search for this text, quote it"))
        }
        TokenKind::Word => {
            let (name, value) = token.text.split_once(':')?;
            let is_followed = next.is_some_and(|next| {
                next.position == token.position + token.text.len()
                    && matches!(next.kind, TokenKind::Quoted(_) | TokenKind::Open)
            });
            let is_comparison = match value.chars().next() {
                // A URL, a path of Windows, or a path of C++ or Rust.
                Some('/' | '\\' | ':') => false,
                Some(_) => true,
                None => is_followed || !matches!(Field::named(name), Field::Extra(_)),
            };
            (is_name(name) && is_comparison).then(|| no_operator(name, value))
        }
        _ => None,
    }
}

/// The error for the name of a field before an operator.
pub(super) fn reason_of_name(token: QueryToken<'_>) -> Option<String> {
    if token.kind != TokenKind::Word || !needs_quotes(token.text) {
        return None;
    }
    if is_exclusion(token.text) {
        let name = &token.text[1..];
        return Some(format!("to exclude a value write not {name}=VALUE, or {name}!=VALUE"));
    }
    Some(match token.text.strip_suffix(':') {
        Some(name) if is_name(name) && name.len() <= MAX_SHOWN => {
            format!("`:` is not an operator: leave it out, as in {name}>100")
        }
        Some(_) => "a key whose name ends in `:` is quoted: write \"NAME:\"".to_owned(),
        None => "this is no path: write items[*].sku or items[0].sku, or quote the key".to_owned(),
    })
}

/// True if [`reason_of_name`] refuses this name without quotes.
pub(super) fn needs_quotes(name: &str) -> bool {
    is_exclusion(name) || name.ends_with(':') || name.contains(['[', ']', '*']) && !path::is_path(name)
}

/// True for `-word` and `!word`, which exclude in other tools.
fn is_exclusion(text: &str) -> bool {
    text.strip_prefix(['-', '!']).is_some_and(|rest| rest.starts_with(char::is_alphabetic))
}

/// True for text in single quotes.
pub(super) fn is_in_single_quotes(text: &str) -> bool {
    text.len() > 2 && text.starts_with('\'') && text.ends_with('\'')
}

fn no_operator(name: &str, value: &str) -> String {
    let (name, value) = match name.len() + value.len() {
        0..=MAX_SHOWN if !value.is_empty() => (name, value),
        0..=MAX_SHOWN => (name, "VALUE"),
        _ => ("FIELD", "VALUE"),
    };
    format!("`:` is not an operator: write {name}={value}, or quote the text to search for it")
}

/// True for a name that needs no quotes.
fn is_name(text: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || "_.-".contains(character);
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && text.chars().all(is_part)
        && !is_keyword(text)
}

/// True if a `*` is next to a letter or digit.
fn has_wildcard(text: &str) -> bool {
    let mut parts = text.split('*').peekable();
    while let Some(part) = parts.next() {
        let Some(after) = parts.peek() else { return false };
        if part.ends_with(char::is_alphanumeric) || after.starts_with(char::is_alphanumeric) {
            return true;
        }
    }
    false
}
