//! The values of a call, other than its message, that the formats of a route show. A call looks up only these values.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Each format lists the kinds of values for which it writes the same
//! bytes as Python.

use std::sync::{Mutex, PoisonError};

use logspool_record::format::{ArgumentKind, Format, FormatSpec, Layout, Need, RenderedBy};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::object::{self, Object, Owned};
use crate::plans::field_texts::FieldTexts;
use crate::plans::given_fields::GivenFields;

/// The context values that the formats of a route show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// True if a format shows the file, the line or the function of the caller.
    pub caller: bool,
    /// True if a format shows `%(thread)d`.
    pub thread: bool,
    /// True if a format shows `%(threadName)s`.
    pub thread_name: bool,
    /// True if a format shows `%(processName)s`.
    pub process_name: bool,
    /// True if a format shows `%(taskName)s`.
    pub task_name: bool,
    /// True if a format shows a message that is a dict in another way than as text.
    pub message_items: bool,
    /// True if a format shows a message that is a dict in another way than by its items.
    pub message_text: bool,
    /// True if a formatter makes the texts of exceptions and stacks in its own way.
    pub own_exceptions: bool,
    /// True if a formatter leaves other attributes on a record than `logging.Formatter` does.
    pub last_stop: bool,
    /// True if formatters of other handlers may show what a formatter leaves on a record.
    pub marks: bool,
    /// The fields of `bind` and `extra` that the formats show; `None` if they show none.
    pub fields: Option<&'static ShownFields>,
    /// The fields that known filters of the logger and its handlers set.
    pub given: Option<&'static GivenFields>,
}

impl Needs {
    /// The needs of `self` and of `other` together.
    pub fn union(self, py: Python<'_>, other: Self) -> Self {
        Self {
            caller: self.caller || other.caller,
            thread: self.thread || other.thread,
            thread_name: self.thread_name || other.thread_name,
            process_name: self.process_name || other.process_name,
            task_name: self.task_name || other.task_name,
            message_items: self.message_items || other.message_items,
            message_text: self.message_text || other.message_text,
            own_exceptions: self.own_exceptions || other.own_exceptions,
            last_stop: self.last_stop || other.last_stop,
            marks: self.marks || other.marks,
            fields: merged(py, self.fields, other.fields),
            given: self.given.or(other.given),
        }
    }

    /// The same needs, if the texts of fields that the collector does not render are made in this way.
    pub fn with_field_texts(self, py: Python<'_>, texts: FieldTexts) -> Self {
        let with_texts =
            |fields: &ShownFields| stored(py, ShownFieldsDefinition { texts, ..fields.definition.clone() });
        Self {
            fields: self
                .fields
                .map(|fields| if fields.definition.texts == texts { fields } else { with_texts(fields) }),
            ..self
        }
    }

    /// True if any value other than [`Needs::caller`] is needed.
    pub fn context(&self) -> bool {
        self.of_thread() || self.fields.is_some()
    }

    /// True if fields are needed and no other context value, and the formats name no field: every field that the call
    /// or `bind` gives is shown.
    #[inline(always)]
    pub fn only_given_fields(&self) -> bool {
        !self.of_thread() && self.given.is_none() && self.fields.is_some_and(ShownFields::names_none)
    }

    #[inline(always)]
    fn of_thread(&self) -> bool {
        self.thread || self.thread_name || self.process_name || self.task_name
    }
}

/// Number of [`ArgumentKind`]s.
const KINDS: usize = ArgumentKind::Other as usize + 1;

/// Which side renders the value of a field, for each [`ArgumentKind`]; the index is the kind.
pub type RenderingByKind = [RenderedBy; KINDS];

/// A field that a format shows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedField {
    name: String,
    /// True if Python raises an error for a record without this field.
    required: bool,
    accepts: RenderingByKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFieldsDefinition {
    /// True if a format shows every field.
    all: bool,
    /// True if a format shows the items of a list, a tuple or a dict. Only Python can read such items.
    containers: bool,
    named: Vec<NamedField>,
    /// How the formats that show every field show one that they do not name.
    unnamed: RenderingByKind,
    /// Names of the fields that formats which show every field leave out nevertheless.
    hidden: Vec<String>,
    /// True if those formats also leave out fields whose names begin with an underscore.
    hides_private: bool,
    /// How the texts of fields are made that the collector does not render.
    texts: FieldTexts,
    /// Names of the arguments that are sent as fields, for each format that shows arguments.
    arguments: Vec<Vec<String>>,
    nesting: FieldNesting,
}

