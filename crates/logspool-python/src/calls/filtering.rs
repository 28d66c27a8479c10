//! The filters of a logger or a handler, run as `logging.Filterer.filter` runs them.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Filters are Python code, so they run in the calling thread, on the
//! `LogRecord` of the call. An exception of a filter leaves the logging call, as in stock logging.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::interpreter::leaving;
use crate::interpreter::list::ListWalk;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::record_class;

/// What the filters say about a record.
pub enum FilterAnswer {
    /// The record goes on. Since Python 3.12 a filter may return another record, which then replaces the first.
    Pass(Owned),
    /// The record is dropped. The value is what `Filterer.filter` returns: False, or since Python 3.12 a record that is
    /// itself false.
    Drop(Owned),
    /// A filter raised. The exception is set.
    Raised,
}

/// Runs the filters in `filters`, an exact list, on a record. A filter may change the list.
pub fn run(filters: Object<'_, '_>, record: Object<'_, '_>) -> FilterAnswer {
    let py = record.py();
    let mut current = Owned::of(&record);
    let mut walk = ListWalk::of(filters);
    while let Some(filter) = walk.next() {
        let Some(answer) = ask(filter.bind(py), current.bind(py)) else { return FilterAnswer::Raised };
        match leaving::is_true(answer.bind(py)) {
            None => return FilterAnswer::Raised,
            Some(false) => return FilterAnswer::Drop(object::false_value(py)),
            Some(true) => {}
        }
        if cfg!(Py_3_12) {
            match replaces(answer.bind(py)) {
                None => return FilterAnswer::Raised,
                Some(true) => current = answer,
                Some(false) => {}
            }
        }
    }
    if passes_unfiltered(current.bind(py)) {
        return FilterAnswer::Pass(current);
    }
    // Since Python 3.12 the truth value of the record itself is asked last.
    match leaving::is_true(current.bind(py)) {
        None => FilterAnswer::Raised,
        Some(false) => FilterAnswer::Drop(current),
        Some(true) => FilterAnswer::Pass(current),
    }
}

/// True if a record passes without filters. A record of another class may have a truth value of its own.
#[inline]
pub fn passes_unfiltered(record: Object<'_, '_>) -> bool {
    !cfg!(Py_3_12) || record_class().is_some_and(|class| object::class_of(record).cast() == class.as_ptr())
}

/// True if the answer of a filter is a record, which replaces the filtered one.
fn replaces(answer: Object<'_, '_>) -> Option<bool> {
    if answer.is_exact_instance_of::<PyBool>() {
        return Some(false);
    }
    let Some(class) = record_class() else { return Some(false) };
    leaving::is_instance(answer, &Owned::of(class.bind(answer.py())))
}

/// Calls `filter.filter(record)`, or `filter(record)` if it has no such attribute. `None` with an exception set.
fn ask(filter: Object<'_, '_>, record: Object<'_, '_>) -> Option<Owned> {
    if is_plain_method(filter, &names().filter) {
        return leaving::method_of_one(filter, &names().filter, record);
    }
    match leaving::optional_attribute(filter, &names().filter)? {
        Some(method) => leaving::call_with(method.bind(record.py()), record),
        None => leaving::call_with(filter, record),
    }
}

/// True if the method of this name is a Python function of the object's class, or an attribute of the object itself.
fn is_plain_method(object: Object<'_, '_>, name: &Owned) -> bool {
    let found = object::of_class(object, name.bind(object.py()));
    // SAFETY: null, or an attribute of a live class; only its type is read.
    object::looks_up_plainly(object) && !found.is_null() && unsafe { ffi::PyFunction_Check(found) != 0 }
}
