//! Finds and replaces secrets: by the names of fields, and by regular expressions in texts.
//!
//! A key is compared without case, word by word: `api_key` is also `API-Key`, `apiKey` and `apikey`. The field
//! `access_token` has the key `token`, and so has `accessToken`; the fields `tokens` and `token_count` have not. Digits
//! after the key belong to it: `password2`. In a text, a key is found by one automaton together with the patterns, and
//! [`found_values`] finds its value.
//!
//! If a pattern has groups, only the groups are replaced, otherwise all that it matches. All secrets are searched in the
//! text as it is, and each part that one of them covers is replaced once.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::defaults::{DEFAULT_KEYS, DEFAULT_PATTERNS, REPLACEMENT};
use crate::found_values::{self, Span};

/// The word that stands for the defaults.
const DEFAULT: &str = "default";

/// Maximum bytes of a compiled pattern.
///
/// Chosen: a class of Unicode letters with a repetition of 100 takes less; patterns beyond it take seconds to compile.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// Compiled keys and patterns.
#[derive(Debug)]
pub struct Redaction {
    /// In lower case, with `_` for `-`.
    keys: Vec<Box<[u8]>>,
    /// True for the last bytes of keys, in lower case.
    last_bytes: Box<[bool; 256]>,
    /// Finds a key before a character that may begin what belongs to it.
    key: Option<Regex>,
    patterns: Vec<Regex>,
    /// Says which of `patterns` match.
    matching: RegexSet,
    /// Matches wherever `key` or one of `patterns` matches.
    any: Regex,
}

impl Redaction {
    /// Compiles keys and patterns. `None` if there are none.
    ///
    /// # Errors
    ///
    /// A key is empty, or a pattern cannot be compiled, matches the empty text, or has a part that would need
    /// backtracking. The text names the mend.
    pub fn compile(keys: &[String], patterns: &[String]) -> Result<Option<Self>, String> {
        if keys.is_empty() && patterns.is_empty() {
            return Ok(None);
        }
        let mut sources: Vec<String> = Vec::new();
        for pattern in patterns {
            if pattern == DEFAULT {
                sources.extend(DEFAULT_PATTERNS.map(str::to_owned));
                continue;
            }
            let compiled = compiled(pattern).map_err(|why| format!("redact_patterns: {why}"))?;
            if compiled.is_match(b"") {
                return Err(format!(
                    "redact_patterns: {pattern:?} matches the empty text, so it would change every record (fix: use + in \
                     place of *, or remove the pattern)"
                ));
            }
            sources.push(pattern.clone());
        }
        let mut known: Vec<String> = Vec::new();
        for key in keys {
            if key == DEFAULT {
                known.extend(DEFAULT_KEYS.map(str::to_owned));
            } else if key.trim().is_empty() {
                return Err("redact_keys: a key is empty (fix: remove it)".to_owned());
            } else {
                known.push(key.to_lowercase().replace('-', "_"));
            }
        }
        let too_large =
            |error| format!("redact_patterns: together too large (fix: use fewer or shorter patterns): {error}");
        let key_source = key_pattern(&known);
        let key = key_source.as_deref().map(compiled).transpose().map_err(|why| format!("redact_keys: {why}"))?;
        let patterns = sources.iter().map(|source| compiled(source)).collect::<Result<_, _>>()?;
        let limit = MAX_PATTERN_BYTES * 4;
        let matching = RegexSetBuilder::new(&sources).size_limit(limit).build().map_err(too_large)?;
        let joined: Vec<String> = sources.iter().chain(&key_source).map(|source| format!("(?:{source})")).collect();
        let any = RegexBuilder::new(&joined.join("|")).size_limit(limit).build().map_err(too_large)?;
        let mut last_bytes = Box::new([false; 256]);
        known.iter().filter_map(|key| key.as_bytes().last()).for_each(|byte| last_bytes[usize::from(*byte)] = true);
        let keys = known.into_iter().map(|key| key.into_bytes().into_boxed_slice()).collect();
        Ok(Some(Self { keys, last_bytes, key, patterns, matching, any }))
    }

    /// Whether the name of a field is one of the keys, or ends with one as its last words.
    pub fn has_key(&self, name: &str) -> bool {
        let name = name.as_bytes();
        let Some(last) = name.last() else { return false };
        if !last.is_ascii_digit() {
            return self.ends_with_key(name);
        }
        let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        self.ends_with_key(name) || self.ends_with_key(&name[..name.len() - digits])
    }

