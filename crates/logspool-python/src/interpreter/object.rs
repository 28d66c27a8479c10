//! The few handles over raw `PyObject` pointers that the hot path needs.
//!
//! Everything slower than a call uses PyO3's safe types; these exist where a `Bound` would cost a
//! reference count or where an object lives in a structure of ours.

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// An owned reference. Dropped only while the thread is attached to the interpreter.
pub struct Owned(NonNull<PyObject>);

// SAFETY: an `Owned` is a counted reference; it is cloned and dropped only by attached threads, which every
// structure that holds one guarantees by being touched from calls of the interpreter alone.
unsafe impl Send for Owned {}
// SAFETY: as above; the pointer itself is never changed after construction.
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes over a new reference; `None` for null, with the Python error left set.
    ///
    /// # Safety
    ///
    /// `object` is null or a reference that the caller owns.
    #[inline]
    pub unsafe fn steal(object: *mut PyObject) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    /// Makes a new reference of a borrowed one.
    ///
    /// # Safety
    ///
    /// `object` points to a live object and the thread is attached.
    #[inline]
    pub unsafe fn borrow(object: *mut PyObject) -> Self {
        // SAFETY: the caller says it is live.
        unsafe {
            ffi::Py_INCREF(object);
            Self(NonNull::new_unchecked(object))
        }
    }

    /// Makes a new reference that another thread will drop; see [`lend`].
    ///
    /// # Safety
    ///
    /// As for [`Self::borrow`].
    #[inline]
    pub unsafe fn lent(object: *mut PyObject) -> Self {
        // SAFETY: the caller says it is live.
        unsafe {
            lend(object);
            Self(NonNull::new_unchecked(object))
        }
    }

    /// The same reference, to be dropped by another thread; see [`lend`].
    ///
    /// # Safety
    ///
    /// Attached.
    #[inline]
    pub unsafe fn handed_over(self) -> Self {
        /// `_Py_REF_MAYBE_WEAKREF`: something refers weakly to the object; not a reference.
        #[cfg(Py_GIL_DISABLED)]
        const MAYBE_WEAKREF: isize = 1;
        #[cfg(Py_GIL_DISABLED)]
        // SAFETY: a live object. While no reference is in the shared count, and the counts are not merged, this one is
        // the owner's.
        unsafe {
            if matches!((*self.as_ptr()).ob_ref_shared.load(Relaxed), 0 | MAYBE_WEAKREF) {
                // `self` is dropped: one local reference less.
                return Self::lent(self.as_ptr());
            }
        }
        self
    }

    /// Makes a new reference of PyO3's.
    pub fn of(object: &Bound<'_, PyAny>) -> Self {
        // SAFETY: a live object, attached.
        unsafe { Self::borrow(object.as_ptr()) }
    }

    /// The pointer, given away with its reference.
    pub fn into_ptr(self) -> *mut PyObject {
        let pointer = self.as_ptr();
        std::mem::forget(self);
        pointer
    }

    /// The pointer, still owned by `self`.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: one reference is ours; see the type's doc for why the thread is attached.
        unsafe { ffi::Py_DECREF(self.as_ptr()) }
    }
}

