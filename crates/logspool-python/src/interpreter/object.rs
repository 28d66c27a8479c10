//! The few handles over Python objects that the hot path needs.
//!
//! [`Object`] is a borrowed reference with the proof that the thread is attached: one pointer, no reference count.
//! [`Owned`] is a counted reference without that proof, for structures of ours and for values that a call makes.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

/// A live object, borrowed for `'a` by a thread that is attached for `'py`.
pub type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// An owned reference. Dropped only while the thread is attached to the interpreter.
pub struct Owned(NonNull<PyObject>);

// SAFETY: an `Owned` is a counted reference; it is cloned and dropped only by attached threads, which every
// structure that holds one guarantees by being touched from calls of the interpreter alone.
unsafe impl Send for Owned {}
// SAFETY: the pointer is never changed after construction, and what is done with it asks for the token.
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
    #[inline]
    pub fn of(object: &Bound<'_, PyAny>) -> Self {
        // SAFETY: a `Bound` is live and shows that the thread is attached; it is not null.
        unsafe {
            ffi::Py_INCREF(object.as_ptr());
            Self(NonNull::new_unchecked(object.as_ptr()))
        }
    }

    /// Takes over a reference of PyO3's.
    pub fn from_bound(object: Bound<'_, PyAny>) -> Self {
        // SAFETY: `into_ptr` gives the reference away, and it is not null.
        unsafe { Self(NonNull::new_unchecked(object.into_ptr())) }
    }

    /// A second reference to the same object.
    #[inline]
    pub fn again(&self, py: Python<'_>) -> Self {
        Self::of(&self.bind(py))
    }

    /// The object, borrowed from `self`.
    #[inline(always)]
    pub fn bind<'py>(&self, py: Python<'py>) -> Object<'_, 'py> {
        // SAFETY: `self` owns a reference for as long as the result borrows it; `py` shows that the thread is attached.
        unsafe { Borrowed::from_ptr(py, self.as_ptr()) }
    }

    /// Makes a new reference that another thread will drop; see [`lend`].
    #[inline]
    pub fn lent(object: &Bound<'_, PyAny>) -> Self {
        lend(object);
        // SAFETY: `lend` has counted the reference, and a `Bound` is not null.
        unsafe { Self(NonNull::new_unchecked(object.as_ptr())) }
    }

    /// The same reference, to be dropped by another thread; see [`lend`].
    #[inline]
    pub fn handed_over(self, py: Python<'_>) -> Self {
        /// `_Py_REF_MAYBE_WEAKREF`: something refers weakly to the object; not a reference.
        #[cfg(Py_GIL_DISABLED)]
        const MAYBE_WEAKREF: isize = 1;
        #[cfg(Py_GIL_DISABLED)]
        // SAFETY: `self` keeps the object. While no reference is in the shared count, and the counts are not merged,
        // this one is the owner's.
        if matches!(unsafe { (*self.as_ptr()).ob_ref_shared.load(Relaxed) }, 0 | MAYBE_WEAKREF) {
            // `self` is dropped: one local reference less.
            return Self::lent(&self.bind(py));
        }
        let _ = py;
        self
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
#[inline]
pub fn lend(object: &Bound<'_, PyAny>) {
    let object = object.as_ptr();
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `Bound` is live, and shows that the thread is attached.
    unsafe {
        ffi::Py_INCREF(object);
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: a `Bound` is live; an immortal object is not counted.
    unsafe {
        /// `_Py_REF_SHARED_SHIFT` of CPython 3.13 and 3.14: two flags are below the count.
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

/// A weak reference of CPython's.
pub struct WeakReference(Owned);

impl WeakReference {
    /// A weak reference to `object`, with `callback` for its end.
    ///
    /// # Errors
    ///
    /// `object` cannot be referred to weakly.
    pub fn new(object: &Bound<'_, PyAny>, callback: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let callback = callback.map_or(ptr::null_mut(), |callback| callback.as_ptr());
        // SAFETY: live objects or null for no callback; the result is a new reference or null with an error set.
        let made = unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), callback)) };
        made.map(Self).ok_or_else(|| PyErr::fetch(object.py()))
    }

    /// The object that it refers to, as an address to compare only.
    #[inline(always)]
    pub fn referent(&self) -> *mut PyObject {
        // SAFETY: `wr_object` is the first field of `PyWeakReference` in every version; it is `None` once the
        // object is gone, so an address that was used again never compares equal.
        unsafe {
            let field = &raw const (*self.0.as_ptr().cast::<WeakHead>()).wr_object;
            (*field.cast::<std::sync::atomic::AtomicPtr<PyObject>>()).load(Relaxed)
        }
    }

    /// The object; `None` once it is gone.
    pub fn upgrade<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.bind(py).call0().ok().filter(|object| !object.is_none())
    }

    /// The address of the reference itself, which its callback gets.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// A second reference to the weak reference.
    pub fn again(&self, py: Python<'_>) -> Self {
        Self(self.0.again(py))
    }
}

