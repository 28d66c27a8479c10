//! Names of attributes in the format of a sink: a name that is neither an attribute nor marked as a key is an error.
//!
//! A key of a record is written as in a pattern: `%(fields.user)s`, `{fields.user}`, `"fields.user"`. The core knows
//! keys without the mark, as Python's logging does.

use std::collections::BTreeSet;

use logspool::option::suggestion;
use logspool_record::format::{Format, FormatSpec, Layout, Style};

use crate::status::Failure;

/// Names that every record has.
const ATTRIBUTES: [&str; 17] = [
    "message",
    "asctime",
    "levelname",
    "levelno",
    "name",
    "filename",
    "pathname",
    "module",
    "funcName",
    "lineno",
    "thread",
    "threadName",
    "process",
    "processName",
    "created",
    "msecs",
    "relativeCreated",
];

const MARK: &str = "fields.";

/// Replaces the marked names in a format by names that the core knows. Returns the keys.
pub fn unmark(spec: &mut FormatSpec) -> Result<BTreeSet<String>, Failure> {
    let mut keys = BTreeSet::new();
    match &mut spec.layout {
        Layout::Text { style, template } => {
            let opener = match style {
                Style::Percent => "%(",
                Style::Brace => "{",
                Style::Dollar => "${",
            };
            *template = unmarked(template, opener, &mut keys);
        }
        Layout::Json { fields, .. } => {
            for (_, attribute) in fields {
                if let Some(key) = attribute.strip_prefix(MARK) {
                    keys.insert(key.to_owned());
                    *attribute = key.to_owned();
                }
            }
        }
        _ => {}
    }
    match keys.iter().find(|key| ATTRIBUTES.contains(&key.as_str())) {
        Some(key) => {
            let text = format!("a key cannot be shown as {MARK}{key}, since {key} is an attribute; a pattern shows it");
            Err(Failure::invalid(text))
        }
        None => Ok(keys),
    }
}

fn unmarked(template: &str, opener: &str, keys: &mut BTreeSet<String>) -> String {
    let marked = format!("{opener}{MARK}");
    let doubled = opener.as_bytes()[0];
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(&marked) {
        let (before, after) = (&rest[..at], &rest[at + marked.len()..]);
        text.push_str(before);
        text.push_str(opener);
        // A doubled character is itself.
        let is_escaped = before.bytes().rev().take_while(|byte| *byte == doubled).count() % 2 == 1;
        if is_escaped {
            text.push_str(MARK);
        } else {
            let end = after.find([')', '}', ':', '!']).unwrap_or(after.len());
            keys.insert(after[..end].to_owned());
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// Refuses names that are neither attributes nor among the keys.
///
/// # Errors
///
/// The text names the wrong name and the nearest attribute.
pub fn check(format: &Format, keys: &BTreeSet<String>) -> Result<(), Failure> {
    match format.needs().fields().iter().find(|name| !keys.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(Failure::invalid(format!(
            "a record has no {name}; {}; a key of the program is written {MARK}{name}",
            suggestion(name, ATTRIBUTES.into_iter())
        ))),
    }
}
