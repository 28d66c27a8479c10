//! Fields of `extra` and of `logspool.bind`, added to a record.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). [`ShownFields`] lists the fields that the formats of a route show.
//! Stock logging handles two cases: a value that the formats would not show as Python does, and a record that lacks a
//! field named by a text format.

use logspool_record::format::RenderedBy;
use logspool_record::tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::calls::field_values;
use crate::calls::keywords;
use crate::calls::nested_fields::NestedFields;
use crate::calls::pieces::Pieces;
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::field_texts::FieldTexts;
use crate::plans::given_fields::{GivenField, GivenFields, ReadValues};
use crate::plans::needs::{FieldNesting, RenderingByKind, ShownFields};

/// Adds the fields that the formats show: first those of `extra`, in its order, then those of `bound` that are not in
/// `extra`, last those that are `given` by known filters and factories. A format may show the arguments of `call` as
/// fields as well. `extra` and `bound` are exact dicts with `str` keys, and `bound` never changes. May run user Python
/// code.
///
/// # Errors
///
/// [`Failure::Stock`] for a value that only stock logging can show, and if the text of a value cannot be made.
pub fn add<'a, 'py: 'a>(
    py: Python<'py>,
    pieces: &mut Pieces<'a>,
    shown: &'static ShownFields,
    given: Option<&'static GivenFields>,
    extra: Option<&Owned>,
    bound: Option<Owned>,
    call: Call<'a, 'py>,
) -> Result<(), Failure> {
    if extra.is_none() && bound.is_none() && given.is_none() && shown.names_none() {
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
    let arguments = call.positional().get(1..).unwrap_or_default();
    check_arguments(shown, arguments)?;
    let given = given_values(py, pieces, given, sources)?;
    let given_value =
        |name| given.iter().find(|(field, _)| object::has_text(name, field.name())).map(|(_, value)| *value);
    for (name, required, accepts) in shown.named() {
        let value = argument(shown, arguments, name);
        let name = name.bind(py);
        let value = value.or_else(|| sources.into_iter().flatten().find_map(|fields| item(fields, name)));
        let value = value.or_else(|| given_value(name));
        match value {
            Some(value) if !shown.all() => add_one(pieces, shown, name, value, accepts)?,
            None if required => return Err(Failure::Stock),
            _ => {}
        }
    }
    if shown.all() {
        let mut unnamed = UnnamedFields::of(shown);
        add_all(pieces, &mut unnamed, sources)?;
        for (field, value) in &given {
            unnamed.add(pieces, field.name().bind(py), *value)?;
        }
    }
    Ok(())
}

/// Adds the items of a message that is a dict. May run user Python code.
///
/// # Errors
///
/// [`Failure::Stock`] for a subclass of `dict`, for a key that is not an exact `str`, and as for [`add`].
#[cold]
#[inline(never)]
pub fn add_items<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    shown: Option<&'static ShownFields>,
    message: Object<'_, 'py>,
) -> Result<(), Failure> {
    let shown = shown.ok_or(Failure::Stock)?;
    if !message.is_exact_instance_of::<PyDict>() {
        return Err(Failure::Stock);
    }
    // The code below may run user Python code that changes the dict, so a copy is read.
    // SAFETY: keys and values of the copy are used only in `pieces`.
    let items = unsafe { pieces.keep_and_lend(message.py(), dict::copy(message)?) };
    let mut walk = DictWalk::of(items);
    while let Some((key, value)) = walk.next() {
        if !object::is_exact_str(key) {
            return Err(Failure::Stock);
        }
        add_tagged(pieces, tag::ITEM, shown, key, value, shown.unnamed())?;
    }
    Ok(())
}

/// Adds the fields of one record that its formats show without naming them.
struct UnnamedFields {
    shown: &'static ShownFields,
    /// Set if the formats make nested objects of the fields.
    nested: Option<NestedFields>,
}

impl UnnamedFields {
    fn of(shown: &'static ShownFields) -> Self {
        Self { shown, nested: NestedFields::of(shown) }
    }

    fn add<'a, 'py: 'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        key: Object<'a, 'py>,
        value: Object<'a, 'py>,
    ) -> Result<(), Failure> {
        let shown = self.shown;
        if let Some(nested) = &mut self.nested {
            return nested.add(pieces, key, value);
        }
        if shown.hides(key) {
            return Ok(());
        }
        if *shown.nesting() == FieldNesting::Mixed || shown.containers() && is_container(value) {
            return Err(Failure::Stock);
        }
        add_one(pieces, shown, key, value, accepts(shown, key))
    }
}

