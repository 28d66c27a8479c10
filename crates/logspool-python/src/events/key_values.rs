//! An event as `key=repr(value)` pairs, as structlog's `KeyValueRenderer` writes it.

use pyo3::prelude::*;

use super::values::push_repr_of;
use crate::interpreter::dict::DictWalk;
use crate::interpreter::object::{self, Object};

/// The options of `KeyValueRenderer`.
pub struct KeyValues {
    /// Keys that come first, in this order.
    pub key_order: Vec<String>,
    /// True if the other keys are sorted.
    pub sort_keys: bool,
    /// True if keys of `key_order` without a value are left out.
    pub drop_missing: bool,
    /// True if a `str` is shown by its `repr`, too.
    pub repr_native_str: bool,
}

/// The keys and values of an exact dict, in order; `None` if a key is not a plain `str`.
pub fn items<'a, 'py>(event: Object<'a, 'py>) -> Option<Vec<(&'a str, Object<'a, 'py>)>> {
    let mut items = Vec::with_capacity(8);
    let mut walk = DictWalk::of(event);
    while let Some((key, value)) = walk.next() {
        if !object::is_exact_str(key) {
            return None;
        }
        items.push((object::text(key)?, value));
    }
    Some(items)
}

impl KeyValues {
    /// Appends the pairs of an event. `false`: only structlog's own renderer can write it.
    pub fn push(&self, out: &mut Vec<u8>, event: Object<'_, '_>) -> bool {
        let Some(mut items) = items(event) else { return false };
        let start = out.len();
        for key in &self.key_order {
            let found = items.iter().position(|(name, _)| name == key).map(|index| items.remove(index).1);
            let shown = match found.filter(|value| !value.is_none()) {
                Some(value) => self.push_pair(out, start, key, Some(value)),
                None => self.drop_missing || self.push_pair(out, start, key, None),
            };
            if !shown {
                return false;
            }
        }
        if self.sort_keys {
            // Python compares the code points, whose order is that of the UTF-8 bytes.
            items.sort_unstable_by_key(|(name, _)| *name);
        }
        items.into_iter().all(|(key, value)| self.push_pair(out, start, key, Some(value)))
    }

    fn push_pair(&self, out: &mut Vec<u8>, start: usize, key: &str, value: Option<Object<'_, '_>>) -> bool {
        if out.len() > start {
            out.push(b' ');
        }
        out.extend_from_slice(key.as_bytes());
        out.push(b'=');
        let Some(value) = value else {
            out.extend_from_slice(b"None");
            return true;
        };
        if !self.repr_native_str && object::is_exact_str(value) {
            return object::utf8(value).map(|text| out.extend_from_slice(text)).is_some();
        }
        push_repr_of(out, value)
    }
}
