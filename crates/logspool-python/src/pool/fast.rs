//! Methods without PyO3's argument parsing, for calls whose cost matters.

use std::ffi::CStr;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interpreter::object::Owned;

/// The type of a `METH_FASTCALL | METH_KEYWORDS` function, whose first argument is `self`.
pub type Function =
    unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, ffi::Py_ssize_t, *mut PyObject) -> *mut PyObject;

/// Converts the result of a method for CPython: a new reference, or null with the error set.
#[inline]
pub fn into_pointer(py: Python<'_>, result: PyResult<Owned>) -> *mut PyObject {
    match result {
        Ok(object) => object.into_ptr(),
        Err(error) => raise(py, error),
    }
}

#[cold]
#[inline(never)]
fn raise(py: Python<'_>, error: PyErr) -> *mut PyObject {
    error.restore(py);
    std::ptr::null_mut()
}

/// The same as [`into_pointer`], for a method without a result.
#[inline]
pub fn none_into_pointer(py: Python<'_>, result: PyResult<()>) -> *mut PyObject {
    into_pointer(py, result.map(|()| Owned::none(py)))
}

/// Adds a method to a class. `doc` begins with the signature, in the form `name($self, ...)\n--\n\n`.
///
/// # Errors
///
/// The type cannot be changed.
pub fn add(class: &Bound<'_, PyType>, name: &'static CStr, function: Function, doc: &'static CStr) -> PyResult<()> {
    define(class, name, function, doc.as_ptr())
}

/// Replaces a method by `function`. Returns the replaced method, which `function` calls in the cases that it does not
/// handle.
///
/// # Errors
///
/// The type has no such method or cannot be changed.
pub fn replace(class: &Bound<'_, PyType>, name: &'static CStr, function: Function) -> PyResult<Owned> {
    let stock = class.getattr(name)?;
    define(class, name, function, documentation(&stock))?;
    Ok(Owned::of(&stock))
}

/// Defines a method. CPython requires that `doc` is never freed.
fn define(
    class: &Bound<'_, PyType>,
    name: &'static CStr,
    function: Function,
    doc: *const std::ffi::c_char,
) -> PyResult<()> {
    // SAFETY: the definition is leaked, its strings are never freed, and `class` shows that the thread is attached.
    let made = unsafe {
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: doc,
        }));
        Bound::from_owned_ptr_or_err(class.py(), ffi::PyDescr_NewMethod(class.as_type_ptr(), definition))?
    };
    class.setattr(name, made)
}

/// The documentation of a method with its signature, as a string that is never freed.
fn documentation(method: &Bound<'_, PyAny>) -> *const std::ffi::c_char {
    let text = |name: &str| method.getattr(name).and_then(|each| each.extract::<String>()).unwrap_or_default();
    let (name, signature, doc) = (text("__name__"), text("__text_signature__"), text("__doc__"));
    // CPython parses the signature from a docstring of this form.
    let whole = if signature.is_empty() { doc } else { format!("{name}{signature}\n--\n\n{doc}") };
    std::ffi::CString::new(whole).map_or(std::ptr::null(), |text| text.into_raw().cast_const())
}
