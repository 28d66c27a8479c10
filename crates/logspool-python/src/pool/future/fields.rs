//! The native fields of a future, after those of the base class.

use std::ffi::CStr;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use logspool::pool::Promise;
use pyo3::ffi::{self, PyObject};

use crate::interpreter::object::Owned;

/// What stands behind the fields of the base class. Zeroed memory is a pending future.
#[repr(C)]
pub(super) struct FutureFields {
    pub(super) promise: Promise,
    pub(super) result: AtomicPtr<PyObject>,
    pub(super) exception: AtomicPtr<PyObject>,
    /// Null, one callback, or a list of them; used under the promise's lock.
    pub(super) callbacks: AtomicPtr<PyObject>,
    /// A list, once the standard library's `wait` or `as_completed` asked for it.
    pub(super) waiters: AtomicPtr<PyObject>,
    /// A `threading.Condition`, once somebody asked for it.
    pub(super) condition: AtomicPtr<PyObject>,
}

/// Where [`FutureFields`] lie in an object.
pub(super) static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// The fields of a future.
///
/// # Safety
///
/// `object` is a live instance of the type that `init` made.
#[inline]
pub(super) unsafe fn fields<'a>(object: *mut PyObject) -> &'a FutureFields {
    // SAFETY: the type's basic size has room for them behind the base's fields; zeroed memory is valid.
    unsafe { &*object.byte_add(OFFSET.load(Ordering::Relaxed)).cast() }
}

/// A reference of one's own to what a field holds.
///
/// # Safety
///
/// Attached; the field is not emptied meanwhile.
pub(super) unsafe fn held(field: &AtomicPtr<PyObject>) -> Option<Owned> {
    let object = field.load(Ordering::Acquire);
    // SAFETY: a field owns a reference to what it holds.
    (!object.is_null()).then(|| unsafe { Owned::borrow(object) })
}

/// Fills an empty field; gives back what could not be put there.
pub(super) fn fill(field: &AtomicPtr<PyObject>, object: Owned) -> Result<(), Owned> {
    match field.compare_exchange(ptr::null_mut(), object.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => {
            // The field has the reference now.
            std::mem::forget(object);
            Ok(())
        }
        Err(_) => Err(object),
    }
}

/// The fields that hold objects, for CPython's traversal and deallocation, which leaves out what is read-only. Their
/// names, with a space, cannot be written in Python.
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
