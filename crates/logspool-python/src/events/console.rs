//! An event as structlog's `ConsoleRenderer(colors=False)` writes it.

use logspool_record::Value;

use super::key_values::items;
use super::values::{plain, push_repr_of, push_str_of};
use crate::interpreter::object::{self, Object};

/// The options of `ConsoleRenderer`.
pub struct ConsoleLayout {
    /// Number of characters to which the event is padded.
    pub event_width: usize,
    /// Number of characters to which the level is padded.
    pub level_width: usize,
    /// True if a `str` is always shown by its `repr`.
    pub repr_native_str: bool,
    /// True if the keys are sorted.
    pub sort_keys: bool,
    /// Key of the message.
    pub event_key: String,
    /// Key of the time.
    pub timestamp_key: String,
}

/// Keys that hold tracebacks. Only structlog's own renderer writes them.
const OF_EXCEPTIONS: [&str; 3] = ["stack", "exception", "exc_info"];

impl ConsoleLayout {
    /// Appends the line of an event. `false`: only structlog's own renderer can write it.
    pub fn push(&self, out: &mut Vec<u8>, event: Object<'_, '_>) -> bool {
        let Some(mut items) = items(event) else { return false };
        // Where an empty key is shown depends on the release of structlog.
        if items.iter().any(|(key, _)| OF_EXCEPTIONS.contains(key) || key.is_empty()) {
            return false;
        }
        let start = out.len();
        for column in [&*self.timestamp_key, "level", &*self.event_key, "logger", "logger_name"] {
            let Some(index) = items.iter().position(|(key, _)| *key == column) else { continue };
            if !self.push_column(out, start, column, items.remove(index).1) {
                return false;
            }
        }
        if self.sort_keys {
            // Python compares the code points, whose order is that of the UTF-8 bytes.
            items.sort_unstable_by_key(|(key, _)| *key);
        }
        for (key, value) in items {
            push_space(out, start);
            out.extend_from_slice(key.as_bytes());
            out.push(b'=');
            if !self.push_value(out, value) {
                return false;
            }
        }
        let end = start + out[start..].iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        out.truncate(end);
        true
    }

    fn push_column(&self, out: &mut Vec<u8>, start: usize, column: &str, value: Object<'_, '_>) -> bool {
        let before = out.len();
        push_space(out, start);
        let begin = out.len();
        if column == self.timestamp_key {
            if !push_str_of(out, value) {
                return false;
            }
        } else if column == "level" {
            let Some(Value::Str(level)) = plain(value) else { return false };
            out.push(b'[');
            out.extend_from_slice(level.as_bytes());
            pad(out, begin + 1, self.level_width);
            out.push(b']');
        } else if column == self.event_key {
            if !push_str_of(out, value) {
                return false;
            }
            pad(out, begin, self.event_width);
        } else {
            out.push(b'[');
            if !push_str_of(out, value) {
                return false;
            }
            out.push(b']');
        }
        // Empty columns get no space.
        if out.len() == begin {
            out.truncate(before);
        }
        true
    }

    fn push_value(&self, out: &mut Vec<u8>, value: Object<'_, '_>) -> bool {
        if !self.repr_native_str
            && object::is_exact_str(value)
            && let Some(text) = object::text(value)
            && !text.contains([' ', '\t', '=', '\r', '\n', '"', '\''])
        {
            out.extend_from_slice(text.as_bytes());
            return true;
        }
        push_repr_of(out, value)
    }
}

fn push_space(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.push(b' ');
    }
}

/// Pads the text from `begin` on with spaces to a number of characters.
fn pad(out: &mut Vec<u8>, begin: usize, width: usize) {
    let characters = out[begin..].iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    out.resize(out.len() + width.saturating_sub(characters), b' ');
}
