//! Whether the class of a record is `logging.LogRecord`, or a subclass that leaves its attributes and message alone.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::calls::keywords;
use crate::interpreter::object::{self, Object};
use crate::plans::callbacks::record_class;
use crate::plans::class_version::ClassVersion;

/// Names that a subclass must not define. Nor may it define the name of an attribute of `LogRecord`.
const DECISIVE: [&str; 8] = [
    "getMessage",
    "__getattribute__",
    "__getattr__",
    "__setattr__",
    "__delattr__",
    "__dict__",
    "__slots__",
    "__class__",
];

/// Maximum number of subclasses whose answers are kept. Further ones replace all others.
///
/// Chosen: programs have one or two. A program that keeps making classes must not fill the memory.
const MAX_CLASSES: usize = 16;

/// The subclasses that were inspected, with the answer.
static INSPECTED: Mutex<Vec<(ClassVersion, bool)>> = Mutex::new(Vec::new());

/// True if the class changes neither how the attributes of a record are stored and read nor `getMessage`. Runs no user
/// Python code.
#[inline]
pub fn is_plain(record: Object<'_, '_>) -> bool {
    record_class().is_some_and(|class| object::class_of(record).cast() == class.as_ptr() || is_plain_subclass(record))
}

#[inline(never)]
fn is_plain_subclass(record: Object<'_, '_>) -> bool {
    let class = record.get_type();
    let address = class.as_ptr() as usize;
    {
        let inspected = INSPECTED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = inspected.iter().find(|(known, _)| known.address() == address && known.holds()) {
            return *answer;
        }
    }
    // The version is read first: a later change makes the answer stale, not wrong.
    let version = ClassVersion::assigned(&class);
    let answer = changes_nothing(&class).unwrap_or(false);
    let gone = {
        let mut inspected = INSPECTED.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = if inspected.len() >= MAX_CLASSES { std::mem::take(&mut *inspected) } else { Vec::new() };
        inspected.retain(|(known, _)| known.address() != address);
        inspected.push((version, answer));
        gone
    };
    drop(gone);
    answer
}

/// True if the class is a subclass of `LogRecord`, and no class between the two defines a decisive name.
fn changes_nothing(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let Some(base) = record_class() else { return Ok(false) };
    for owner in class.mro() {
        if owner.as_ptr() == base.as_ptr() {
            return Ok(true);
        }
        for name in owner.getattr("__dict__")?.call_method0("copy")?.try_iter()? {
            let name = name?;
            let Ok(name) = name.cast_exact::<PyString>() else { return Ok(false) };
            let is_decisive = DECISIVE.contains(&name.to_str()?);
            if is_decisive || keywords::is_record_name(name.as_any().as_borrowed()).unwrap_or(true) {
                return Ok(false);
            }
        }
    }
    Ok(false)
}
