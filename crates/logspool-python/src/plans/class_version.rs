//! Version tags of classes: CPython gives a class another tag after each change of the class or of its bases.

use std::sync::atomic::Ordering::Relaxed;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interpreter::names;
use crate::interpreter::object::{self, Object, Owned};

/// A class with its version tag at the time it was inspected.
pub struct ClassVersion {
    class: Owned,
    tag: u32,
}

impl ClassVersion {
    /// The class with its current version tag. Lets CPython assign a tag if the class has none. The tag is 0 if CPython
    /// has no tag left.
    pub fn assigned(class: &Bound<'_, PyType>) -> Self {
        unsafe extern "C" {
            fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
        }
        // CPython assigns the tag during an attribute lookup on the type; every class has an attribute of this name.
        let name = names::bound(class.py(), &names::names().init);
        // SAFETY: a live type and `str`, and the thread is attached; the result is borrowed and not used.
        unsafe { _PyType_Lookup(class.as_type_ptr(), name.as_ptr()) };
        let class = Owned::of(class);
        let tag = tag_of(&class);
        Self { class, tag }
    }

    /// The class with a tag that was read before.
    pub fn seen(class: &Bound<'_, PyType>, tag: u32) -> Self {
        Self { class: Owned::of(class), tag }
    }

    /// The tag; 0 if CPython had none left.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The address of the class.
    pub fn address(&self) -> usize {
        self.class.as_ptr() as usize
    }

    /// A second reference to the class, with the same tag.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { class: self.class.clone_ref(py), tag: self.tag }
    }

    /// True if the class still has this tag.
    #[inline(always)]
    pub fn is_same(&self) -> bool {
        tag_of(&self.class) == self.tag
    }

    /// True if the class is unchanged. `false` also if CPython had no tag left.
    pub fn holds(&self) -> bool {
        self.tag != 0 && self.is_same()
    }
}

/// Checks whether the version tag of a class follows its changes. `class` is one that no other code uses. Returns what is
/// wrong, or an empty text.
///
/// # Errors
///
/// There is not enough memory.
pub fn self_check(class: &Bound<'_, PyType>) -> PyResult<&'static str> {
    let before = ClassVersion::assigned(class);
    let holds = before.holds();
    class.setattr("changed", true)?;
    let after = ClassVersion::assigned(class);
    Ok(if holds && !before.holds() && after.tag != before.tag {
        ""
    } else {
        "the version tags of this build do not follow the changes of a class"
    })
}

/// The version tag of a class. The reference must be to a type.
#[inline(always)]
fn tag_of(class: &Owned) -> u32 {
    // SAFETY: a live type, kept alive by `class`. The tag is read atomically, because on free-threaded builds another
    // thread may be storing it.
    unsafe {
        let tag = &raw const (*class.as_ptr().cast::<ffi::PyTypeObject>()).tp_version_tag;
        (*tag.cast::<std::sync::atomic::AtomicU32>()).load(Relaxed)
    }
}

/// The version tag of an object's class; 0 if the class has none.
#[inline(always)]
pub fn tag_of_class(object: Object<'_, '_>) -> u32 {
    // SAFETY: the class of a live object is live. The tag is read as in `tag_of`.
    unsafe {
        let tag = &raw const (*object::class_of(object)).tp_version_tag;
        (*tag.cast::<std::sync::atomic::AtomicU32>()).load(Relaxed)
    }
}
