//! Fields of `extra` and of `logspool.bind`: which of them the formats of a route show, and how values travel.
//!
//! Stop on the line: *capture*. Each format says which kinds of values it shows as Python does; what it does not, and
//! a record without a field that a text format names, is stock logging's to write or to report.

use std::sync::{Mutex, PoisonError};

use logspool_record::format::{Acceptance, ArgumentKind, Format, FormatSpec, Layout, Need};
use logspool_record::tag;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::keywords::copy;
use crate::leaving;
use crate::message::{self, Failure};
use crate::object::{self, Owned};
use crate::pieces::Pieces;
use crate::template::Kind;
use crate::values;

/// Number of [`ArgumentKind`]s.
const KINDS: usize = ArgumentKind::Other as usize + 1;

/// What becomes of a value, by its kind.
type Accepts = [Acceptance; KINDS];

/// A field that a format names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    name: String,
    /// Whether Python raises where a record lacks it.
    required: bool,
    accepts: Accepts,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Definition {
    /// Whether a format shows every field.
    all: bool,
    /// Whether one of these shows what is in a list, a tuple or a dict: only Python takes those apart.
    containers: bool,
    named: Vec<Named>,
}

/// The fields that the formats of a route show.
pub struct Shown {
    definition: Definition,
    /// The names as `str`, in the order of `definition.named`.
    names: Vec<Owned>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.definition.fmt(formatter)
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition
    }
}

impl Eq for Shown {}

/// Each set of fields once, for ever: routes point to them.
///
/// Bounded by the core's tables: a format or a route that finds no place there has no use for one.
static KNOWN: Mutex<Vec<&'static Shown>> = Mutex::new(Vec::new());

fn known(definition: Definition) -> &'static Shown {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.iter().find(|found| found.definition == definition) {
        return found;
    }
    // SAFETY: attached: formats are looked at inside calls of the interpreter.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: live objects.
    let object = |named: &Named| unsafe { Owned::borrow(PyString::intern(py, &named.name).as_ptr()) };
    let names = definition.named.iter().map(object).collect();
    let made: &'static Shown = Box::leak(Box::new(Shown { definition, names }));
    known.push(made);
    made
}

/// What a format shows of the fields; `None` for nothing.
pub fn shown_by(spec: &FormatSpec, format: &Format) -> Option<&'static Shown> {
    let all = format.needs().contains(Need::AllFields);
    // A JSON format leaves out what a record lacks; a text format raises.
    let required = matches!(spec.layout, Layout::Text { .. });
    let named = |name: &String| Named { name: name.clone(), required, accepts: accepts(format, name) };
    let named: Vec<Named> = format.needs().fields().iter().map(named).collect();
    let containers = format.needs().contains(Need::Containers);
    (all || !named.is_empty()).then(|| known(Definition { all, containers, named }))
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
pub fn both(one: Option<&'static Shown>, other: Option<&'static Shown>) -> Option<&'static Shown> {
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
    Some(known(merged))
}

const fn stricter(one: Acceptance, other: Acceptance) -> Acceptance {
    use Acceptance::{Deferred, Mismatch, RenderInCaller};
    match (one, other) {
        (Mismatch, _) | (_, Mismatch) => Mismatch,
        (RenderInCaller, _) | (_, RenderInCaller) => RenderInCaller,
        (Deferred, Deferred) => Deferred,
    }
}

/// Adds the fields that are shown: those of `extra` in its order, then the bound ones that it does not have.
///
/// # Safety
///
/// Both are live exact dicts with `str` keys, `bound` never changes; attached. Runs foreign code.
pub unsafe fn add(
    pieces: &mut Pieces,
    shown: &Shown,
    extra: Option<&Owned>,
    bound: Option<Owned>,
) -> Result<(), Failure> {
    if extra.is_none() && bound.is_none() && shown.names_none() {
        return Ok(());
    }
    // SAFETY: passed on. Values are read from dicts that `pieces` keep and that nobody else can change.
    unsafe {
        // What runs below may change the program's own dict.
        let extra = extra.filter(|extra| ffi::PyDict_Size(extra.as_ptr()) > 0);
        let extra = extra.map(|extra| if OWN_COPY { Ok(Owned::borrow(extra.as_ptr())) } else { copy(extra.as_ptr()) });
        let extra = extra.transpose()?;
        let sources = [extra.as_ref().map(Owned::as_ptr), bound.as_ref().map(Owned::as_ptr)];
        for (index, named) in shown.definition.named.iter().enumerate() {
            let name = shown.names[index].as_ptr();
            let value = sources.into_iter().flatten().find_map(|fields| item(fields, name));
            match value {
                Some(value) if !shown.definition.all => add_one(pieces, name, value, Some(&named.accepts))?,
                None if named.required => return Err(Failure::Stock),
                _ => {}
            }
        }
        if shown.definition.all {
            shown.add_all(pieces, sources)?;
        }
        extra.into_iter().chain(bound).for_each(|fields| pieces.keep(fields));
    }
    Ok(())
}

