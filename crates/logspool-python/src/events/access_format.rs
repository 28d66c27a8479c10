//! The parts of gunicorn's `access_log_format`.

use pyo3::Python;
use pyo3::types::PyString;

use crate::interpreter::dict::UsualPosition;
use crate::interpreter::object::Owned;

/// A format that was read.
pub struct KnownFormat {
    /// The format.
    pub text: Owned,
    /// `None` if only Python can fill in the format.
    pub parts: Option<Vec<AccessPart>>,
}

/// A part of an access line.
pub enum AccessPart {
    /// The same text in each line.
    Text(String),
    /// A value of the request.
    Value(AccessValue),
}

/// A value of the request, by the letters of gunicorn's documentation.
pub enum AccessValue {
    /// `%(u)s`
    User,
    /// `%(t)s`
    Time,
    /// `%(r)s`
    RequestLine,
    /// `%(s)s`
    Status,
    /// `%(b)s`
    BytesOrDash,
    /// `%(B)s`
    Bytes,
    /// `%(T)s`
    Seconds,
    /// `%(M)s`
    Milliseconds,
    /// `%(D)s`
    Microseconds,
    /// `%(L)s`
    DecimalSeconds,
    /// `%(p)s`
    Process,
    /// A variable of the environment.
    Variable {
        /// The exact name.
        name: Owned,
        /// The text for a request without the variable.
        missing: &'static str,
        /// Where it usually is in the environment.
        usual: UsualPosition,
    },
    /// `%({name}i)s`, the last request header with this name in lower case.
    RequestHeader(String),
    /// `%({name}o)s`, the same for headers of the response.
    ResponseHeader(String),
    /// `%({name}e)s`, the same for variables of the environment.
    AnyVariable(String),
}

/// The parts of a format; `None` if only Python can fill in the format.
pub fn parse(py: Python<'_>, format: &str) -> Option<Vec<AccessPart>> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = format;
    while let Some(start) = rest.find('%') {
        text.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let (key, after) = rest.strip_prefix('(')?.split_once(')')?;
        // Python counts the brackets of a key, and applies flags and widths.
        if key.contains('(') || !after.starts_with('s') {
            return None;
        }
        rest = &after[1..];
        match value_of(py, key)? {
            Some(value) => {
                if !text.is_empty() {
                    parts.push(AccessPart::Text(std::mem::take(&mut text)));
                }
                parts.push(AccessPart::Value(value));
            }
            None => text.push('-'),
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(AccessPart::Text(text));
    }
    Some(parts)
}

/// The value with a key; the inner `None` if there is no such value. The outer `None` if only Python can look it up.
fn value_of(py: Python<'_>, key: &str) -> Option<Option<AccessValue>> {
    if let Some(named) = key.strip_prefix('{') {
        if !named.is_ascii() {
            return None;
        }
        let named = named.to_ascii_lowercase();
        let end = named.len().checked_sub(2).filter(|end| named.as_bytes()[*end] == b'}');
        let Some(end) = end else { return Some(None) };
        let name = named[..end].to_owned();
        return Some(match &named[end + 1..] {
            "i" => Some(AccessValue::RequestHeader(name)),
            "o" => Some(AccessValue::ResponseHeader(name)),
            "e" => Some(AccessValue::AnyVariable(name)),
            _ => None,
        });
    }
    let variable = |name: &str, missing| {
        let name = Owned::of(&PyString::intern(py, name));
        AccessValue::Variable { name, missing, usual: UsualPosition::new() }
    };
    Some(Some(match key {
        "h" => variable("REMOTE_ADDR", "-"),
        "u" => AccessValue::User,
        "t" => AccessValue::Time,
        "r" => AccessValue::RequestLine,
        "s" => AccessValue::Status,
        "m" => variable("REQUEST_METHOD", "None"),
        "U" => variable("PATH_INFO", "None"),
        "q" => variable("QUERY_STRING", "None"),
        "H" => variable("SERVER_PROTOCOL", "None"),
        "b" => AccessValue::BytesOrDash,
        "B" => AccessValue::Bytes,
        "f" => variable("HTTP_REFERER", "-"),
        "a" => variable("HTTP_USER_AGENT", "-"),
        "T" => AccessValue::Seconds,
        "D" => AccessValue::Microseconds,
        "M" => AccessValue::Milliseconds,
        "L" => AccessValue::DecimalSeconds,
        "p" => AccessValue::Process,
        // `%(l)s` is always a dash, and so is an unknown key.
        _ => return Some(None),
    }))
}
