//! Iterates over an exact list that may change during the iteration.

use pyo3::ffi;

use crate::interpreter::object::{Object, Owned};

/// An iterator over an exact list. As with Python's own iterator, items that are appended during the iteration are
/// visited too.
pub struct ListWalk<'a, 'py> {
    list: Object<'a, 'py>,
    next: ffi::Py_ssize_t,
}

impl<'a, 'py> ListWalk<'a, 'py> {
    /// Starts at the first item. If the object is not a list, the iterator yields nothing.
    #[inline]
    pub fn of(list: Object<'a, 'py>) -> Self {
        Self { list, next: 0 }
    }

    /// Starts at the item with this index.
    #[inline]
    pub fn from(list: Object<'a, 'py>, index: usize) -> Self {
        Self { list, next: index as ffi::Py_ssize_t }
    }

    /// Returns the next item.
    #[inline]
    pub fn next(&mut self) -> Option<Owned> {
        let index = self.next;
        self.next += 1;
        item(self.list, index)
    }
}

#[cfg(not(Py_GIL_DISABLED))]
#[inline]
fn item(list: Object<'_, '_>, index: ffi::Py_ssize_t) -> Option<Owned> {
    use pyo3::Borrowed;
    // SAFETY: a live object of an attached thread, whose type and size are checked. The borrowed reference becomes an
    // owned one before any Python code runs.
    unsafe {
        if ffi::PyList_Check(list.as_ptr()) == 0 || index >= ffi::PyList_GET_SIZE(list.as_ptr()) {
            return None;
        }
        let item = Borrowed::from_ptr_or_opt(list.py(), ffi::PyList_GET_ITEM(list.as_ptr(), index));
        item.map(|item| Owned::of(&item))
    }
}

#[cfg(Py_GIL_DISABLED)]
fn item(list: Object<'_, '_>, index: ffi::Py_ssize_t) -> Option<Owned> {
    // SAFETY: a live object of an attached thread, whose type CPython checks. A new reference, or null with an error
    // set at the end of the list.
    let item = unsafe { Owned::steal(ffi::PyList_GetItemRef(list.as_ptr(), index)) };
    if item.is_none() {
        crate::interpreter::object::clear_error(list.py());
    }
    item
}
