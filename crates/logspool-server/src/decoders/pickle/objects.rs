//! Objects of a pickle as text: classes and calls that are recognised, and those that are not.

use std::borrow::Cow;

use super::show::{Left, shown};
use super::{Id, Node, Pickle, text};
use crate::value::Value;

/// A class or function, or what a call of one would make.
#[derive(Debug)]
pub struct Object<'a> {
    what: What<'a>,
    /// What `__setstate__` would get.
    pub state: Option<Id>,
    /// What would be appended or added.
    pub items: Vec<Id>,
    /// Keys and values that would be set.
    pub pairs: Vec<(Id, Id)>,
}

#[derive(Debug)]
enum What<'a> {
    Global(Cow<'a, str>, Cow<'a, str>),
    Call { function: Id, arguments: Id },
}

impl<'a> Object<'a> {
    /// A class or function by its module and name.
    pub fn global(module: Cow<'a, str>, name: Cow<'a, str>) -> Self {
        Self::new(What::Global(module, name))
    }

    /// A call.
    pub fn call(function: Id, arguments: Id) -> Self {
        Self::new(What::Call { function, arguments })
    }

    fn new(what: What<'a>) -> Self {
        Self { what, state: None, items: Vec::new(), pairs: Vec::new() }
    }
}

/// Bytes as Python shows them: `b'...'`.
pub fn bytes_text<'a>(bytes: &[u8]) -> Cow<'a, str> {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut shown = format!("b{quote}");
    for byte in bytes {
        match byte {
            b'\n' => shown.push_str("\\n"),
            b'\r' => shown.push_str("\\r"),
            b'\t' => shown.push_str("\\t"),
            b'\\' => shown.push_str("\\\\"),
            0x20..=0x7E if char::from(*byte) == quote => shown.extend(['\\', quote]),
            0x20..=0x7E => shown.push(char::from(*byte)),
            _ => shown.push_str(&format!("\\x{byte:02x}")),
        }
    }
    shown.push(quote);
    Cow::Owned(shown)
}

/// A call with its parts.
struct Call<'p, 'a> {
    module: &'p str,
    name: &'p str,
    arguments: &'p [Id],
    state: Option<&'p Node<'a>>,
}

impl<'a> Pickle<'a> {
    /// Shows an object. `deeper`: how many levels are left inside of it.
    pub(super) fn show_object(&self, object: &Object<'a>, deeper: usize, left: &mut Left) -> Value<'a> {
        if let What::Global(..) = object.what {
            return shown(self.name_of(object, deeper), left);
        }
        if let Some(call) = self.call_of(object) {
            if let Some(text) = self.known(&call) {
                return shown(text, left);
            }
            if let Some(container) = self.container(&call, object, deeper, left) {
                return container;
            }
        }
        // A class of a dict or list, known or not.
        if !object.pairs.is_empty() {
            return self.show_map(&object.pairs, deeper, left);
        }
        if !object.items.is_empty() {
            return self.show_items(&object.items, deeper, left);
        }
        shown(self.name_of(object, deeper), left)
    }

    /// `<module.Class>`
    fn name_of(&self, object: &Object<'a>, deeper: usize) -> Cow<'a, str> {
        let mut object = object;
        // A call of what a call makes, and so on; the bound is that of all values in values.
        for _ in 0..=deeper {
            match &object.what {
                What::Global(module, name) => return Cow::Owned(format!("<{module}.{name}>")),
                What::Call { function, arguments } => {
                    let Node::Object(function) = self.node(*function) else { break };
                    object = match (&function.what, self.arguments(*arguments).first().map(|id| self.node(*id))) {
                        // `copyreg._reconstructor(Class, ...)`, `copyreg.__newobj__(Class, ...)`
                        (What::Global(module, _), Some(Node::Object(class)))
                            if matches!(&**module, "copyreg" | "copy_reg") =>
                        {
                            class
                        }
                        _ => function,
                    };
                }
            }
        }
        Cow::Borrowed("<object>")
    }

    fn arguments(&self, id: Id) -> &[Id] {
        match self.node(id) {
            Node::Items(items) => items,
            _ => &[],
        }
    }

    /// The call that a node is.
    fn call_at<'p>(&'p self, node: &Node<'a>) -> Option<Call<'p, 'a>> {
        let Node::Object(object) = node else { return None };
        self.call_of(object)
    }

    /// The call of a class or function, seen through the helpers of protocols 0 and 1; `None`: it is another object.
    fn call_of<'p>(&'p self, object: &Object<'a>) -> Option<Call<'p, 'a>> {
        let What::Call { function, arguments } = &object.what else { return None };
        let Node::Object(called) = self.node(*function) else { return None };
        let What::Global(module, name) = &called.what else { return None };
        let mut call =
            Call { module, name, arguments: self.arguments(*arguments), state: object.state.map(|id| self.node(id)) };
        if matches!(call.module, "copyreg" | "copy_reg") {
            let (first, rest) = call.arguments.split_first()?;
            let Node::Object(class) = self.node(*first) else { return None };
            let What::Global(module, name) = &class.what else { return None };
            call = Call { module, name, arguments: rest, ..call };
        }
        if matches!(call.module, "__builtin__") {
            call.module = "builtins";
        }
        Some(call)
    }