/// Counts a reference that another thread will give back.
///
/// Free-threaded builds count the references of the thread that made an object apart from those of all others (biased
/// reference counting: Choi, Shull and Torrellas 2018, PEP 703). A reference that the one takes and another gives
/// back makes the second count negative: the object then goes through a list to its owner, which stops in the middle
/// of what it does to merge the two. So it is counted with those of the others from the start. That is what
/// `Py_INCREF` does in every other thread.
///
/// # Safety
///
/// `object` points to a live object and the thread is attached.
#[inline]
pub unsafe fn lend(object: *mut PyObject) {
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: as the caller says.
    unsafe {
        ffi::Py_INCREF(object);
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: as the caller says; an immortal object is not counted.
    unsafe {
        /// `_Py_REF_SHARED_SHIFT` of CPython 3.13 and 3.14: two flags stand below the count.
        const ONE: isize = 1 << 2;
        if (*object).ob_ref_local.load(Relaxed) != u32::MAX {
            (*object).ob_ref_shared.fetch_add(ONE, Relaxed);
        }
    }
}

#[repr(C)]
struct WeakHead {
    head: PyObject,
    wr_object: *mut PyObject,
}

/// The object that a weak reference points to, as an address to compare only.
///
/// # Safety
///
/// A weak reference.
#[inline(always)]
pub unsafe fn referent(reference: &Owned) -> *mut PyObject {
    // SAFETY: `wr_object` is the first field of `PyWeakReference` in every version; it is `None` once the
    // object is gone, so an address that was used again never compares equal.
    unsafe {
        let field = &raw const (*reference.as_ptr().cast::<WeakHead>()).wr_object;
        (*field.cast::<std::sync::atomic::AtomicPtr<PyObject>>()).load(Relaxed)
    }
}

/// The arguments of a call as CPython lays them out, without the object of a method.
#[derive(Clone, Copy)]
pub struct Call {
    /// `count` positional values, and one value for each keyword behind them.
    pub arguments: *const *mut PyObject,
    /// Number of positional values.
    pub count: usize,
    /// The tuple of the keywords' names; null when there are none.
    pub keywords: *mut PyObject,
}

impl Call {
    /// The first positional value; `None` where there is none.
    ///
    /// # Safety
    ///
    /// The call describes live objects.
    #[inline]
    pub unsafe fn first(self) -> Option<*mut PyObject> {
        // SAFETY: as many values as counted.
        (self.count > 0).then(|| unsafe { *self.arguments })
    }

    /// The call without its first positional value.
    ///
    /// # Safety
    ///
    /// It has one.
    #[inline]
    pub unsafe fn rest(self) -> Self {
        // SAFETY: as the caller says.
        Self { arguments: unsafe { self.arguments.add(1) }, count: self.count - 1, keywords: self.keywords }
    }
}

/// The UTF-8 bytes of an exact or derived `str`; `None`, without an error set, where it has lone surrogates.
///
/// # Safety
///
/// `object` is a live `str` that outlives the use of the result; the thread is attached.
#[inline]
pub unsafe fn utf8<'a>(object: *mut PyObject) -> Option<&'a [u8]> {
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: `object` is a str; the buffer lives as long as it.
    unsafe {
        let bytes = ffi::PyUnicode_AsUTF8AndSize(object, &mut len);
        if bytes.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(bytes.cast(), len as usize))
    }
}

/// [`utf8`] as `&str`.
///
/// # Safety
///
/// As for [`utf8`].
pub unsafe fn text<'a>(object: *mut PyObject) -> Option<&'a str> {
    // SAFETY: passed on; CPython's encoder yields valid UTF-8.
    unsafe { utf8(object).map(|bytes| std::str::from_utf8_unchecked(bytes)) }
}

/// Whether the exact type of `object` is `str`.
///
/// # Safety
///
/// `object` is live.
#[inline]
pub unsafe fn is_exact_str(object: *mut PyObject) -> bool {
    // SAFETY: live object.
    unsafe { ptr::eq(ffi::Py_TYPE(object), &raw const ffi::PyUnicode_Type) }
}

/// `object.name`; clears any error.
///
/// # Safety
///
/// Both are live, `name` is a `str`, the thread is attached.
pub unsafe fn attribute(object: *mut PyObject, name: *mut PyObject) -> Option<Owned> {
    // SAFETY: live objects.
    unsafe {
        let found = Owned::steal(ffi::PyObject_GetAttr(object, name));
        if found.is_none() {
            ffi::PyErr_Clear();
        }
        found
    }
}

/// A new reference to `None`.
#[inline]
pub fn none() -> *mut PyObject {
    // SAFETY: None is immortal or counted; a new reference is made.
    unsafe {
        let object = ffi::Py_None();
        ffi::Py_INCREF(object);
        object
    }
}

/// A new reference to `True` or `False`.
#[inline]
pub fn truth(value: bool) -> *mut PyObject {
    // SAFETY: both live for good; a new reference is made.
    unsafe {
        let object = if value { ffi::Py_True() } else { ffi::Py_False() };
        ffi::Py_INCREF(object);
        object
    }
}

/// Keeps the Python error that is set now and puts it back when dropped.
pub struct ErrorKept {
    kind: *mut PyObject,
    value: *mut PyObject,
    traceback: *mut PyObject,
}

impl ErrorKept {
    /// Takes the current error, if any.
    ///
    /// # Safety
    ///
    /// The thread is attached until the drop.
    pub unsafe fn take() -> Self {
        let mut kept = Self { kind: ptr::null_mut(), value: ptr::null_mut(), traceback: ptr::null_mut() };
        // SAFETY: three out-pointers of ours. Deprecated in 3.12 and still there in every version we build for.
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Fetch(&mut kept.kind, &mut kept.value, &mut kept.traceback);
        }
        kept
    }
}

impl Drop for ErrorKept {
    fn drop(&mut self) {
        // SAFETY: gives back the three references that `take` got; null restores "no error".
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Restore(self.kind, self.value, self.traceback);
        }
    }
}
