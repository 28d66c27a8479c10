//! Finds and replaces secrets: by the names of fields, and by regular expressions in texts.
//!
//! A key is compared without case, and `-` equals `_`. The field `access_token` has the key `token`; the fields `tokens`
//! and `token_count` have not. In a text, `key=value`, `key: value` and `"key": "value"` are recognised, with the value
//! up to a space, a comma, a bracket or its closing quote. The value of a cookie ends at the line's end.
//!
//! If a pattern has groups, only the groups are replaced, otherwise all that it matches.

use regex::bytes::{Regex, RegexBuilder};

/// Stands in place of a secret.
pub const REPLACEMENT: &str = "[REDACTED]";

/// Keys that the word `default` in `redact_keys` stands for.
pub const DEFAULT_KEYS: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "authorization",
    "cookie",
    "private_key",
    "credentials",
];

/// Patterns that the word `default` in `redact_patterns` stands for: the values of `Authorization` headers, JSON web
/// tokens (RFC 7519), access keys of AWS, keys that begin with `sk-`, and the password in an address.
pub const DEFAULT_PATTERNS: [&str; 5] = [
    r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"[a-z][a-z0-9+.-]*://[^/\s:@]*:([^/\s@]+)@",
];

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
    /// The patterns of the user, then those made of the keys.
    patterns: Vec<Regex>,
    /// Matches wherever one of `patterns` matches.
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
        known.dedup();
        sources.extend(key_patterns(&known));
        let joined: Vec<String> = sources.iter().map(|source| format!("(?:{source})")).collect();
        let patterns = sources.iter().map(|source| compiled(source)).collect::<Result<_, _>>();
        let patterns = patterns.map_err(|why| format!("redact_keys: {why}"))?;
        let any = RegexBuilder::new(&joined.join("|")).size_limit(MAX_PATTERN_BYTES * 4).build().map_err(|error| {
            format!("redact_patterns: together too large (fix: use fewer or shorter patterns): {error}")
        })?;
        let keys = known.into_iter().map(|key| key.into_bytes().into_boxed_slice()).collect();
        Ok(Some(Self { keys, patterns, any }))
    }

    /// Whether the name of a field is one of the keys, or ends with one after `_`, `-` or `.`.
    pub fn has_key(&self, name: &str) -> bool {
        let name = name.as_bytes();
        self.keys.iter().any(|key| {
            let Some(start) = name.len().checked_sub(key.len()) else { return false };
            (start == 0 || matches!(name[start - 1], b'_' | b'-' | b'.'))
                && name[start..].iter().zip(key.iter()).all(|(byte, wanted)| plain(*byte) == *wanted)
        })
    }

    /// Whether a text holds a secret.
    pub fn finds(&self, text: &[u8]) -> bool {
        self.any.is_match(text)
    }

    /// Writes `text` with its secrets replaced to `out`, and returns whether it has any. Otherwise `out` is empty.
    pub fn replace(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        if !self.finds(text) {
            return false;
        }
        let mut current = text.to_vec();
        for pattern in &self.patterns {
            let spans = secrets(pattern, &current);
            if spans.is_empty() {
                continue;
            }
            let mut changed = Vec::with_capacity(current.len());
            let mut end = 0;
            for (from, to) in spans {
                changed.extend_from_slice(&current[end..from]);
                changed.extend_from_slice(REPLACEMENT.as_bytes());
                end = to;
            }
            changed.extend_from_slice(&current[end..]);
            current = changed;
        }
        out.extend_from_slice(&current);
        *out != text
    }
}

/// The parts of a text that a pattern says to replace: from, to; in order, without overlaps.
fn secrets(pattern: &Regex, text: &[u8]) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for captures in pattern.captures_iter(text) {
        let first = usize::from(captures.len() > 1);
        for group in captures.iter().skip(first).flatten() {
            let is_new = spans.last().is_none_or(|(_, end)| group.start() >= *end) && !group.is_empty();
            if is_new && group.as_bytes() != REPLACEMENT.as_bytes() {
                spans.push((group.start(), group.end()));
            }
        }
    }
    spans
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

/// Patterns that find the keys in texts.
fn key_patterns(keys: &[String]) -> Vec<String> {
    let is_cookie = |key: &&String| key.ends_with("cookie");
    let alternatives = |keys: Vec<&String>| {
        keys.iter().map(|key| regex::escape(key).replace('_', "[-_]")).collect::<Vec<_>>().join("|")
    };
    let pattern = |keys: Vec<&String>, value: &str| {
        let names = alternatives(keys);
        (!names.is_empty()).then(|| {
            let quoted = r#"b?"((?:[^"\\]|\\.)+)"|b?'((?:[^'\\]|\\.)+)'"#;
            let between = r#"(?:["']?\s*[:=]\s*|["']\s*,\s*)"#;
            format!(r"(?i-u)(?:^|[^A-Za-z0-9])(?:{names}){between}(?:{quoted}|{value})")
        })
    };
    let scheme = r"(?:(?:bearer|basic|digest|token)\s+)?";
    let others = pattern(
        keys.iter().filter(|key| !is_cookie(key)).collect(),
        &format!(r#"{scheme}(\[REDACTED\]|[^\s,;&"'()\[\]{{}}]+)"#),
    );
    let cookies = pattern(keys.iter().filter(is_cookie).collect(), r#"([^\s"'][^\r\n"']*)"#);
    others.into_iter().chain(cookies).collect()
}

/// A byte of a name in the form that keys have.
fn plain(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }
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
            ("Bearer abcdefghijk x", "Bearer [REDACTED] x"),
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
    fn patterns_that_need_backtracking_are_refused_with_the_mend() {
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
