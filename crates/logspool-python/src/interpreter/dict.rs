//! Exact dicts that nobody changes while they are looked at.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::Failure;
use crate::interpreter::object::{Object, Owned};

/// The keys and values of an exact dict that nobody changes meanwhile.
pub struct DictWalk<'a, 'py> {
    fields: Object<'a, 'py>,
    position: ffi::Py_ssize_t,
}

impl<'a, 'py> DictWalk<'a, 'py> {
    /// From the first key on. Another object than a dict has none.
    pub fn of(fields: Object<'a, 'py>) -> Self {
        Self { fields, position: 0 }
    }

    /// The next key and value.
    pub fn next(&mut self) -> Option<(Object<'a, 'py>, Object<'a, 'py>)> {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live object whose type CPython checks; a key and a value that are given are live and kept by it.
        unsafe {
            if ffi::PyDict_Next(self.fields.as_ptr(), &mut self.position, &mut key, &mut value) == 0 {
                return None;
            }
            Some((Borrowed::from_ptr(self.fields.py(), key), Borrowed::from_ptr(self.fields.py(), value)))
        }
    }
}

/// A copy of a dict, which nobody else changes.
///
/// # Errors
///
/// Memory is short.
pub fn copy(fields: Object<'_, '_>) -> Result<Owned, Failure> {
    // SAFETY: a live object of an attached thread, whose type CPython checks; a new reference or null.
    unsafe { Owned::steal(ffi::PyDict_Copy(fields.as_ptr())) }.ok_or_else(|| Failure::of_error(fields.py()))
}
