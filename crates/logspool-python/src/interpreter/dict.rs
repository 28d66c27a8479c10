//! Reads exact dicts that do not change while they are read, and fills new ones.
//!
//! The atomics here are outside the crate's `queue` module: a position is a hint, and every use of it is checked.

use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering::Relaxed};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Object, Owned};

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

/// The value of a name in a dict whose keys are `str`.
#[inline]
pub fn get(dict: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    let py = dict.py();
    let mut found = std::ptr::null_mut();
    // SAFETY: live objects of an attached thread; CPython checks the type of the dict. Comparing `str` runs no user
    // Python code. The result is a new reference or null.
    let found = unsafe {
        if cfg!(Py_GIL_DISABLED) {
            ffi::compat::PyDict_GetItemRef(dict.as_ptr(), name.as_ptr(), &raw mut found);
            Owned::steal(found)
        } else {
            let found = ffi::PyDict_GetItemWithError(dict.as_ptr(), name.as_ptr());
            Borrowed::from_ptr_or_opt(py, found).map(|found| Owned::of(&found))
        }
    };
    if found.is_none() {
        object::clear_error(py);
    }
    found
}

/// Where a name is in dicts that are filled in the same order.
pub struct UsualPosition(AtomicIsize);

impl UsualPosition {
    /// The position is learned from the first dict that has the name.
    pub const fn new() -> Self {
        Self(AtomicIsize::new(-1))
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, dict: Object<'_, '_>, name: &Owned) -> Option<Owned> {
        let found = get(dict, name)?;
        if !cfg!(Py_GIL_DISABLED) && self.0.load(Relaxed) < 0 {
            let mut walk = DictWalk::of(dict);
            let mut position = walk.position;
            while let Some((key, _)) = walk.next() {
                if key.as_ptr() == name.as_ptr() {
                    self.0.store(position, Relaxed);
                    break;
                }
                position = walk.position;
            }
        }
        Some(found)
    }
}

/// The value of a name in a dict whose keys are `str`. Looking at the usual position costs a third of a lookup.
#[inline]
pub fn get_at(dict: Object<'_, '_>, name: &Owned, usual: &UsualPosition) -> Option<Owned> {
    // Without a GIL, another thread may change the dict meanwhile. A negative position yields nothing.
    if !cfg!(Py_GIL_DISABLED)
        && let Some((key, value)) = (DictWalk { fields: dict, position: usual.0.load(Relaxed) }).next()
        && key.as_ptr() == name.as_ptr()
    {
        return Some(Owned::of(&value));
    }
    usual.look_up(dict, name)
}

/// Sets the value of a name in a dict whose keys are `str`.
///
/// # Errors
///
/// There is not enough memory.
pub fn set(dict: Object<'_, '_>, name: &Owned, value: &Owned) -> Result<(), Failure> {
    // SAFETY: live objects of an attached thread; CPython checks the type of the dict.
    if unsafe { ffi::PyDict_SetItem(dict.as_ptr(), name.as_ptr(), value.as_ptr()) } < 0 {
        return Err(Failure::of_error(dict.py()));
    }
    Ok(())
}

/// Removes a name from a dict whose keys are `str`, if it is there.
pub fn remove(dict: Object<'_, '_>, name: &Owned) {
    // SAFETY: live objects of an attached thread; CPython checks the type of the dict.
    if unsafe { ffi::PyDict_DelItem(dict.as_ptr(), name.as_ptr()) } < 0 {
        object::clear_error(dict.py());
    }
}

/// The number of keys of a dict.
#[inline]
pub fn len(dict: Object<'_, '_>) -> usize {
    // SAFETY: a live object of an attached thread, whose type CPython checks.
    usize::try_from(unsafe { ffi::PyDict_Size(dict.as_ptr()) }).unwrap_or(0)
}

