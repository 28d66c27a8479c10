//! From a pickle's nodes to values, as far as the limits allow.

use std::borrow::Cow;

use super::graph::{Id, Node, Pickle};
use super::text::bytes_text;
use crate::value::Value;

/// What may still be shown of a pickle.
pub struct Left {
    items: usize,
    bytes: usize,
}

impl Left {
    /// Whether so much text may still be shown. Asked before it is copied: a memo may refer to a long one many times.
    pub fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    /// Counts text as shown, also such that was looked at in vain; `false`: it is more than is left, and nothing is.
    pub fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.has_room(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        has_room
    }
}

/// Stands for what goes beyond the limits.
pub const BEYOND: &str = "...";

impl<'a> Pickle<'a> {
    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    fn left(&self) -> Left {
        Left { items: self.limits.items, bytes: self.bytes.saturating_mul(self.limits.expansion) }
    }

    /// The whole of it as one value. What is too deep or too much is shown as `...`.
    pub fn value(&self) -> Value<'a> {
        self.show(self.root, self.limits.depth, &mut self.left())
    }

    /// The pairs of a dict whose keys are text, one after the other; `None`: it is no such dict.
    ///
    /// Keys of other types are left out, as `logging.makeLogRecord` cannot have made them.
    pub fn entries(&self) -> Option<impl Iterator<Item = (Cow<'a, str>, Value<'a>)>> {
        let Node::Map(pairs) = self.node(self.root) else { return None };
        let mut left = self.left();
        let texts = pairs.iter().filter_map(|(key, value)| match self.node(*key) {
            Node::Text(key) => Some((key, *value)),
            _ => None,
        });
        // Keys have a bound of their own: where the values come to too much, whose they are is still told.
        let mut keys = self.left();
        Some(texts.take(self.limits.items).map_while(move |(key, value)| {
            keys.take(key.len()).then(|| (key.clone(), self.show(value, self.limits.depth, &mut left)))
        }))
    }

    fn show(&self, id: Id, depth: usize, left: &mut Left) -> Value<'a> {
        // Also what is too deep is counted: a memo may refer many times to a list of much of that.
        let Some(items) = left.items.checked_sub(1) else { return Value::text(BEYOND) };
        left.items = items;
        let Some(deeper) = depth.checked_sub(1) else { return Value::text(BEYOND) };
        match self.node(id) {
            Node::None => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Float(value) => Value::Float(*value),
            Node::Long(text) | Node::Text(text) if left.has_room(text.len()) => shown(text.clone(), left),
            Node::Bytes(bytes) if left.has_room(bytes.len()) => shown(bytes_text(bytes), left),
            Node::Long(_) | Node::Text(_) | Node::Bytes(_) => Value::text(BEYOND),
            Node::Items(items) => self.show_items(items, deeper, left),
            Node::Map(pairs) => self.show_map(pairs, deeper, left),
            Node::Object(object) => self.show_object(object, deeper, left),
        }
    }

    pub(super) fn show_items(&self, items: &[Id], deeper: usize, left: &mut Left) -> Value<'a> {
        let mut values = Vec::new();
        for item in items {
            values.push(self.show(*item, deeper, left));
            if left.items == 0 {
                break;
            }
        }
        Value::List(values)
    }

    pub(super) fn show_map(&self, pairs: &[(Id, Id)], deeper: usize, left: &mut Left) -> Value<'a> {
        let mut values = Vec::new();
        for (key, value) in pairs {
            // Also a dict may be a key, even of itself.
            let is_leaf = !matches!(self.node(*key), Node::Items(_) | Node::Map(_) | Node::Object(_));
            let key = match self.show(*key, if is_leaf { 1 } else { deeper.min(1) }, left) {
                Value::Text(key) => key,
                // A tuple.
                Value::List(_) | Value::Map(_) => Cow::Borrowed(BEYOND),
                other => Cow::Owned(other.printed()),
            };
            values.push((key, self.show(*value, deeper, left)));
            if left.items == 0 {
                break;
            }
        }
        Value::Map(values)
    }
}

/// Text, if so much of it may still be shown.
pub fn shown<'a>(text: Cow<'a, str>, left: &mut Left) -> Value<'a> {
    if left.take(text.len()) { Value::Text(text) } else { Value::text(BEYOND) }
}