    fn ends_with_key(&self, name: &[u8]) -> bool {
        name.last().is_some_and(|last| self.last_bytes[usize::from(last.to_ascii_lowercase())])
            && self.keys.iter().any(|key| start_of_key(name, key).is_some_and(|start| begins_word(name, start)))
    }

    /// Whether a text holds a secret.
    pub fn finds(&self, text: &[u8]) -> bool {
        self.any.is_match(text) && !self.spans(text).is_empty()
    }

    /// Writes `text` with its secrets replaced to `out`, and returns whether it has any. Otherwise `out` is empty.
    pub fn replace(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.any.is_match(text) {
            return false;
        }
        let spans = self.spans(text);
        let mut written = 0;
        for (from, to) in &spans {
            out.extend_from_slice(&text[written..*from]);
            out.extend_from_slice(REPLACEMENT.as_bytes());
            written = *to;
        }
        if !spans.is_empty() {
            out.extend_from_slice(&text[written..]);
        }
        !spans.is_empty()
    }

    /// The parts of a text that are replaced, in order, without overlaps.
    fn spans(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        for index in self.matching.matches(text) {
            push_matches(&self.patterns[index], text, &mut spans);
        }
        if let Some(key) = &self.key {
            push_values(key, text, &mut spans);
        }
        spans.sort_unstable();
        let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
        for (from, to) in spans {
            match merged.last_mut() {
                Some(last) if from < last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        // A key and a pattern may see more or less of what an earlier call has replaced.
        merged.retain(|(from, to)| &text[*from..*to] != REPLACEMENT.as_bytes());
        merged
    }
}

/// Adds the parts of a text that a pattern says to replace.
fn push_matches(pattern: &Regex, text: &[u8], spans: &mut Vec<Span>) {
    for captures in pattern.captures_iter(text) {
        let first = usize::from(captures.len() > 1);
        for group in captures.iter().skip(first).flatten() {
            if !group.is_empty() && group.as_bytes() != REPLACEMENT.as_bytes() {
                spans.push((group.start(), group.end()));
            }
        }
    }
}

/// Adds the values of the keys in a text.
fn push_values(key: &Regex, text: &[u8], spans: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(found) = key.find_at(text, at) {
        at = found.start() + 1;
        // The last byte of the match follows the key.
        if begins_word(text, found.start())
            && let Some(span) = found_values::of_key(text, found.start(), found.end() - 1)
        {
            spans.push(span);
            at = span.1.max(at);
        }
    }
}

/// The begin of a key with which a name ends. `_` of the key is a separator in the name, or nothing.
fn start_of_key(name: &[u8], key: &[u8]) -> Option<usize> {
    let mut at = name.len();
    for wanted in key.iter().rev() {
        let before = name[..at].last();
        if *wanted == b'_' {
            at -= usize::from(before.is_some_and(|byte| matches!(byte, b'_' | b'-' | b'.' | b' ')));
        } else if before?.to_ascii_lowercase() == *wanted {
            at -= 1;
        } else {
            return None;
        }
    }
    Some(at)
}

/// Whether a word begins at this place: after another character, or with the capital of `accessToken` and `APIToken`.
fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = text[..at].last().filter(|byte| byte.is_ascii_alphanumeric()) else { return true };
    if !text[at].is_ascii_uppercase() {
        return false;
    }
    !before.is_ascii_uppercase() || text.get(at + 1).is_some_and(u8::is_ascii_lowercase)
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build().map_err(|error| {
        let why = match &error {
            regex::Error::CompiledTooBig(_) => "it is too large (fix: use a smaller repetition)".to_owned(),
            error => {
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                if text.contains("look-around") || text.contains("backreferences") {
                    format!("{last}, because it can take exponential time (fix: write the pattern without it)")
                } else {
                    format!("{last} (fix: correct the regular expression)")
                }
            }
        };
        format!("{pattern:?} cannot be used: {why}")
    })
}

/// A pattern that finds the keys in texts, with the byte that follows.
fn key_pattern(keys: &[String]) -> Option<String> {
    let names: Vec<String> = keys.iter().map(|key| regex::escape(key).replace('_', "[-_. ]?")).collect();
    (!names.is_empty()).then(|| format!(r#"(?i-u)(?:{})[0-9]*[\\"'\]\s:=%>,]"#, names.join("|")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(keys: &[&str], patterns: &[&str]) -> Redaction {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Redaction::compile(&owned(keys), &owned(patterns)).unwrap().unwrap()
    }

    fn replaced(redaction: &Redaction, text: &str) -> String {
        let mut out = Vec::new();
        if redaction.replace(text.as_bytes(), &mut out) { String::from_utf8(out).unwrap() } else { text.to_owned() }
    }

    fn refused(keys: &[&str], patterns: &[&str]) -> String {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Redaction::compile(&owned(keys), &owned(patterns)).unwrap_err()
    }

    #[test]
    fn a_key_is_the_last_word_of_a_name() {
        let redaction = redaction(&["token", "api-key"], &[]);

        for name in ["token", "TOKEN", "access_token", "user.token", "x-token", "api_key", "API-Key", "my_api-key"] {
            assert!(redaction.has_key(name), "{name}");
        }
        for name in ["tokens", "token_count", "mytoken", "", "key"] {
            assert!(!redaction.has_key(name), "{name}");
        }
    }

    #[test]
    fn keys_are_found_in_texts() {
        let redaction = redaction(&["default"], &[]);
        for (text, shown) in [
            ("password=abc rest", "password=[REDACTED] rest"),
            ("db_password: 'a b' rest", "db_password: '[REDACTED]' rest"),
            (r#"{"token": "a\"b", "n": 1}"#, r#"{"token": "[REDACTED]", "n": 1}"#),
            ("{'api_key': b'xyz', 'n': 1}", "{'api_key': b'[REDACTED]', 'n': 1}"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [REDACTED]"),
            ("(b'authorization', b'Basic eHl6'), 1", "(b'authorization', b'[REDACTED]'), 1"),
            ("Set-Cookie: a=1; b=2\nnext", "Set-Cookie: [REDACTED]\nnext"),
            ("{'cookie': 'a=1; b=2', 'n': 1}", "{'cookie': '[REDACTED]', 'n': 1}"),
            ("?token=abc&x=1", "?token=[REDACTED]&x=1"),
            ("tokens=12 password", "tokens=12 password"),
        ] {
            assert_eq!(shown, replaced(&redaction, text));
        }
    }

    #[test]
    fn patterns_replace_their_groups_or_all() {
        let redaction = redaction(&[], &["default", r"card (\d+)/(\d+)", r"\d{3}-\d{4}"]);
        for (text, shown) in [
            ("Bearer abcdefgHijk1 x", "Bearer [REDACTED] x"),
            ("postgres://u:pw@host/db", "postgres://u:[REDACTED]@host/db"),
            ("key sk-abcdefghijklmnop1234", "key [REDACTED]"),
            ("AKIAIOSFODNN7EXAMPLE", "[REDACTED]"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "[REDACTED]"),
            ("card 12/34 and card 5/6", "card [REDACTED]/[REDACTED] and card [REDACTED]/[REDACTED]"),
            ("call 555-1234 \u{e4}", "call [REDACTED] \u{e4}"),
            ("http://host:80/x", "http://host:80/x"),
        ] {
            assert_eq!(shown, replaced(&redaction, text));
        }
    }

    #[test]
    fn replacing_again_changes_nothing() {
        let redaction = redaction(&["default"], &["default"]);
        let once = replaced(&redaction, "password=abc Authorization: Bearer abcdefghijk");

        assert_eq!(once, replaced(&redaction, &once));
    }

    #[test]
    fn patterns_that_need_backtracking_are_refused_with_a_fix() {
        for (pattern, part) in [
            (r"(?=secret)x", "exponential time (fix: write the pattern without it)"),
            (r"(a)\1", "exponential time (fix: write the pattern without it)"),
            (r"(a", "(fix: correct the regular expression)"),
            (r"a*", "matches the empty text"),
            (r"(?:\w{1000}){1000}", "too large (fix: use a smaller repetition)"),
        ] {
            let why = refused(&[], &[pattern]);
            assert!(why.starts_with("redact_patterns: ") && why.contains(part), "{why}");
        }
        assert_eq!("redact_keys: a key is empty (fix: remove it)", refused(&[" "], &[]));
    }

    #[test]
    fn nested_repetitions_take_linear_time() {
        let redaction = redaction(&[], &[r"(?:a+)+$"]);
        // A backtracking engine would take longer than the age of the universe.
        let text = format!("{}!", "a".repeat(100_000));

        assert_eq!(text, replaced(&redaction, &text));
    }
}