/// The arguments of a call, without the object of a method.
#[derive(Clone, Copy)]
pub struct Call<'a, 'py> {
    py: Python<'py>,
    /// `count` positional values, and one value for each keyword after them, all live for `'a`.
    values: *const *mut PyObject,
    count: usize,
    /// The tuple of the keywords' names; null when there are none.
    keywords: *mut PyObject,
    _borrowed: PhantomData<&'a [Object<'a, 'py>]>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The call that CPython makes of a `METH_FASTCALL | METH_KEYWORDS` function.
    ///
    /// # Safety
    ///
    /// `arguments` points to `count` live objects and one more for each name in `keywords`, which is null or a tuple of
    /// `str`. All of them live for `'a`.
    #[inline(always)]
    pub unsafe fn new(
        py: Python<'py>,
        arguments: *const *mut PyObject,
        count: ffi::Py_ssize_t,
        keywords: *mut PyObject,
    ) -> Self {
        Self { py, values: arguments, count: count as usize, keywords, _borrowed: PhantomData }
    }

    /// A call with these positional values and no keywords.
    pub fn positional_only(py: Python<'py>, values: &'a [Object<'a, 'py>]) -> Self {
        Self {
            py,
            values: values.as_ptr().cast(),
            count: values.len(),
            keywords: ptr::null_mut(),
            _borrowed: PhantomData,
        }
    }

    /// The first `count` values.
    ///
    /// # Safety
    ///
    /// The call has as many.
    #[inline(always)]
    unsafe fn first(&self, count: usize) -> &'a [Object<'a, 'py>] {
        if count == 0 {
            return &[];
        }
        // SAFETY: as many live objects, as the caller says; `Object` is a transparent pointer that is not null.
        unsafe { std::slice::from_raw_parts(self.values.cast(), count) }
    }

    /// The proof that the thread is attached.
    #[inline(always)]
    pub fn py(&self) -> Python<'py> {
        self.py
    }

    /// The number of positional values.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The positional values.
    #[inline(always)]
    pub fn positional(&self) -> &'a [Object<'a, 'py>] {
        // SAFETY: `new` was given as many.
        unsafe { self.first(self.count) }
    }

    /// The positional values, then those of the keywords.
    #[inline]
    pub fn values(&self) -> &'a [Object<'a, 'py>] {
        // SAFETY: null or a tuple, as `new` says, which was given one value for each name.
        unsafe {
            let named = if self.keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(self.keywords) as usize };
            self.first(self.count + named)
        }
    }

    /// The single positional value of a call without keywords.
    #[inline(always)]
    pub fn only(&self) -> Option<Object<'a, 'py>> {
        match self.positional() {
            [value] if !self.has_keywords() => Some(*value),
            _ => None,
        }
    }

    /// Whether the call has keywords.
    #[inline(always)]
    pub fn has_keywords(&self) -> bool {
        !self.keywords.is_null()
    }

    /// The tuple of the keywords' names; null when there are none.
    #[inline(always)]
    pub fn keywords(&self) -> *mut PyObject {
        self.keywords
    }

    /// Names and values of the keywords.
    pub fn named(&self) -> impl Iterator<Item = (Object<'a, 'py>, Object<'a, 'py>)> {
        let names: &'a [Object<'a, 'py>] = if self.keywords.is_null() {
            &[]
        } else {
            // SAFETY: a live tuple, as `new` says.
            tuple_items(unsafe { Borrowed::from_ptr(self.py, self.keywords) }).unwrap_or(&[])
        };
        names.iter().copied().zip(self.values()[self.count..].iter().copied())
    }

    /// The first positional value, and the call without it; `None` where there is none.
    #[inline(always)]
    pub fn split_first(&self) -> Option<(Object<'a, 'py>, Self)> {
        let (first, _) = self.positional().split_first()?;
        // SAFETY: there is one value at least.
        let values = unsafe { self.values.add(1) };
        Some((*first, Self { values, count: self.count - 1, ..*self }))
    }
}

