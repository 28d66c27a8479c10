//! Reads exact dicts that do not change while they are read.

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::Failure;
use crate::interpreter::object::{Object, Owned};

/// An iterator over an exact dict. The dict must not change during the iteration.
pub struct DictWalk<'a, 'py> {
    fields: Object<'a, 'py>,
    position: ffi::Py_ssize_t,
}

impl<'a, 'py> DictWalk<'a, 'py> {
    /// Starts at the first key. If the object is not a dict, the iterator yields nothing.
    #[inline]
    pub fn of(fields: Object<'a, 'py>) -> Self {
        Self { fields, position: 0 }
    }

    /// Returns the next key and value.
    #[inline]
    pub fn next(&mut self) -> Option<(Object<'a, 'py>, Object<'a, 'py>)> {
        let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live object whose type CPython checks; the dict keeps the key and value that are returned alive.
        unsafe {
            if ffi::PyDict_Next(self.fields.as_ptr(), &mut self.position, &mut key, &mut value) == 0 {
                return None;
            }
            std::hint::assert_unchecked(!key.is_null() && !value.is_null());
            Some((Borrowed::from_ptr(self.fields.py(), key), Borrowed::from_ptr(self.fields.py(), value)))
        }
    }
}

/// True if a dict has no keys.
#[inline]
pub fn is_empty(fields: Object<'_, '_>) -> bool {
    // SAFETY: a live object of an attached thread, whose type CPython checks.
    unsafe { ffi::PyDict_Size(fields.as_ptr()) == 0 }
}

/// Copies a dict, so that other code cannot change it.
///
/// # Errors
///
/// There is not enough memory.
pub fn copy(fields: Object<'_, '_>) -> Result<Owned, Failure> {
    // SAFETY: a live object, and the thread is attached; CPython checks the type. A new reference or null.
    unsafe { Owned::steal(ffi::PyDict_Copy(fields.as_ptr())) }.ok_or_else(|| Failure::of_error(fields.py()))
}
