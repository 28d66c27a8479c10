//! Python functions that watch dicts and objects that plans depend on, and functions that make plans stale.

use std::path::PathBuf;

use logspool::pipeline;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::calls::context;
use crate::interpreter::native_code::WatchedFunction;
use crate::plans::class_version::ClassVersion;
use crate::plans::{environment, watched};

/// Watch the values of these names in a dict; with `None`, watch the whole dict.
#[pyfunction]
#[pyo3(signature = (dict, names))]
pub fn watch_dict(dict: &Bound<'_, PyDict>, names: Option<Vec<Bound<'_, PyAny>>>) {
    environment::watch(dict, names.as_deref());
}

/// Compare the C code of these builtin functions at each call, too. Later calls change nothing.
#[pyfunction]
pub fn watch_code(functions: Vec<Bound<'_, PyAny>>) {
    environment::watch_code(&functions);
}

/// Return whether an object is a builtin function with the C code of its own library.
#[pyfunction]
pub fn has_own_code(function: &Bound<'_, PyAny>) -> bool {
    WatchedFunction::of(function).is_some_and(|code| code.is_original())
}

/// Stop watching dicts and attributes.
#[pyfunction]
pub fn unwatch() {
    environment::forget_all();
    watched::forget_all();
}

/// Start to watch a part of a handler, before the part is inspected. Return how often the part has changed.
#[pyfunction]
pub fn watch_part(part: &Bound<'_, PyAny>) -> u64 {
    watched::WatchedPart::watch(part.as_ptr() as usize).seen()
}

/// Return a number that changes when a class, its bases or the descriptions of all classes change.
///
/// Read the number before the class is inspected. It is 0 if CPython has no number left.
#[pyfunction]
pub fn class_state(class: &Bound<'_, PyType>) -> u64 {
    let descriptions = environment::descriptions();
    match ClassVersion::assigned(class).tag() {
        0 => 0,
        tag => descriptions << 32 | u64::from(tag),
    }
}

/// Make every plan and description stale.
#[pyfunction]
pub fn bump() {
    environment::make_all_stale();
}

/// Make logging calls look for fields of `logspool.bind`. Called before the first fields are set.
#[pyfunction]
pub fn note_bound_fields() {
    context::note_bound_fields();
}

/// Drop texts that were made for another time zone. Called after `time.tzset()`.
#[pyfunction]
pub fn zone_changed() {
    logspool_record::format::zone_changed();
}

/// Record that a handler has opened this file with mode "w".
#[pyfunction]
pub fn opened_anew(path: PathBuf) {
    pipeline::note_truncated(path);
}
