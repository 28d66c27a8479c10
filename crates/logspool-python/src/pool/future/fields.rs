//! The native fields of a future. In the object they follow the fields of the base class.

use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use logspool_pool::Promise;
use logspool_sys::published::Published;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::interpreter::object::{Object, Owned};

/// The native fields of a future. Zeroed memory represents a pending future.
#[repr(C)]
pub(super) struct FutureFields {
    pub(super) promise: Promise,
    pub(super) result: AtomicPtr<PyObject>,
    pub(super) exception: AtomicPtr<PyObject>,
    /// Null, one callback, or a list of callbacks. Accessed only under the promise's lock.
    pub(super) callbacks: AtomicPtr<PyObject>,
    /// Null, or the list of waiters after the standard library's `wait` or `as_completed` requested it.
    pub(super) waiters: AtomicPtr<PyObject>,
    /// Null, or a `threading.Condition` after it was first requested.
    pub(super) condition: AtomicPtr<PyObject>,
}

/// Offset of [`FutureFields`] in an object, in bytes.
pub(super) static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// A borrowed future of the pool: an object of the type that [`super::connect`] describes, or of a subclass.
#[derive(Clone, Copy)]
pub struct FutureRef<'a, 'py>(Object<'a, 'py>);

impl<'a, 'py> FutureRef<'a, 'py> {
    /// Treats an object as a future.
    ///
    /// # Safety
    ///
    /// `object` is an instance of the type that [`super::connect`] describes, or of a subclass.
    #[inline]
    pub unsafe fn of(object: Object<'a, 'py>) -> Self {
        Self(object)
    }

    /// The object.
    #[inline]
    pub fn object(self) -> Object<'a, 'py> {
        self.0
    }

    /// The token of the attached thread.
    #[inline]
    pub fn py(self) -> Python<'py> {
        self.0.py()
    }

    /// The native fields of the future.
    #[inline]
    pub(super) fn fields(self) -> &'a FutureFields {
        // SAFETY: the type's basic size has room for the fields at this offset; zeroed memory is valid.
        unsafe { &*self.0.as_ptr().byte_add(OFFSET.load(Ordering::Relaxed)).cast() }
    }
}

/// An owned future of the pool.
pub struct FutureHandle(Owned);

impl FutureHandle {
    /// A new pending future of a type that [`super::connect`] describes.
    ///
    /// # Errors
    ///
    /// No memory.
    ///
    /// # Safety
    ///
    /// `class` is a type that [`super::connect`] describes, or a subclass.
    #[inline]
    pub unsafe fn allocate(py: Python<'_>, class: &Owned) -> PyResult<Self> {
        let class: *mut ffi::PyTypeObject = class.as_ptr().cast();
        // SAFETY: every type has `tp_alloc`, and `py` shows that the thread is attached. The result is a new reference
        // to zeroed memory, or null.
        let made = unsafe { Owned::steal(((*class).tp_alloc.unwrap_unchecked())(class, 0)) };
        made.map(Self).ok_or_else(|| PyErr::fetch(py))
    }

    /// The future, borrowed.
    #[inline]
    pub fn bind<'py>(&self, py: Python<'py>) -> FutureRef<'_, 'py> {
        FutureRef(self.0.bind(py))
    }

    /// A second reference, for another thread to drop.
    #[inline]
    pub fn for_other_thread(&self, py: Python<'_>) -> Self {
        Self(Owned::for_other_thread(&self.0.bind(py)))
    }

    /// A second reference.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }

    /// The object.
    #[inline]
    pub fn into_object(self) -> Owned {
        self.0
    }
}

/// A new reference to the object in a field. The field must not be emptied meanwhile.
pub(super) fn object_in(py: Python<'_>, field: &AtomicPtr<PyObject>) -> Option<Owned> {
    // SAFETY: the field owns a reference to its object and keeps it during the call. `callbacks` is emptied only under
    // the promise's lock. `waiters` and `condition` are emptied only in a forked child. Other fields are never emptied.
    unsafe { Borrowed::from_ptr_or_opt(py, field.observe()) }.map(|object| Owned::of(&object))
}

/// Puts an object into an empty field. If the field is full, returns the object as the error.
pub(super) fn fill(field: &AtomicPtr<PyObject>, object: Owned) -> Result<(), Owned> {
    match field.publish_over(ptr::null_mut(), object.as_ptr()) {
        Ok(()) => {
            // The field owns the reference now.
            std::mem::forget(object);
            Ok(())
        }
        Err(_) => Err(object),
    }
}

/// Declares the fields that hold objects as members of the type, so that CPython traverses and deallocates them.
/// CPython skips read-only members, so these are writable. Each name begins with a space, so that Python code cannot
/// access the member.
pub fn members() -> Vec<ffi::PyMemberDef> {
    let offset = OFFSET.load(Ordering::Relaxed);
    let member = |name: &'static CStr, field: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_OBJECT_EX,
        offset: (offset + field) as ffi::Py_ssize_t,
        flags: 0,
        doc: ptr::null(),
    };
    vec![
        member(c" result", offset_of!(FutureFields, result)),
        member(c" exception", offset_of!(FutureFields, exception)),
        member(c" callbacks", offset_of!(FutureFields, callbacks)),
        member(c" waiters", offset_of!(FutureFields, waiters)),
        member(c" condition", offset_of!(FutureFields, condition)),
        ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() },
    ]
}
