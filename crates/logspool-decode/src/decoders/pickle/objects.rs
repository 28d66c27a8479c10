//! Shows the objects of a pickle as text: classes, functions and calls, whether known or unknown.

use std::borrow::Cow;

use super::graph::{Id, Node, Object, ObjectKind, Pickle};
use super::show::{LIMIT_REACHED, RemainingLimits, shown};
use super::text::{self, bytes_text};
use crate::value::Value;

impl Object {
    /// A class or function by module and name. Both are ids of nodes, because a memo may use one text many times.
    pub fn global(module: Id, name: Id) -> Self {
        Self::new(ObjectKind::Global { module, name })
    }

    /// A call.
    pub fn call(function: Id, arguments: Id) -> Self {
        Self::new(ObjectKind::Call { function, arguments })
    }

    fn new(kind: ObjectKind) -> Self {
        Self { kind, state: None, items: Vec::new(), pairs: Vec::new() }
    }
}

/// A call with its parts.
pub(super) struct Call<'p, 'a> {
    pub module: &'p str,
    pub name: &'p str,
    pub arguments: &'p [Id],
    pub state: Option<&'p Node<'a>>,
}

impl<'a> Pickle<'a> {
    /// Shows an object. `deeper` is the number of nesting levels left inside it.
    pub(super) fn show_object(&self, object: &Object, deeper: usize, left: &mut RemainingLimits) -> Value<'a> {
        if let ObjectKind::Global { .. } = object.kind {
            return self.show_name(object, deeper, left);
        }
        if let Some(call) = self.call_of(object) {
            let inspected_bytes = self.inspected_bytes(&call);
            if !left.has_room(inspected_bytes + call.module.len() + call.name.len()) {
                return Value::text(LIMIT_REACHED);
            }
            if let Some(text) = self.known_text(&call) {
                return shown(text, left);
            }
            left.take(inspected_bytes);
            if let Some(container) = self.container(&call, object, deeper, left) {
                return container;
            }
        }
        // The object has pairs or items: it is an instance of a dict or list class, known or unknown.
        if !object.pairs.is_empty() {
            return self.show_map(&object.pairs, deeper, left);
        }
        if !object.items.is_empty() {
            return self.show_items(&object.items, deeper, left);
        }
        if let Some(instance) = self.call_of(object).and_then(|call| self.instance(&call, deeper, left)) {
            return instance;
        }
        self.show_name(object, deeper, left)
    }

    /// Shows `<module.Class>`.
    fn show_name(&self, object: &Object, deeper: usize, left: &mut RemainingLimits) -> Value<'a> {
        match self.name_of(object, deeper) {
            None => shown(Cow::Borrowed("<object>"), left),
            Some((module, name)) if left.has_room(module.len() + name.len()) => {
                shown(Cow::Owned(format!("<{module}.{name}>")), left)
            }
            Some(_) => Value::text(LIMIT_REACHED),
        }
    }

    /// Module and name of a class or function. For the result of a call, those of the called class or function.
    fn name_of(&self, object: &Object, deeper: usize) -> Option<(&str, &str)> {
        let mut object = object;
        // A call may be the function of another call, and so on. The loop is bounded by the remaining nesting depth.
        for _ in 0..=deeper {
            let ObjectKind::Call { function, arguments } = &object.kind else { return self.global_of(object) };
            let Node::Object(function) = self.node(*function) else { break };
            object = match (self.global_of(function), self.arguments(*arguments).first().map(|id| self.node(*id))) {
                // `copyreg._reconstructor(Class, ...)`, `copyreg.__newobj__(Class, ...)`
                (Some(("copyreg" | "copy_reg", _)), Some(Node::Object(class))) => class,
                _ => function,
            };
        }
        None
    }

    /// Module and name of a class or function. `None`: the object is a call.
    fn global_of(&self, object: &Object) -> Option<(&str, &str)> {
        let ObjectKind::Global { module, name } = &object.kind else { return None };
        match (self.node(*module), self.node(*name)) {
            (Node::Text(module), Node::Text(name)) => Some((module, name)),
            _ => None,
        }
    }

    fn arguments(&self, id: Id) -> &[Id] {
        match self.node(id) {
            Node::Items(items) => items,
            _ => &[],
        }
    }

    /// The call that a node represents; `None` for other nodes.
    fn call_at<'p>(&'p self, node: &Node<'a>) -> Option<Call<'p, 'a>> {
        let Node::Object(object) = node else { return None };
        self.call_of(object)
    }

    /// The call of a class or function. Calls through the helpers of protocols 0 and 1 are resolved. `None`: the object
    /// is not such a call.
    fn call_of<'p>(&'p self, object: &Object) -> Option<Call<'p, 'a>> {
        let ObjectKind::Call { function, arguments } = &object.kind else { return None };
        let Node::Object(called) = self.node(*function) else { return None };
        let (module, name) = self.global_of(called)?;
        let mut call =
            Call { module, name, arguments: self.arguments(*arguments), state: object.state.map(|id| self.node(id)) };
        if matches!(call.module, "copyreg" | "copy_reg") {
            let (first, rest) = call.arguments.split_first()?;
            let Node::Object(class) = self.node(*first) else { return None };
            let (module, name) = self.global_of(class)?;
            let arguments = if call.name == "_reconstructor" { self.base_values(rest) } else { rest };
            call = Call { module, name, arguments, ..call };
        }
        // Protocols 0 to 2 have the names of Python 2.
        if matches!(call.module, "__builtin__" | "exceptions") {
            call.module = "builtins";
        }
        if (call.module, call.name) == ("builtins", "xrange") {
            call.name = "range";
        }
        Some(call)
    }

    /// The values in the arguments of `copyreg._reconstructor` after the class: a built-in type, and its value.
    fn base_values<'p>(&'p self, arguments: &'p [Id]) -> &'p [Id] {
        match arguments.get(1).map(|id| self.node(*id)) {
            None | Some(Node::None) => &[],
            Some(Node::Items(items)) => items,
            Some(_) => &arguments[1..2],
        }
    }

    pub(super) fn argument<'p>(&'p self, call: &Call<'p, 'a>, index: usize) -> Option<&'p Node<'a>> {
        call.arguments.get(index).map(|id| self.node(*id))
    }

    fn int(&self, call: &Call<'_, 'a>, index: usize) -> Option<i64> {
        match self.argument(call, index)? {
            Node::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of an argument: a bytes node, or bytes as protocols 0 to 2 encode them.
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

    /// Bytes of arguments that [`Self::known_text`] may copy or inspect before its result can be counted.
    fn inspected_bytes(&self, call: &Call<'_, 'a>) -> usize {
        let length = |node: &Node<'a>| match node {
            Node::Text(text) => text.len(),
            Node::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        // All parts of a path are copied.
        let most = if call.module.starts_with("pathlib") { usize::MAX } else { 2 };
        let each = call.arguments.iter().take(most).map(|id| match self.node(*id) {
            // The object represents bytes as protocols 0 to 2 encode them, or the class of an Enum.
            Node::Object(inner) => match (self.global_of(inner), self.call_of(inner)) {
                (Some((_, name)), _) => name.len(),
                (None, Some(inner)) => self.argument(&inner, 0).map_or(0, length),
                (None, None) => 0,
            },
            node => length(node),
        });
        each.sum()
    }

    /// The text of an object whose type has a common text form.
    fn known_text(&self, call: &Call<'_, 'a>) -> Option<Cow<'a, str>> {
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
            // An Enum names its member by `getattr(Class, "MEMBER")`.
            ("builtins", "getattr") => match (self.argument(call, 0)?, self.argument(call, 1)?) {
                (Node::Object(class), Node::Text(member)) => {
                    let (_, class) = self.global_of(class)?;
                    format!("{class}.{member}")
                }
                _ => return None,
            },
            ("datetime", "datetime") => {
                let zone = self.argument(call, 1);
                let zone = zone.and_then(|zone| self.zone(zone).or_else(|| self.zone_name(zone))).unwrap_or_default();
                datetime(&self.byte_string(self.argument(call, 0)?)?)? + &zone
            }
            ("datetime", "date") => date(&self.byte_string(self.argument(call, 0)?)?)?,
            ("datetime", "time") => time(&self.byte_string(self.argument(call, 0)?)?)?,
            ("datetime", "timedelta") => {
                let (days, seconds, micros) = (self.int(call, 0)?, self.int(call, 1)?, self.int(call, 2)?);
                let whole = days.checked_mul(86_400)?.checked_add(seconds)?;
                // The text is `str(timedelta.total_seconds())`, followed by the unit.
                format!("{} s", whole as f64 + micros as f64 / 1e6)
            }
            ("decimal", "Decimal") => match self.argument(call, 0)? {
                Node::Text(text) => return Some(text.clone()),
                _ => return None,
            },
            ("pathlib" | "pathlib._local", _) => self.path(call)?,
            ("ipaddress", _) => match self.argument(call, 0)? {
                Node::Text(text) => return Some(text.clone()),
                _ => self.ip_address(call)?,
            },
            ("fractions", "Fraction") => match self.argument(call, 0)? {
                Node::Text(text) => return Some(text.clone()),
                _ => format!("{}/{}", self.int(call, 0)?, self.int(call, 1)?),
            },
            ("builtins", "range" | "slice") => {
                format!("{}({}, {}, {})", call.name, self.int(call, 0)?, self.int(call, 1)?, self.int(call, 2)?)
            }
            ("uuid", "UUID") => uuid(self.state_of(call.state?, "int")?)?,
            // An Enum by value, or any class that takes one plain value.
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

    /// Sets, deques and similar types, whose values are an argument.
    fn container(
        &self,
        call: &Call<'_, 'a>,
        object: &Object,
        deeper: usize,
        left: &mut RemainingLimits,
    ) -> Option<Value<'a>> {
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

    /// A value in an object's state, which is a dict.
    fn state_of<'p>(&'p self, state: &'p Node<'a>, name: &str) -> Option<&'p Node<'a>> {
        /// Maximum number of pairs that are searched. A UUID has two. The bound is needed because a memo may show one
        /// large object many times.
        const PAIRS: usize = 8;
        let Node::Map(pairs) = state else { return None };
        let found = pairs.iter().take(PAIRS).find(|(key, _)| matches!(self.node(*key), Node::Text(key) if key == name));
        found.map(|(_, value)| self.node(*value))
    }

    /// Shows a `zoneinfo.ZoneInfo` as `[Europe/Berlin]`. It is the result of a method that unpickling gets by `getattr`.
    fn zone_name(&self, node: &Node<'a>) -> Option<String> {
        /// Chosen: the longest name of a zone has 32 letters.
        const MOST_BYTES: usize = 64;
        let Node::Object(object) = node else { return None };
        let ObjectKind::Call { function, arguments } = &object.kind else { return None };
        let method = self.call_at(self.node(*function))?;
        let Node::Object(class) = self.argument(&method, 0)? else { return None };
        let (Some(("zoneinfo", _)), Some(name)) = (self.global_of(class), self.arguments(*arguments).first()) else {
            return None;
        };
        match self.node(*name) {
            Node::Text(name) if name.len() <= MOST_BYTES => Some(format!("[{name}]")),
            _ => None,
        }
    }

    /// Shows a `datetime.timezone` as `+01:00`.
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

/// Shows the bytes of a `datetime.date` in ISO 8601.
fn date(bytes: &[u8]) -> Option<String> {
    let [high, low, month, day] = bytes else { return None };
    Some(format!("{:04}-{month:02}-{day:02}", u16::from_be_bytes([*high, *low])))
}

/// Shows the bytes of a `datetime.time` in ISO 8601. The highest bit of the first byte is the fold.
fn time(bytes: &[u8]) -> Option<String> {
    let [hour, minute, second, micros @ ..] = bytes else { return None };
    let [high, middle, low] = micros else { return None };
    let micros = u32::from_be_bytes([0, *high, *middle, *low]);
    let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
    Some(format!("{:02}:{minute:02}:{second:02}{fraction}", hour & 0x7F))
}

/// Shows the bytes of a `datetime.datetime`. The highest bit of the month is the fold.
fn datetime(bytes: &[u8]) -> Option<String> {
    let (day, moment) = bytes.split_at_checked(4)?;
    let [high, low, month, day] = day else { return None };
    Some(format!("{}T{}", date(&[*high, *low, month & 0x7F, *day])?, time(moment)?))
}

/// Shows the integer of a `uuid.UUID`.
fn uuid(node: &Node<'_>) -> Option<String> {
    let number = match node {
        Node::Int(value) => u128::try_from(*value).ok()?,
        // An integer of 128 bits has at most 39 digits.
        Node::Long(digits) if digits.len() <= 39 => digits.parse().ok()?,
        _ => return None,
    };
    let text = format!("{number:032x}");
    Some(format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]))
}
