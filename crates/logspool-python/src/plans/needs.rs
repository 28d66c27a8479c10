//! The values of a call, other than its message, that the formats of a route show. A call looks up only these values.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Each format lists the kinds of values for which it writes the same
//! bytes as Python.

use std::sync::{Mutex, PoisonError};

use logspool_record::format::{ArgumentKind, Format, FormatSpec, Layout, Need, RenderedBy};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::object::Owned;

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
    /// The fields of `bind` and `extra` that the formats show; `None` if they show none.
    pub fields: Option<&'static ShownFields>,
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
            fields: intersection(py, self.fields, other.fields),
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
        !self.of_thread() && self.fields.is_some_and(ShownFields::names_none)
    }

    #[inline(always)]
    fn of_thread(&self) -> bool {
        self.thread || self.thread_name || self.process_name || self.task_name
    }
}

/// Number of [`ArgumentKind`]s.
const KINDS: usize = ArgumentKind::Other as usize + 1;

/// Which side renders the value of a field, for each [`ArgumentKind`]; the index is the kind.
pub type Accepts = [RenderedBy; KINDS];

/// A field that a format shows by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    name: String,
    /// True if Python raises an error for a record without this field.
    required: bool,
    accepts: Accepts,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definition {
    /// True if a format shows every field.
    all: bool,
    /// True if a format shows the items of a list, a tuple or a dict. Only Python can read such items.
    containers: bool,
    named: Vec<Named>,
}

/// The fields that the formats of a route show.
pub struct ShownFields {
    definition: Definition,
    /// The names as `str`, in the order of `definition.named`.
    names: Vec<Owned>,
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
static KNOWN: Mutex<Vec<&'static ShownFields>> = Mutex::new(Vec::new());

fn known(py: Python<'_>, definition: Definition) -> &'static ShownFields {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|found| found.definition == definition) {
        return found;
    }
    let object = |named: &Named| Owned::of(&PyString::intern(py, &named.name));
    let names = definition.named.iter().map(object).collect();
    let made: &'static ShownFields = Box::leak(Box::new(ShownFields { definition, names }));
    known.push(made);
    made
}

/// The fields that a format shows; `None` if it shows none.
pub fn shown_by(py: Python<'_>, spec: &FormatSpec, format: &Format) -> Option<&'static ShownFields> {
    let all = format.needs().contains(Need::AllFields);
    // If a record lacks a field, a JSON format omits the field; a text format raises an error.
    let required = matches!(spec.layout, Layout::Text { .. });
    let named = |name: &String| Named { name: name.clone(), required, accepts: accepts(format, name) };
    let named: Vec<Named> = format.needs().fields().iter().map(named).collect();
    let containers = format.needs().contains(Need::Containers);
    (all || !named.is_empty()).then(|| known(py, Definition { all, containers, named }))
}

fn accepts(format: &Format, name: &str) -> Accepts {
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
pub fn intersection(
    py: Python<'_>,
    one: Option<&'static ShownFields>,
    other: Option<&'static ShownFields>,
) -> Option<&'static ShownFields> {
    let (Some(first), Some(second)) = (one, other) else { return one.or(other) };
    if std::ptr::eq(first, second) {
        return one;
    }
    let mut merged = first.definition.clone();
    merged.all |= second.definition.all;
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
    Some(known(py, merged))
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

    /// True if a format shows the items of a list, a tuple or a dict. Only Python can read such items.
    pub fn containers(&self) -> bool {
        self.definition.containers
    }

    /// The fields that the formats name. Each item has the name, whether Python raises an error for a record without
    /// the field, and which side renders a value of each kind.
    pub fn named(&self) -> impl Iterator<Item = (&Owned, bool, &Accepts)> {
        self.names.iter().zip(&self.definition.named).map(|(name, named)| (name, named.required, &named.accepts))
    }
}
