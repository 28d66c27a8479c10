//! Fills in a format of `logging.Formatter` with the values of a record, as the operator `%` does for plain values.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). `%` finds each placeholder anew and makes its name a `str` before it
//! looks the value up. Here a format is read once.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::calls::pieces::small_int;
use crate::interpreter::dict::{self, UsualPosition};
use crate::interpreter::object::{self, Object, Owned};

/// A format whose placeholders are all plain: `%(name)s` or `%(name)d`, with a width or without.
struct PercentFormat {
    /// The format, which is kept so that no other object has its address.
    format: Owned,
    /// The parts; `None` if `%` has to fill in the format.
    parts: Option<Vec<PercentPart>>,
}

/// One part of a format.
enum PercentPart {
    /// Text as it is in the line.
    Text(String),
    /// A value of the record.
    Value(Placeholder),
}

/// A placeholder for a value.
struct Placeholder {
    /// The key of the value.
    name: Owned,
    /// Where the key is in the `__dict__` of a record.
    usual: UsualPosition,
    /// True for `d`, which takes numbers only.
    is_number: bool,
    /// The number of characters that the value takes at least.
    width: usize,
    /// True if the value stands on the left of its room.
    is_left: bool,
}

/// The formats seen last.
static FORMATS: Mutex<Vec<Arc<PercentFormat>>> = Mutex::new(Vec::new());

/// Maximum number of formats that are kept. A further one replaces all others.
///
/// Chosen: programs have two or three.
const MAX_FORMATS: usize = 8;

/// The largest width that is filled in here.
///
/// Chosen: columns have some ten characters.
const MAX_WIDTH: usize = 256;

/// Length of the longest text of an `i64`.
const MAX_DIGITS: usize = 20;

/// Returns `format % values`, for an exact `str` and a dict. `None` without an exception: `%` has to do it. Runs no
/// user Python code.
pub fn fill_in(format: Object<'_, '_>, values: Object<'_, '_>) -> Option<Owned> {
    let py = format.py();
    let known = find(format)?;
    let mut line = Vec::with_capacity(160);
    for part in known.parts.as_ref()? {
        match part {
            PercentPart::Text(text) => line.extend_from_slice(text.as_bytes()),
            PercentPart::Value(placeholder) => {
                let value = dict::get_at(values, &placeholder.name, &placeholder.usual)?;
                placeholder.push(value.bind(py), &mut line)?;
            }
        }
    }
    let made = object::str_of(py, &line);
    if made.is_none() {
        object::clear_error(py);
    }
    made
}

fn find(format: Object<'_, '_>) -> Option<Arc<PercentFormat>> {
    if !object::is_exact_str(format) {
        return None;
    }
    let address = format.as_ptr();
    {
        let formats = FORMATS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = formats.iter().find(|known| known.format.as_ptr() == address) {
            return Some(known.clone());
        }
    }
    let parts = object::utf8(format).and_then(|text| parse(format.py(), std::str::from_utf8(text).ok()?));
    let made = Arc::new(PercentFormat { format: Owned::of(&format), parts });
    // Dropped after the lock is released.
    let _gone = {
        let mut formats = FORMATS.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = if formats.len() >= MAX_FORMATS { std::mem::take(&mut *formats) } else { Vec::new() };
        formats.push(made.clone());
        gone
    };
    Some(made)
}

/// Reads a format; `None` if it has a placeholder of another kind.
fn parse(py: Python<'_>, format: &str) -> Option<Vec<PercentPart>> {
    let mut parts = Vec::new();
    let mut rest = format;
    while let Some((text, after)) = rest.split_once('%') {
        if !text.is_empty() {
            parts.push(PercentPart::Text(text.to_owned()));
        }
        if let Some(after) = after.strip_prefix('%') {
            parts.push(PercentPart::Text("%".to_owned()));
            rest = after;
            continue;
        }
        let (name, after) = after.strip_prefix('(')?.split_once(')')?;
        if name.is_empty() || name.contains('(') {
            return None;
        }
        let (is_left, after) = after.strip_prefix('-').map_or((false, after), |after| (true, after));
        let digits = after.find(|letter: char| !letter.is_ascii_digit())?;
        // A leading zero fills with zeros.
        if after.starts_with('0') {
            return None;
        }
        let width = if digits == 0 { 0 } else { after[..digits].parse().ok().filter(|width| *width <= MAX_WIDTH)? };
        let after = &after[digits..];
        let is_number = match after.as_bytes().first()? {
            b's' => false,
            b'd' => true,
            _ => return None,
        };
        parts.push(PercentPart::Value(Placeholder {
            name: Owned::of(&PyString::intern(py, name)),
            usual: UsualPosition::new(),
            is_number,
            width,
            is_left,
        }));
        rest = &after[1..];
    }
    if !rest.is_empty() {
        parts.push(PercentPart::Text(rest.to_owned()));
    }
    Some(parts)
}

impl Placeholder {
    /// Appends the text of a value. `None`: `%` has to make it.
    fn push(&self, value: Object<'_, '_>, line: &mut Vec<u8>) -> Option<()> {
        if object::is_exact_str(value) && !self.is_number {
            let text = object::utf8(value)?;
            // Only of ASCII text are the characters known without counting.
            if self.width > 0 && !text.is_ascii() {
                return None;
            }
            self.push_padded(text, line);
            return Some(());
        }
        let number = small_int(value)?;
        let mut digits = [0; MAX_DIGITS];
        let mut room = &mut digits[..];
        write!(room, "{number}").ok()?;
        let length = MAX_DIGITS - room.len();
        self.push_padded(&digits[..length], line);
        Some(())
    }

    fn push_padded(&self, text: &[u8], line: &mut Vec<u8>) {
        let room = self.width.saturating_sub(text.len());
        if !self.is_left {
            line.resize(line.len() + room, b' ');
        }
        line.extend_from_slice(text);
        if self.is_left {
            line.resize(line.len() + room, b' ');
        }
    }
}
