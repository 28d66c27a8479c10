//! What the formats of a route show of a call beside its message, so that nothing else is looked up.
//!
//! Stop on the line: *capture*. Each format says which kinds of values it shows as Python does.

use std::sync::{Mutex, PoisonError};

use logspool_record::format::{Acceptance, ArgumentKind, Format, FormatSpec, Layout, Need};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::object::Owned;

/// Which context values the formats behind a route show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// File, line or function of the caller.
    pub caller: bool,
    /// `%(thread)d`.
    pub thread: bool,
    /// `%(threadName)s`.
    pub thread_name: bool,
    /// `%(processName)s`.
    pub process_name: bool,
    /// `%(taskName)s`.
    pub task_name: bool,
    /// Bound and extra fields, and which of them.
    pub fields: Option<&'static ShownFields>,
}

impl Needs {
    /// What either needs.
    pub fn and(self, py: Python<'_>, other: Self) -> Self {
        Self {
            caller: self.caller || other.caller,
            thread: self.thread || other.thread,
            thread_name: self.thread_name || other.thread_name,
            process_name: self.process_name || other.process_name,
            task_name: self.task_name || other.task_name,
            fields: both(py, self.fields, other.fields),
        }
    }

    /// Whether any value beside the caller is needed.
    pub fn context(&self) -> bool {
        self.of_thread() || self.fields.is_some()
    }

    /// Whether nothing is needed but the fields that a call or `bind` gives, whichever they are.
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

/// What becomes of a value, by its kind.
pub type Accepts = [Acceptance; KINDS];

/// A field that a format names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    name: String,
    /// Whether Python raises where a record lacks it.
    required: bool,
    accepts: Accepts,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Definition {
    /// Whether a format shows every field.
    all: bool,
    /// Whether one of these shows what is in a list, a tuple or a dict: only Python takes those apart.
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

/// Each set of fields once, for ever: routes point to them.
///
/// Bounded by the core's tables: a format or a route that finds no place there has no use for one.
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

/// What a format shows of the fields; `None` for nothing.
pub fn shown_by(py: Python<'_>, spec: &FormatSpec, format: &Format) -> Option<&'static ShownFields> {
    let all = format.needs().contains(Need::AllFields);
    // A JSON format leaves out what a record lacks; a text format raises.
    let required = matches!(spec.layout, Layout::Text { .. });
    let named = |name: &String| Named { name: name.clone(), required, accepts: accepts(format, name) };
    let named: Vec<Named> = format.needs().fields().iter().map(named).collect();
    let containers = format.needs().contains(Need::Containers);
    (all || !named.is_empty()).then(|| known(py, Definition { all, containers, named }))
}

fn accepts(format: &Format, name: &str) -> Accepts {
    let mut accepts = [Acceptance::Mismatch; KINDS];
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

/// What both show.
pub fn both(
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

const fn stricter(one: Acceptance, other: Acceptance) -> Acceptance {
    use Acceptance::{Deferred, Mismatch, RenderInCaller};
    match (one, other) {
        (Mismatch, _) | (_, Mismatch) => Mismatch,
        (RenderInCaller, _) | (_, RenderInCaller) => RenderInCaller,
        (Deferred, Deferred) => Deferred,
    }
}

impl ShownFields {
    /// Whether no field is shown by its name.
    #[inline(always)]
    pub fn names_none(&self) -> bool {
        self.definition.named.is_empty()
    }

    /// Whether a format shows every field.
    pub fn all(&self) -> bool {
        self.definition.all
    }

    /// Whether a format shows what is in a list, a tuple or a dict: only Python takes those apart.
    pub fn containers(&self) -> bool {
        self.definition.containers
    }

    /// The fields that are shown by their names: the name, whether Python raises where a record lacks it, and what
    /// becomes of a value, by its kind.
    pub fn named(&self) -> impl Iterator<Item = (&Owned, bool, &Accepts)> {
        self.names.iter().zip(&self.definition.named).map(|(name, named)| (name, named.required, &named.accepts))
    }
}