/// True if a dict whose keys are `str` has a name.
#[inline]
pub fn has(dict: Object<'_, '_>, name: &Owned) -> bool {
    // SAFETY: live objects of an attached thread; CPython checks the type. Comparing `str` runs no user Python code, so
    // the call cannot fail.
    unsafe { ffi::PyDict_Contains(dict.as_ptr(), name.as_ptr()) == 1 }
}

/// True if a dict has no keys.
#[inline]
pub fn is_empty(fields: Object<'_, '_>) -> bool {
    len(fields) == 0
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

/// The first fields of a dict's C struct.
#[repr(C)]
struct DictHead {
    head: ffi::PyObject,
    ma_used: ffi::Py_ssize_t,
    #[cfg(not(Py_3_14))]
    ma_version_tag: u64,
}

/// Where a dict has the number of its items: it shows that names were added or removed, but not that values were
/// replaced.
pub fn length_place(dict: &Bound<'_, PyDict>) -> *mut AtomicU64 {
    // SAFETY: a live dict; the first fields of `PyDictObject` are the same since 3.10.
    unsafe { (&raw mut (*dict.as_ptr().cast::<DictHead>()).ma_used).cast() }
}

/// Where a dict has the number of its last change. Read it atomically: on free-threaded builds another thread may be
/// storing it.
#[cfg(not(Py_3_14))]
pub fn version_place(dict: &Bound<'_, PyDict>) -> *mut AtomicU64 {
    // SAFETY: a live dict; the first fields of `PyDictObject` are the same from 3.10 to 3.13.
    unsafe { (&raw mut (*dict.as_ptr().cast::<DictHead>()).ma_version_tag).cast() }
}

/// A dict that no other code has yet. Its keys are exact `str`.
pub struct NewDict<'py> {
    py: Python<'py>,
    dict: Owned,
}

impl<'py> NewDict<'py> {
    /// A copy of a dict whose keys are exact `str`.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn copy_of(dict: Object<'_, 'py>) -> Result<Self, Failure> {
        Ok(Self { py: dict.py(), dict: copy(dict)? })
    }

    /// The finished dict.
    pub fn into_owned(self) -> Owned {
        self.dict
    }

    /// The token of the thread that fills the dict.
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// The dict.
    pub fn as_ptr(&self) -> *mut ffi::PyObject {
        self.dict.as_ptr()
    }

    /// Sets the value of a name.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set(&self, name: &Owned, value: Object<'_, '_>) -> Result<(), Failure> {
        self.set_key(name.bind(self.py), value)
    }

    /// Sets the value of a key, an exact `str`.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set_key(&self, key: Object<'_, '_>, value: Object<'_, '_>) -> Result<(), Failure> {
        // SAFETY: our own dict, a live `str` and a live value, and the thread is attached.
        if unsafe { ffi::PyDict_SetItem(self.dict.as_ptr(), key.as_ptr(), value.as_ptr()) } < 0 {
            return Err(Failure::of_error(self.py));
        }
        Ok(())
    }

    /// Sets the value of a key, an exact `str`, unless the dict has the key.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn set_default(&self, key: Object<'_, '_>, value: Object<'_, '_>) -> Result<(), Failure> {
        // SAFETY: our own dict, a live `str` and a live value, and the thread is attached; the result is borrowed.
        if unsafe { ffi::PyDict_SetDefault(self.dict.as_ptr(), key.as_ptr(), value.as_ptr()) }.is_null() {
            return Err(Failure::of_error(self.py));
        }
        Ok(())
    }

    /// Sets the value of a name to a `float`, which it returns.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    #[inline]
    pub fn set_float(&self, name: &Owned, value: f64) -> Result<Owned, Failure> {
        // SAFETY: the thread is attached; a new reference or null with an error set.
        let value = unsafe { Owned::steal(ffi::PyFloat_FromDouble(value)) };
        let value = value.ok_or_else(|| Failure::of_error(self.py))?;
        self.set(name, value.bind(self.py))?;
        Ok(value)
    }
}
