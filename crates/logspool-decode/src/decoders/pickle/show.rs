//! Converts the nodes of a pickle to values, within the limits.

use std::borrow::Cow;

use super::graph::{Id, Node, Pickle};
use super::text::bytes_text;
use crate::value::Value;

/// The amounts that are left of the limits of a pickle.
pub struct RemainingLimits {
    items: usize,
    bytes: usize,
}

impl RemainingLimits {
    /// True if text of this length may still be shown. Check it before copying: a memo may refer to one long text many
    /// times.
    pub fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.bytes
    }

    /// Subtracts a text's length from the bytes that are left. The text was shown, or inspected without a result.
    /// Returns false if the text is longer than the bytes that are left. No bytes are left then.
    pub fn take(&mut self, bytes: usize) -> bool {
        let has_room = self.has_room(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        has_room
    }
}

/// Shown instead of values beyond the limits.
pub const LIMIT_REACHED: &str = "...";

impl<'a> Pickle<'a> {
    pub(super) fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id as usize]
    }

    fn left(&self) -> RemainingLimits {
        RemainingLimits { items: self.limits.items, bytes: self.bytes.saturating_mul(self.limits.expansion) }
    }

    /// The whole pickle as one value. Values beyond the limits are shown as `...`.
    pub fn value(&self) -> Value<'a> {
        self.show(self.root, self.limits.depth, &mut self.left())
    }

    /// The pairs of a dict with text keys, one by one. `None`: the pickle is not such a dict.
    ///
    /// Keys of other types are skipped: `logging.makeLogRecord` cannot have set them.
    pub fn entries(&self) -> Option<impl Iterator<Item = (Cow<'a, str>, Value<'a>)>> {
        let Node::Map(pairs) = self.node(self.root) else { return None };
        let mut left = self.left();
        let texts = pairs.iter().filter_map(|(key, value)| match self.node(*key) {
            Node::Text(key) => Some((key, *value)),
            _ => None,
        });
        // Keys have a separate limit. If the values exceed their own limit, the remaining keys are still shown.
        let mut keys = self.left();
        Some(texts.take(self.limits.items).map_while(move |(key, value)| {
            keys.take(key.len()).then(|| (key.clone(), self.show(value, self.limits.depth, &mut left)))
        }))
    }

    fn show(&self, id: Id, depth: usize, left: &mut RemainingLimits) -> Value<'a> {
        // Values that are nested too deeply count as well: a memo may refer many times to a list of such values.
        let Some(items) = left.items.checked_sub(1) else { return Value::text(LIMIT_REACHED) };
        left.items = items;
        let Some(deeper) = depth.checked_sub(1) else { return Value::text(LIMIT_REACHED) };
        match self.node(id) {
            Node::None => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Float(value) => Value::Float(*value),
            Node::Long(text) | Node::Text(text) if left.has_room(text.len()) => shown(text.clone(), left),
            Node::Bytes(bytes) if left.has_room(bytes.len()) => shown(bytes_text(bytes), left),
            Node::Long(_) | Node::Text(_) | Node::Bytes(_) => Value::text(LIMIT_REACHED),
            Node::Items(items) => self.show_items(items, deeper, left),
            Node::Map(pairs) => self.show_map(pairs, deeper, left),
            Node::Object(object) => self.show_object(object, deeper, left),
        }
    }

    pub(super) fn show_items(&self, items: &[Id], deeper: usize, left: &mut RemainingLimits) -> Value<'a> {
        let mut values = Vec::new();
        for item in items {
            values.push(self.show(*item, deeper, left));
            if left.items == 0 {
                break;
            }
        }
        Value::List(values)
    }

    pub(super) fn show_map(&self, pairs: &[(Id, Id)], deeper: usize, left: &mut RemainingLimits) -> Value<'a> {
        let mut values = Vec::new();
        for (key, value) in pairs {
            // A key may also be a dict, even the dict that contains it.
            let is_leaf = !matches!(self.node(*key), Node::Items(_) | Node::Map(_) | Node::Object(_));
            let key = match self.show(*key, if is_leaf { 1 } else { deeper.min(1) }, left) {
                Value::Text(key) => key,
                // The key is a tuple.
                Value::List(_) | Value::Map(_) => Cow::Borrowed(LIMIT_REACHED),
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

/// Returns the text, or `...` if it is longer than the bytes that are left.
pub fn shown<'a>(text: Cow<'a, str>, left: &mut RemainingLimits) -> Value<'a> {
    if left.take(text.len()) { Value::Text(text) } else { Value::text(LIMIT_REACHED) }
}
