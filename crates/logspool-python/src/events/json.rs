//! An event as `json.dumps` without options writes it: only ASCII, a space after each comma and colon.

use logspool_record::Value;
use logspool_record::format::{NonAscii, push_json_string, push_repr};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::values::plain;
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::list::ListWalk;
use crate::interpreter::object::{self, Object, Owned};

/// Maximum depth of nested values. Deeper ones, and values that contain themselves, are left to `json.dumps`.
///
/// Chosen: programs log three or four levels. Each level takes stack, which Python's recursion limit does not count.
const MAX_DEPTH: usize = 32;

/// Appends an exact dict as JSON. `false`: only `json.dumps` can write it.
pub fn push_dict(out: &mut Vec<u8>, fields: Object<'_, '_>) -> bool {
    push_members(out, fields, 0)
}

fn push_members(out: &mut Vec<u8>, fields: Object<'_, '_>, depth: usize) -> bool {
    // Without a GIL another thread could change the dict, so a copy is read in such builds.
    let copy = if cfg!(Py_GIL_DISABLED) { dict::copy(fields).ok() } else { Some(Owned::of(&fields)) };
    let Some(copy) = copy else { return false };
    let mut walk = DictWalk::of(copy.bind(fields.py()));
    out.push(b'{');
    let mut is_first = true;
    while let Some((key, value)) = walk.next() {
        if !object::is_exact_str(key) {
            return false;
        }
        let Some(key) = object::text(key) else { return false };
        if !is_first {
            out.extend_from_slice(b", ");
        }
        is_first = false;
        push_json_string(out, key, true);
        out.extend_from_slice(b": ");
        if !push_value(out, value, depth) {
            return false;
        }
    }
    out.push(b'}');
    true
}

fn push_value(out: &mut Vec<u8>, value: Object<'_, '_>, depth: usize) -> bool {
    match plain(value) {
        Some(Value::None) => out.extend_from_slice(b"null"),
        Some(Value::Bool(true)) => out.extend_from_slice(b"true"),
        Some(Value::Bool(false)) => out.extend_from_slice(b"false"),
        Some(Value::Str(text)) => push_json_string(out, text, true),
        Some(Value::Float(number)) if number.is_nan() => out.extend_from_slice(b"NaN"),
        Some(Value::Float(f64::INFINITY)) => out.extend_from_slice(b"Infinity"),
        Some(Value::Float(f64::NEG_INFINITY)) => out.extend_from_slice(b"-Infinity"),
        Some(number) => push_repr(out, number, NonAscii::Keep),
        None if depth == MAX_DEPTH => return false,
        None if value.is_exact_instance_of::<PyDict>() => return push_members(out, value, depth + 1),
        None => return push_items(out, value, depth + 1),
    }
    true
}

fn push_items(out: &mut Vec<u8>, value: Object<'_, '_>, depth: usize) -> bool {
    let py = value.py();
    out.push(b'[');
    let start = out.len();
    let push = |out: &mut Vec<u8>, item: Object<'_, '_>| {
        if out.len() > start {
            out.extend_from_slice(b", ");
        }
        push_value(out, item, depth)
    };
    if let Some(items) = object::tuple_items(value) {
        for item in items {
            if !push(out, *item) {
                return false;
            }
        }
    } else if value.is_exact_instance_of::<PyList>() {
        let mut walk = ListWalk::from(value, 0);
        while let Some(item) = walk.next() {
            if !push(out, item.bind(py)) {
                return false;
            }
        }
    } else {
        return false;
    }
    out.push(b']');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_beyond_ascii_and_control_characters_are_escaped() {
        let mut out = Vec::new();
        push_json_string(&mut out, "a~\x7f \"\\\n\r\t\x08\x0c\x01é\u{2028}\u{1F600}", true);

        let expected = "\"a~\\u007f \\\"\\\\\\n\\r\\t\\b\\f\\u0001\\u00e9\\u2028\\ud83d\\ude00\"";
        assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
    }
}