    fn argument<'p>(&'p self, call: &Call<'p, 'a>, index: usize) -> Option<&'p Node<'a>> {
        call.arguments.get(index).map(|id| self.node(*id))
    }

    fn int(&self, call: &Call<'_, 'a>, index: usize) -> Option<i64> {
        match self.argument(call, index)? {
            Node::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Bytes as an argument: themselves, or how protocols 0 to 2 write them.
    fn byte_string(&self, node: &Node<'a>) -> Option<Vec<u8>> {
        match node {
            Node::Bytes(bytes) => Some(bytes.to_vec()),
            // The text of a Python 2 `str`.
            Node::Text(text) => text::to_latin1(text),
            Node::Object(object) => {
                let call = self.call_of(object)?;
                match (call.module, call.name, self.argument(&call, 0)) {
                    ("_codecs", "encode", Some(Node::Text(text))) => text::to_latin1(text),
                    ("builtins", "bytes" | "bytearray", None) => Some(Vec::new()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What has a common form as text.
    fn known(&self, call: &Call<'_, 'a>) -> Option<Cow<'a, str>> {
        let text = match (call.module, call.name) {
            ("_codecs", "encode") => match self.argument(call, 0)? {
                Node::Text(text) => return text::to_latin1(text).map(|bytes| bytes_text(&bytes)),
                _ => return None,
            },
            ("builtins", "bytes" | "bytearray") => match self.argument(call, 0) {
                None => return Some(bytes_text(b"")),
                Some(node) => return self.byte_string(node).map(|bytes| bytes_text(&bytes)),
            },
            ("builtins", "complex") => {
                let part = |index| match self.argument(call, index) {
                    Some(Node::Float(value)) => Some(*value),
                    _ => None,
                };
                let (real, imaginary) = (part(0)?, part(1)?);
                format!("({real}{imaginary:+}j)")
            }
            // How an Enum says which of its members it is: `getattr(Class, "MEMBER")`.
            ("builtins", "getattr") => match (self.argument(call, 0)?, self.argument(call, 1)?) {
                (Node::Object(class), Node::Text(member)) => match &class.what {
                    What::Global(_, class) => format!("{class}.{member}"),
                    What::Call { .. } => return None,
                },
                _ => return None,
            },
            ("datetime", "datetime") => {
                let zone = self.argument(call, 1).and_then(|zone| self.zone(zone)).unwrap_or_default();
                datetime(&self.byte_string(self.argument(call, 0)?)?)? + &zone
            }
            ("datetime", "date") => date(&self.byte_string(self.argument(call, 0)?)?)?,
            ("datetime", "time") => time(&self.byte_string(self.argument(call, 0)?)?)?,
            ("datetime", "timedelta") => {
                let (days, seconds, micros) = (self.int(call, 0)?, self.int(call, 1)?, self.int(call, 2)?);
                let whole = days.checked_mul(86_400)?.checked_add(seconds)?;
                // As `str(timedelta.total_seconds())`, with its unit.
                format!("{} s", whole as f64 + micros as f64 / 1e6)
            }
            ("decimal", "Decimal") => match self.argument(call, 0)? {
                Node::Text(text) => return Some(text.clone()),
                _ => return None,
            },
            ("uuid", "UUID") => uuid(self.state_of(call.state?, "int")?)?,
            // An Enum by its value, or any class that takes one plain value.
            _ if call.arguments.len() == 1 && call.state.is_none() => {
                let value = match self.argument(call, 0)? {
                    Node::Int(value) => value.to_string(),
                    Node::Text(text) => format!("'{text}'"),
                    _ => return None,
                };
                format!("<{}.{}({value})>", call.module, call.name)
            }
            _ => return None,
        };
        Some(Cow::Owned(text))
    }

    /// Sets, deques and their like, whose values come as an argument.
    fn container(&self, call: &Call<'_, 'a>, object: &Object<'a>, deeper: usize, left: &mut Left) -> Option<Value<'a>> {
        match (call.module, call.name) {
            ("builtins", "set" | "frozenset") => match self.argument(call, 0) {
                Some(Node::Items(items)) => Some(self.show_items(items, deeper, left)),
                None => Some(Value::List(Vec::new())),
                Some(_) => None,
            },
            ("collections", "OrderedDict" | "defaultdict" | "Counter") => match self.argument(call, 0) {
                Some(Node::Map(pairs)) => Some(self.show_map(pairs, deeper, left)),
                _ => Some(self.show_map(&object.pairs, deeper, left)),
            },
            ("collections", "deque") => Some(self.show_items(&object.items, deeper, left)),
            _ => None,
        }
    }

    /// A value of an object's state, which is a dict.
    fn state_of<'p>(&'p self, state: &'p Node<'a>, name: &str) -> Option<&'p Node<'a>> {
        let Node::Map(pairs) = state else { return None };
        let found = pairs.iter().find(|(key, _)| matches!(self.node(*key), Node::Text(key) if key == name));
        found.map(|(_, value)| self.node(*value))
    }

    /// `+01:00` for a `datetime.timezone`.
    fn zone(&self, node: &Node<'a>) -> Option<String> {
        let call = self.call_at(node)?;
        if (call.module, call.name) != ("datetime", "timezone") {
            return None;
        }
        let delta = self.call_at(self.argument(&call, 0)?)?;
        let seconds = self.int(&delta, 0)?.checked_mul(86_400)?.checked_add(self.int(&delta, 1)?)?;
        let (sign, seconds) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let rest = if rest == 0 { String::new() } else { format!(":{rest:02}") };
        Some(format!("{sign}{hours:02}:{minutes:02}{rest}"))
    }
}

/// The bytes of a `datetime.date`, as ISO 8601 shows it.
fn date(bytes: &[u8]) -> Option<String> {
    let [high, low, month, day] = bytes else { return None };
    Some(format!("{:04}-{month:02}-{day:02}", u16::from_be_bytes([*high, *low])))
}

/// The bytes of a `datetime.time`, as ISO 8601 shows it. The highest bit of the first says which of two equal times.
fn time(bytes: &[u8]) -> Option<String> {
    let [hour, minute, second, micros @ ..] = bytes else { return None };
    let [high, middle, low] = micros else { return None };
    let micros = u32::from_be_bytes([0, *high, *middle, *low]);
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    Some(format!("{:02}:{minute:02}:{second:02}{fraction}", hour & 0x7F))
}

/// The bytes of a `datetime.datetime`. The highest bit of the month is the fold.
fn datetime(bytes: &[u8]) -> Option<String> {
    let (day, moment) = bytes.split_at_checked(4)?;
    let [high, low, month, day] = day else { return None };
    Some(format!("{}T{}", date(&[*high, *low, month & 0x7F, *day])?, time(moment)?))
}

/// The integer of a `uuid.UUID`.
fn uuid(node: &Node<'_>) -> Option<String> {
    let number = match node {
        Node::Int(value) => u128::try_from(*value).ok()?,
        Node::Long(digits) => digits.parse().ok()?,
        _ => return None,
    };
    let text = format!("{number:032x}");
    Some(format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]))
}