/// The items of an exact tuple; `None` for another object.
#[inline]
pub fn tuple_items<'a, 'py>(object: Object<'a, 'py>) -> Option<&'a [Object<'a, 'py>]> {
    if !ptr::eq(class_of(object), &raw const ffi::PyTuple_Type) {
        return None;
    }
    // SAFETY: an exact tuple: its items are in its struct, not null, and never change while it lives.
    unsafe {
        let count = ffi::PyTuple_GET_SIZE(object.as_ptr()) as usize;
        let first = &raw const (*object.as_ptr().cast::<ffi::PyTupleObject>()).ob_item;
        Some(std::slice::from_raw_parts(first.cast::<Object<'a, 'py>>(), count))
    }
}

/// The UTF-8 bytes of a `str`; `None`, without an error set, for another object and where it has lone surrogates.
#[inline]
pub fn utf8<'a>(object: Object<'a, '_>) -> Option<&'a [u8]> {
    let mut len: ffi::Py_ssize_t = 0;
    // SAFETY: a live object whose type CPython checks; the buffer of a str lives as long as the str.
    unsafe {
        let bytes = ffi::PyUnicode_AsUTF8AndSize(object.as_ptr(), &mut len);
        if bytes.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(bytes.cast(), len as usize))
    }
}

/// [`utf8`] as `&str`.
pub fn text<'a>(object: Object<'a, '_>) -> Option<&'a str> {
    // SAFETY: CPython's encoder yields valid UTF-8.
    utf8(object).map(|bytes| unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// The exact type of an object, as an address to compare with that of a type.
#[inline(always)]
pub fn class_of(object: Object<'_, '_>) -> *mut ffi::PyTypeObject {
    // SAFETY: a live object has a type.
    unsafe { ffi::Py_TYPE(object.as_ptr()) }
}

/// Whether the exact type of `object` is `str`.
#[inline(always)]
pub fn is_exact_str(object: Object<'_, '_>) -> bool {
    ptr::eq(class_of(object), &raw const ffi::PyUnicode_Type)
}

/// Whether the exact type of `object` is `int`.
#[inline(always)]
pub fn is_exact_int(object: Object<'_, '_>) -> bool {
    ptr::eq(class_of(object), &raw const ffi::PyLong_Type)
}

/// Whether it is a `str`, `int` or `float` and of no subclass.
#[inline]
pub fn is_scalar(object: Object<'_, '_>) -> bool {
    is_exact_str(object) || is_exact_int(object) || ptr::eq(class_of(object), &raw const ffi::PyFloat_Type)
}

/// Whether the object is a `str`, also of a subclass.
#[inline]
pub fn is_str(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object; only the flags of its type are read.
    unsafe { ffi::PyUnicode_Check(object.as_ptr()) != 0 }
}

/// `object.name`; clears any error.
pub fn attribute(object: Object<'_, '_>, name: &Owned) -> Option<Owned> {
    // SAFETY: live objects, and `object` shows that the thread is attached; the result is a new reference or null.
    unsafe {
        let found = Owned::steal(ffi::PyObject_GetAttr(object.as_ptr(), name.as_ptr()));
        if found.is_none() {
            ffi::PyErr_Clear();
        }
        found
    }
}

/// A reference to `None` for CPython: what a method without a result returns.
#[inline]
pub fn none(_attached: Python<'_>) -> *mut PyObject {
    // SAFETY: None is immortal or counted, and the token shows that the thread is attached.
    unsafe {
        let object = ffi::Py_None();
        ffi::Py_INCREF(object);
        object
    }
}

/// A reference to `True` or `False` for CPython.
#[inline]
pub fn truth(_attached: Python<'_>, value: bool) -> *mut PyObject {
    // SAFETY: both live for good, and the token shows that the thread is attached.
    unsafe {
        let object = if value { ffi::Py_True() } else { ffi::Py_False() };
        ffi::Py_INCREF(object);
        object
    }
}

/// Whether a Python error is set.
pub fn has_error(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached.
    unsafe { !ffi::PyErr_Occurred().is_null() }
}

/// Clears the error that is set, if any.
pub fn clear_error(_attached: Python<'_>) {
    // SAFETY: the token shows that the thread is attached.
    unsafe { ffi::PyErr_Clear() }
}

/// Keeps the Python error that is set now and puts it back when dropped.
pub struct ErrorKept<'py> {
    kind: *mut PyObject,
    value: *mut PyObject,
    traceback: *mut PyObject,
    _attached: Python<'py>,
}

impl<'py> ErrorKept<'py> {
    /// Takes the current error, if any.
    pub fn take(py: Python<'py>) -> Self {
        let mut kept =
            Self { kind: ptr::null_mut(), value: ptr::null_mut(), traceback: ptr::null_mut(), _attached: py };
        // SAFETY: three out-pointers of ours. Deprecated in 3.12 and still there in every version we build for.
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Fetch(&mut kept.kind, &mut kept.value, &mut kept.traceback);
        }
        kept
    }
}