/// The fields that known filters set, with their values.
///
/// # Errors
///
/// [`Failure::Stock`] if the call gives a field of the same name: the filter would replace its value.
fn given_values<'a, 'py: 'a>(
    py: Python<'py>,
    pieces: &mut Pieces<'a>,
    given: Option<&'static GivenFields>,
    sources: [Option<Object<'a, 'py>>; 2],
) -> Result<Vec<(&'static GivenField, Object<'a, 'py>)>, Failure> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let (mut values, mut read) = (Vec::new(), ReadValues::default());
    for field in given.iter() {
        let name = field.name().bind(py);
        if sources.into_iter().flatten().any(|fields| item(fields, name).is_some()) {
            return Err(Failure::Stock);
        }
        let value = field.value(py, &mut read)?;
        // SAFETY: the value is used only in `pieces`.
        values.push((field, unsafe { pieces.keep_and_lend(py, value) }));
    }
    Ok(values)
}

/// Checks that the formats can show the arguments of a call as fields.
fn check_arguments(shown: &ShownFields, arguments: &[Object<'_, '_>]) -> Result<(), Failure> {
    // A format that shows every field must not show the arguments as fields.
    let fits = shown.arguments().iter().all(|names| names.len() == arguments.len() && !shown.all());
    if fits { Ok(()) } else { Err(Failure::Stock) }
}

/// The argument that a format shows as the field `name`.
fn argument<'a, 'py>(shown: &ShownFields, arguments: &[Object<'a, 'py>], name: &Owned) -> Option<Object<'a, 'py>> {
    shown.arguments().iter().find_map(|names| {
        let place = names.iter().position(|known| known.as_ptr() == name.as_ptr())?;
        arguments.get(place).copied()
    })
}

/// Adds the fields that the formats show of a finished record, whose `__dict__` is `attributes`. May run user Python
/// code.
///
/// # Errors
///
/// [`Failure::Stock`] as for [`add`], and for a record with a key that is not an exact `str`.
pub fn add_of_record<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    shown: &'static ShownFields,
    attributes: Object<'_, 'py>,
) -> Result<(), Failure> {
    let py = attributes.py();
    if !shown.all() {
        for (name, required, accepts) in shown.named() {
            match dict::get(attributes, name) {
                Some(value) => {
                    // SAFETY: the values are used only in `pieces`.
                    let value = unsafe { pieces.keep_and_lend(py, value) };
                    add_one(pieces, shown, name.bind(py), value, accepts)?;
                }
                None if required => return Err(Failure::Stock),
                None => {}
            }
        }
        return Ok(());
    }
    // The code below may run user Python code that changes the record, so a copy is read.
    // SAFETY: keys and values of the copy are used only in `pieces`.
    let attributes = unsafe { pieces.keep_and_lend(py, dict::copy(attributes)?) };
    if shown.named().any(|(name, required, _)| required && item(attributes, name.bind(py)).is_none()) {
        return Err(Failure::Stock);
    }
    let mut unnamed = UnnamedFields::of(shown);
    let mut walk = DictWalk::of(attributes);
    while let Some((key, value)) = walk.next() {
        if !object::is_exact_str(key) {
            return Err(Failure::Stock);
        }
        if keywords::is_record_name(key)? {
            // Before Python 3.12 a record has `taskName` only if the program sets it; known formatters show it then.
            if !cfg!(Py_3_12) && shown.texts() != FieldTexts::Str && object::has_text(key, &names().task_name) {
                return Err(Failure::Stock);
            }
            continue;
        }
        unnamed.add(pieces, key, value)?;
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
    unnamed: &mut UnnamedFields,
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
            unnamed.add(pieces, key, value)?;
        }
    }
    Ok(())
}

/// Returns which side renders the values of this field, for each kind of value.
fn accepts<'a>(shown: &'a ShownFields, key: Object<'_, '_>) -> &'a RenderingByKind {
    let named = shown.named().find(|(name, ..)| object::has_text(key, name));
    named.map_or_else(|| shown.unnamed(), |(_, _, accepts)| accepts)
}

/// Adds one field.
fn add_one<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    shown: &ShownFields,
    key: Object<'a, 'py>,
    value: Object<'a, 'py>,
    accepts: &RenderingByKind,
) -> Result<(), Failure> {
    add_tagged(pieces, tag::FIELD, shown, key, value, accepts)
}

fn add_tagged<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    tag: u8,
    shown: &ShownFields,
    key: Object<'a, 'py>,
    value: Object<'a, 'py>,
    accepts: &RenderingByKind,
) -> Result<(), Failure> {
    let kind = field_values::kind(value)?;
    let acceptance = accepts[kind as usize];
    let key = object::utf8(key).ok_or(Failure::Stock)?;
    if acceptance == RenderedBy::Mismatch || !pieces.bytes(tag, key) {
        return Err(Failure::Stock);
    }
    field_values::add(pieces, shown, value, kind, acceptance)
}

fn is_container(value: Object<'_, '_>) -> bool {
    value.is_instance_of::<PyDict>() || value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}
