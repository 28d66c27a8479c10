//! Fields of `extra` and of `logspool.bind`, added to a record.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). [`ShownFields`] lists the fields that the formats of a route show.
//! Stock logging handles two cases: a value that the formats would not show as Python does, and a record that lacks a
//! field named by a text format.

use logspool_record::format::{ArgumentKind, RenderedBy};
use logspool_record::tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::calls::message::{self, is_ascii};
use crate::calls::pieces::{Pieces, kind_of, small_int};
use crate::calls::template::Kind;
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::needs::{Accepts, ShownFields};

/// Adds the fields that the formats show: first those of `extra`, in its order, then those of `bound` that are not in
/// `extra`. `extra` and `bound` are exact dicts with `str` keys, and `bound` never changes. May run user Python code.
///
/// # Errors
///
/// [`Failure::Stock`] for a value that only stock logging can show, and if the text of a value cannot be made.
pub fn add<'a, 'py: 'a>(
    py: Python<'py>,
    pieces: &mut Pieces<'a>,
    shown: &'static ShownFields,
    extra: Option<&Owned>,
    bound: Option<Owned>,
) -> Result<(), Failure> {
    if extra.is_none() && bound.is_none() && shown.names_none() {
        return Ok(());
    }
    // The code below may run user Python code that changes the program's own dict, so a copy is read.
    let extra = match extra {
        Some(extra) if dict::is_empty(extra.bind(py)) => None,
        Some(extra) if OWN_COPY => Some(extra.clone_ref(py)),
        Some(extra) => Some(dict::copy(extra.bind(py))?),
        None => None,
    };
    // SAFETY: keys and values of these dicts are used only in `pieces`. No code changes the dicts: the first is a copy,
    // the second was made by `bind` and never changes.
    let mut lend = |fields: Option<Owned>| fields.map(|fields| unsafe { pieces.keep_and_lend(py, fields) });
    let sources = [lend(extra), lend(bound)];
    for (name, required, accepts) in shown.named() {
        let name = name.bind(py);
        let value = sources.into_iter().flatten().find_map(|fields| item(fields, name));
        match value {
            Some(value) if !shown.all() => add_one(pieces, name, value, Some(accepts))?,
            None if required => return Err(Failure::Stock),
            _ => {}
        }
    }
    if shown.all() {
        add_all(pieces, shown, sources)?;
    }
    Ok(())
}

/// True if `extra` already holds a copy of the program's dict: without a GIL, the dict is copied before it is read.
const OWN_COPY: bool = cfg!(Py_GIL_DISABLED);

/// The value of a key in an exact dict with `str` keys. The dict must not change while the result is in use.
fn item<'a, 'py>(fields: Object<'a, 'py>, name: Object<'_, '_>) -> Option<Object<'a, 'py>> {
    // SAFETY: live objects, and the thread is attached; comparing `str` runs no user Python code, and nothing raises.
    // The dict keeps the value alive: it is our own copy, or was made by `bind` and never changes.
    unsafe { Borrowed::from_ptr_or_opt(fields.py(), ffi::PyDict_GetItemWithError(fields.as_ptr(), name.as_ptr())) }
}

/// Adds every field of `extra` and of `bound`, each name once.
fn add_all<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    shown: &ShownFields,
    sources: [Option<Object<'a, 'py>>; 2],
) -> Result<(), Failure> {
    let [extra, bound] = sources;
    let is_bound = |fields: Object<'_, '_>| bound.is_some_and(|bound| bound.is(&*fields));
    for fields in sources.into_iter().flatten() {
        let mut walk = DictWalk::of(fields);
        while let Some((key, value)) = walk.next() {
            if is_bound(fields) && extra.is_some_and(|extra| item(extra, key).is_some()) {
                continue;
            }
            if shown.containers() && is_container(value) {
                return Err(Failure::Stock);
            }
            add_one(pieces, key, value, accepts(shown, key))?;
        }
    }
    Ok(())
}

/// Returns the kinds of values that the formats show unchanged for this field; `None` if no format names the field.
fn accepts<'a>(shown: &'a ShownFields, key: Object<'_, '_>) -> Option<&'a Accepts> {
    shown.named().find(|(name, ..)| object::has_text(key, name)).map(|(_, _, accepts)| accepts)
}

/// Adds one field. If `accepts` is `None`, every format shows the field as `str()` does.
fn add_one<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    key: Object<'a, 'py>,
    value: Object<'a, 'py>,
    accepts: Option<&Accepts>,
) -> Result<(), Failure> {
    let py = key.py();
    let kind = argument_kind(value)?;
    let acceptance = match accepts {
        Some(accepts) => accepts[kind as usize],
        None if kind == ArgumentKind::Other => RenderedBy::RenderInCaller,
        None => RenderedBy::Deferred,
    };
    let key = object::utf8(key).ok_or(Failure::Stock)?;
    if acceptance == RenderedBy::Mismatch || !pieces.bytes(tag::FIELD, key) {
        return Err(Failure::Stock);
    }
    let as_text = match (acceptance, kind) {
        (RenderedBy::RenderInCaller, _) => Some(tag::STR),
        (_, ArgumentKind::BigInt) => Some(tag::BIG_INT),
        _ => None,
    };
    if let Some(tag) = as_text {
        return message::add_owned(py, pieces, tag, leaving::str(value));
    }
    if pieces.value(value) { Ok(()) } else { Err(Failure::Stock) }
}

fn is_container(value: Object<'_, '_>) -> bool {
    value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

fn argument_kind(value: Object<'_, '_>) -> Result<ArgumentKind, Failure> {
    Ok(match kind_of(value) {
        Kind::AsciiStr => {
            let bytes = object::utf8(value).ok_or(Failure::Stock)?;
            if is_ascii(value, bytes) { ArgumentKind::AsciiStr } else { ArgumentKind::Str }
        }
        Kind::Str => ArgumentKind::Str,
        Kind::Int if small_int(value).is_none() => ArgumentKind::BigInt,
        Kind::Int => ArgumentKind::Int,
        Kind::Float => ArgumentKind::Float,
        Kind::Bool => ArgumentKind::Bool,
        Kind::None => ArgumentKind::None,
        Kind::Bytes => ArgumentKind::Bytes,
        Kind::Other => ArgumentKind::Other,
    })
}
