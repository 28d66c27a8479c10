//! The body of Elasticsearch's `_bulk`: a line with an action, and for most actions a line with a document.

use std::borrow::Cow;

use serde::Deserialize;

use super::json_line;
use crate::record::Record;
use crate::value::Value;

/// The request of an action line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Store the document.
    Index,
    /// Store the document, which must be new.
    Create,
    /// Change a document. Its line is skipped: a stored record never changes.
    Update,
    /// Remove a document. It has no further line.
    Delete,
}

impl Action {
    /// The name of the action in requests and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// An action line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionLine<'a> {
    /// The request.
    pub action: Action,
    /// The index or data stream that is to receive the document, if the line names one.
    pub index: Option<Cow<'a, str>>,
    /// The id of the document, if the line gives one.
    pub id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Target<'a> {
    #[serde(borrow, rename = "_index", default)]
    index: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "_id", default)]
    id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Actions<'a> {
    #[serde(borrow, default)]
    index: Option<Target<'a>>,
    #[serde(borrow, default)]
    create: Option<Target<'a>>,
    #[serde(borrow, default)]
    update: Option<Target<'a>>,
    #[serde(borrow, default)]
    delete: Option<Target<'a>>,
}

/// Parses an action line; `None` if it is none.
pub fn action(line: &[u8]) -> Option<ActionLine<'_>> {
    let all: Actions<'_> = serde_json::from_slice(line).ok()?;
    let named = [
        (Action::Index, all.index),
        (Action::Create, all.create),
        (Action::Update, all.update),
        (Action::Delete, all.delete),
    ];
    let mut named = named.into_iter().filter_map(|(action, target)| Some((action, target?)));
    let (action, Target { index, id }) = named.next()?;
    named.next().is_none().then_some(ActionLine { action, index, id })
}

/// Reads a document. The index becomes the field `_index`.
///
/// # Errors
///
/// The line is not a JSON object with at least one key. The text has the reason.
pub fn document<'a>(line: &'a [u8], index: &'a str) -> Result<Record<'a>, String> {
    let pairs = json_line::object(line).map_err(|error| error.to_string())?;
    if pairs.is_empty() {
        return Err("the document is an empty JSON object".to_owned());
    }
    let mut record = json_line::from_pairs(pairs);
    if !index.is_empty() {
        record.fields.push((Cow::Borrowed("_index"), Value::Text(Cow::Borrowed(index))));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_lines_are_read_and_other_lines_are_not() {
        let read = action(br#"{"create":{"_index":"logs","_id":"a\"b","pipeline":"x"}}"#).unwrap();
        assert_eq!(
            (Action::Create, Some("logs"), Some("a\"b")),
            (read.action, read.index.as_deref(), read.id.as_deref())
        );
        assert_eq!(Action::Index, action(br#"{"index":{}}"#).unwrap().action);
        for bad in ["", "{}", "[]", r#"{"message":"x"}"#, r#"{"index":{},"create":{}}"#, r#"{"index":5}"#] {
            assert_eq!(None, action(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn a_document_is_read_like_a_json_line_with_its_index() {
        let record = document(br#"{"@timestamp":"2023-11-14T22:13:20Z","message":"m"}"#, "logs").unwrap();
        assert_eq!(("m", Some(1_700_000_000_000_000_000)), (&*record.message, record.time_ns));
        assert_eq!(r#"{"_index":"logs"}"#, record.fields_as_json());
        assert!(document(b"{}", "").is_err() && document(b"[]", "").is_err());
    }
}