/// Whether a dot in the name of a field separates the keys of nested objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldNesting {
    /// No format makes nested objects of fields.
    Flat,
    /// The formats make nested objects of all fields.
    Nested {
        /// The places that other members have, each as the keys that lead to it.
        taken: Vec<Vec<String>>,
        /// Names of fields that are left out, together with all fields below them.
        hidden: Vec<String>,
    },
    /// The formats show fields in different ways, so records with fields take the stock path.
    Mixed,
}

/// The fields that the formats of a route show.
pub struct ShownFields {
    definition: ShownFieldsDefinition,
    /// The names as `str`, in the order of `definition.named`.
    names: Vec<Owned>,
    /// The names of `definition.hidden` as `str`.
    hidden: Vec<Owned>,
    /// The names of `definition.arguments` as `str`.
    arguments: Vec<Vec<Owned>>,
}

impl std::fmt::Debug for ShownFields {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.definition.fmt(formatter)
    }
}

impl PartialEq for ShownFields {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl Eq for ShownFields {}

/// All sets of fields, each stored once. Sets are never freed, because routes refer to them.
///
/// The size of the core's tables limits their number: a format or route that has no room there needs no set.
static STORED: Mutex<Vec<&'static ShownFields>> = Mutex::new(Vec::new());

fn stored(py: Python<'_>, definition: ShownFieldsDefinition) -> &'static ShownFields {
    let mut stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = stored.iter().find(|found| found.definition == definition) {
        return found;
    }
    let object = |name: &String| Owned::of(&PyString::intern(py, name));
    let names = definition.named.iter().map(|named| object(&named.name)).collect();
    let hidden = definition.hidden.iter().map(object).collect();
    let arguments = definition.arguments.iter().map(|names| names.iter().map(object).collect()).collect();
    let made: &'static ShownFields = Box::leak(Box::new(ShownFields { definition, names, hidden, arguments }));
    stored.push(made);
    made
}

/// The fields that a format shows; `None` if it shows none.
pub fn shown_by(py: Python<'_>, spec: &FormatSpec, format: &Format) -> Option<&'static ShownFields> {
    let all = format.needs().contains(Need::AllFields);
    let named = |name: &String| NamedField {
        name: name.clone(),
        required: format.requires_field(name),
        accepts: accepts(format, name),
    };
    let named: Vec<NamedField> = format.needs().fields().iter().map(named).collect();
    let containers = format.needs().contains(Need::Containers);
    let (hidden, hides_private) = match &spec.layout {
        Layout::Object(object) if object.nested_paths().is_none() => (object.hidden.clone(), object.hides_private),
        _ => (Vec::new(), false),
    };
    let nested = match &spec.layout {
        Layout::Object(object) => object.nested_paths().map(|taken| (taken, object.hidden.clone())),
        _ => None,
    };
    let nesting = nested.map_or(FieldNesting::Flat, |(taken, hidden)| FieldNesting::Nested { taken, hidden });
    let arguments = match &spec.layout {
        Layout::Styled(styled) if !styled.arguments.is_empty() => vec![styled.arguments.clone()],
        _ => Vec::new(),
    };
    let unnamed = accepts(format, "");
    let texts = FieldTexts::Str;
    let definition =
        ShownFieldsDefinition { all, containers, named, unnamed, hidden, hides_private, texts, arguments, nesting };
    (all || !definition.named.is_empty()).then(|| stored(py, definition))
}

fn accepts(format: &Format, name: &str) -> RenderingByKind {
    let mut accepts = [RenderedBy::Mismatch; KINDS];
    for kind in [
        ArgumentKind::None,
        ArgumentKind::Bool,
        ArgumentKind::Int,
        ArgumentKind::BigInt,
        ArgumentKind::Float,
        ArgumentKind::AsciiStr,
        ArgumentKind::Str,
        ArgumentKind::Bytes,
        ArgumentKind::Other,
    ] {
        accepts[kind as usize] = format.accepts_field(name, kind);
    }
    accepts
}

/// The fields that `one` or `other` shows. If both name a field, it is required if either requires it, and the stricter
/// [`RenderedBy`] applies to each kind of value.
pub fn merged(
    py: Python<'_>,
    one: Option<&'static ShownFields>,
    other: Option<&'static ShownFields>,
) -> Option<&'static ShownFields> {
    let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
    if std::ptr::eq(first, second) {
        return one;
    }
    let mut merged = first.definition.clone();
    match (first.definition.all, second.definition.all) {
        (true, true) => {
            for (mine, others) in merged.unnamed.iter_mut().zip(second.definition.unnamed) {
                *mine = stricter(*mine, others);
            }
            merged.hidden.retain(|name| second.definition.hidden.contains(name));
            merged.hides_private &= second.definition.hides_private;
        }
        (false, true) => {
            merged.unnamed = second.definition.unnamed;
            merged.hidden.clone_from(&second.definition.hidden);
            merged.hides_private = second.definition.hides_private;
        }
        (_, false) => {}
    }
    merged.all |= second.definition.all;
    for names in &second.definition.arguments {
        if !merged.arguments.contains(names) {
            merged.arguments.push(names.clone());
        }
    }
    merged.texts = merged.texts.merged(second.definition.texts);
    if merged.nesting != second.definition.nesting {
        merged.nesting = FieldNesting::Mixed;
    }
    merged.containers |= second.definition.containers;
    for named in &second.definition.named {
        match merged.named.iter_mut().find(|known| known.name == named.name) {
            None => merged.named.push(named.clone()),
            Some(known) => {
                known.required |= named.required;
                for (mine, others) in known.accepts.iter_mut().zip(named.accepts) {
                    *mine = stricter(*mine, others);
                }
            }
        }
    }
    Some(stored(py, merged))
}

const fn stricter(one: RenderedBy, other: RenderedBy) -> RenderedBy {
    use RenderedBy::{Deferred, Mismatch, RenderInCaller};
    match (one, other) {
        (Mismatch, _) | (_, Mismatch) => Mismatch,
        (RenderInCaller, _) | (_, RenderInCaller) => RenderInCaller,
        (Deferred, Deferred) => Deferred,
    }
}

impl ShownFields {
    /// True if the formats name no field.
    #[inline(always)]
    pub fn names_none(&self) -> bool {
        self.definition.named.is_empty()
    }

    /// True if a format shows every field.
    pub fn all(&self) -> bool {
        self.definition.all
    }

    /// Whether a dot in the name of a field separates the keys of nested objects.
    pub fn nesting(&self) -> &FieldNesting {
        &self.definition.nesting
    }

    /// True if a format shows the items of a list, a tuple or a dict. Only Python can read such items.
    pub fn containers(&self) -> bool {
        self.definition.containers
    }

    /// Which side renders a value of each kind of a field that the formats show without naming it.
    pub fn unnamed(&self) -> &RenderingByKind {
        &self.definition.unnamed
    }

    /// How the texts of fields are made that the collector does not render.
    pub fn texts(&self) -> FieldTexts {
        self.definition.texts
    }

    /// The names of the arguments that are sent as fields, for each format that shows arguments.
    pub fn arguments(&self) -> &[Vec<Owned>] {
        &self.arguments
    }

    /// True if the formats leave out this field, although they show every other one.
    #[inline]
    pub fn hides(&self, name: Object<'_, '_>) -> bool {
        let is_private = || object::utf8(name).is_some_and(|text| text.starts_with(b"_"));
        let is_hidden = self.definition.hides_private && is_private()
            || self.hidden.iter().any(|hidden| object::has_text(name, hidden));
        is_hidden && !self.names.iter().any(|named| object::has_text(name, named))
    }

    /// The fields that the formats name. Each item has the name, whether Python raises an error for a record without
    /// the field, and which side renders a value of each kind.
    pub fn named(&self) -> impl Iterator<Item = (&Owned, bool, &RenderingByKind)> {
        self.names.iter().zip(&self.definition.named).map(|(name, named)| (name, named.required, &named.accepts))
    }
}