impl Drop for ErrorKept<'_> {
    fn drop(&mut self) {
        // SAFETY: gives back the three references that `take` got; null restores "no error".
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Restore(self.kind, self.value, self.traceback);
        }
    }
}

/// The object and the arguments of a method that CPython calls.
///
/// # Safety
///
/// The thread is attached for `'py`; `object` is live, and the others are as for [`Call::new`], all for `'a`.
#[inline(always)]
pub unsafe fn received<'a, 'py>(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> (Object<'a, 'py>, Call<'a, 'py>) {
    // SAFETY: attached and live for as long as the result, as the caller says.
    unsafe {
        let py = Python::assume_attached();
        (Borrowed::from_ptr(py, object), Call::new(py, arguments, count, keywords))
    }
}

/// Whether the object is an exact `list` without items.
pub fn is_empty_list(object: Object<'_, '_>) -> bool {
    // SAFETY: the exact type is checked before the size is read.
    ptr::eq(class_of(object), &raw const ffi::PyList_Type) && unsafe { ffi::PyList_GET_SIZE(object.as_ptr()) } == 0
}

/// Whether an exact `str` has the text of `name`: mostly it is the very same object.
#[inline]
pub fn has_text(object: Object<'_, '_>, name: &Owned) -> bool {
    if object.as_ptr() == name.as_ptr() {
        return true;
    }
    // SAFETY: two live `str`; comparing them runs no foreign code.
    is_exact_str(object) && unsafe { ffi::PyUnicode_Compare(object.as_ptr(), name.as_ptr()) } == 0
}