/// Whether the dict of `extra` is a copy already: without a GIL it is made before the dict is looked at.
const OWN_COPY: bool = cfg!(Py_GIL_DISABLED);

/// The value of a key, borrowed from the dict.
unsafe fn item(fields: *mut PyObject, name: *mut PyObject) -> Option<*mut PyObject> {
    // SAFETY: an exact dict with `str` keys: no foreign code runs, and nothing raises.
    let found = unsafe { ffi::PyDict_GetItemWithError(fields, name) };
    (!found.is_null()).then_some(found)
}

impl Shown {
    /// Whether no field is shown by its name.
    #[inline(always)]
    pub fn names_none(&self) -> bool {
        self.definition.named.is_empty()
    }

    /// Adds every field, each once.
    unsafe fn add_all(&self, pieces: &mut Pieces, sources: [Option<*mut PyObject>; 2]) -> Result<(), Failure> {
        // SAFETY: dicts that nobody changes while they are walked.
        unsafe {
            let [extra, bound] = sources;
            for fields in sources.into_iter().flatten() {
                let mut position: ffi::Py_ssize_t = 0;
                let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
                while ffi::PyDict_Next(fields, &mut position, &mut key, &mut value) != 0 {
                    let hidden = Some(fields) == bound && extra.is_some_and(|extra| item(extra, key).is_some());
                    if !hidden && self.definition.containers && is_container(value) {
                        return Err(Failure::Stock);
                    }
                    if !hidden {
                        add_one(pieces, key, value, self.accepts(key))?;
                    }
                }
            }
        }
        Ok(())
    }

    unsafe fn accepts(&self, key: *mut PyObject) -> Option<&Accepts> {
        // SAFETY: two live exact `str`; comparing them runs no foreign code.
        let same = |name: &Owned| key == name.as_ptr() || unsafe { ffi::PyUnicode_Compare(key, name.as_ptr()) } == 0;
        self.names.iter().position(same).map(|index| &self.definition.named[index].accepts)
    }
}

/// Adds one field. Without `accepts` every format shows it as `str()` does.
unsafe fn add_one(
    pieces: &mut Pieces,
    key: *mut PyObject,
    value: *mut PyObject,
    accepts: Option<&Accepts>,
) -> Result<(), Failure> {
    // SAFETY: live objects in a dict that outlives the pieces; exact types are checked before fields are read.
    unsafe {
        let key = object::utf8(key).ok_or(Failure::Stock)?;
        let kind = kind_of(value)?;
        let other = kind == ArgumentKind::Other;
        let acceptance = match accepts {
            Some(accepts) => accepts[kind as usize],
            None if other => Acceptance::RenderInCaller,
            None => Acceptance::Deferred,
        };
        if acceptance == Acceptance::Mismatch || !pieces.field(key) {
            return Err(Failure::Stock);
        }
        let as_text = match (acceptance, kind) {
            (Acceptance::RenderInCaller, _) => Some(tag::STR),
            (_, ArgumentKind::BigInt) => Some(tag::BIG_INT),
            _ => None,
        };
        if let Some(tag) = as_text {
            return message::add_owned(pieces, tag, Owned::steal(leaving::str(value)));
        }
        if values::add(pieces, value) { Ok(()) } else { Err(Failure::Stock) }
    }
}

unsafe fn is_container(value: *mut PyObject) -> bool {
    // SAFETY: a live object; only its type's flags are read.
    unsafe { ffi::PyDict_Check(value) != 0 || ffi::PyList_Check(value) != 0 || ffi::PyTuple_Check(value) != 0 }
}

unsafe fn kind_of(value: *mut PyObject) -> Result<ArgumentKind, Failure> {
    // SAFETY: a live object.
    unsafe {
        Ok(match values::kind_of(value) {
            Kind::AsciiStr => {
                let length = object::utf8(value).ok_or(Failure::Stock)?.len();
                let ascii = length == ffi::PyUnicode_GET_LENGTH(value) as usize;
                if ascii { ArgumentKind::AsciiStr } else { ArgumentKind::Str }
            }
            Kind::Str => ArgumentKind::Str,
            Kind::Int if values::small_int(value).is_none() => ArgumentKind::BigInt,
            Kind::Int => ArgumentKind::Int,
            Kind::Float => ArgumentKind::Float,
            Kind::Bool => ArgumentKind::Bool,
            Kind::None => ArgumentKind::None,
            Kind::Bytes => ArgumentKind::Bytes,
            Kind::Other => ArgumentKind::Other,
        })
    }
}
