//! Shows the instances of classes that this service does not know: their attributes and arguments, by value.

use std::borrow::Cow;

use super::graph::{Id, Node, Pickle};
use super::objects::Call;
use super::show::RemainingLimits;
use crate::value::Value;

/// The name of the field that names the class of an instance.
const CLASS: &str = "__class__";

/// The name of the field for values without a name, as in a named tuple.
const VALUES: &str = "values";

impl<'a> Pickle<'a> {
    /// Shows an instance as a map of its attributes. `None`: the pickle has no values of it.
    pub(super) fn instance(&self, call: &Call<'_, 'a>, deeper: usize, left: &mut RemainingLimits) -> Option<Value<'a>> {
        let mut attributes: Vec<&[(Id, Id)]> = Vec::new();
        let mut values = call.arguments;
        match call.state {
            Some(Node::Map(pairs)) => attributes.push(pairs),
            // Attributes in `__dict__`, and attributes in slots; or the fields of a frozen dataclass with slots.
            Some(Node::Items(items)) => {
                let maps = || items.iter().take(2).map(|id| self.node(*id));
                let is_pair = items.len() == 2 && maps().all(|node| matches!(node, Node::Map(_) | Node::None));
                if is_pair {
                    attributes.extend(maps().filter_map(|node| match node {
                        Node::Map(pairs) => Some(&**pairs),
                        _ => None,
                    }));
                } else if values.is_empty() {
                    values = items;
                }
            }
            _ => {}
        }
        if attributes.iter().all(|pairs| pairs.is_empty()) && values.is_empty() {
            return None;
        }
        let class = call.module.len() + call.name.len() + 1;
        if !left.take(class) {
            return None;
        }
        let mut shown = vec![(Cow::Borrowed(CLASS), Value::text(format!("{}.{}", call.module, call.name)))];
        if !values.is_empty() {
            shown.push((Cow::Borrowed(VALUES), self.show_items(values, deeper, left)));
        }
        for pairs in attributes {
            if let Value::Map(pairs) = self.show_map(pairs, deeper, left) {
                shown.extend(pairs);
            }
        }
        Some(Value::Map(shown))
    }

    /// The path of `pathlib`: its parts, of which the first is the root of an absolute path.
    pub(super) fn path(&self, call: &Call<'_, 'a>) -> Option<String> {
        let separator = if call.name.contains("Windows") { '\\' } else { '/' };
        let mut path = String::new();
        for part in call.arguments {
            let Node::Text(part) = self.node(*part) else { return None };
            if !path.is_empty() && !path.ends_with(separator) {
                path.push(separator);
            }
            path.push_str(part);
        }
        Some(if path.is_empty() { ".".to_owned() } else { path })
    }

    /// An address of `ipaddress`, which is an integer.
    pub(super) fn ip_address(&self, call: &Call<'_, 'a>) -> Option<String> {
        let number: u128 = match self.argument(call, 0)? {
            Node::Int(number) => u128::try_from(*number).ok()?,
            Node::Long(digits) if digits.len() <= 39 => digits.parse().ok()?,
            _ => return None,
        };
        match call.name {
            "IPv4Address" => Some(std::net::Ipv4Addr::from(u32::try_from(number).ok()?).to_string()),
            "IPv6Address" => Some(std::net::Ipv6Addr::from(number).to_string()),
            _ => None,
        }
    }
}
