//! The references to Python objects that the hot path needs.
//!
//! [`Object`] is a borrowed reference with the proof that the thread is attached: one pointer without a reference
//! count. [`Owned`] is a counted reference without that proof, for this crate's structures and for values that a call
//! makes.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::interpreter::failure::Failure;

/// A live object, borrowed for `'a` by a thread that is attached for `'py`.
pub type Object<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// An owned reference. It must be dropped only while the thread is attached to the interpreter.
pub struct Owned(NonNull<PyObject>);

// SAFETY: an `Owned` is a counted reference, and only attached threads clone and drop it. Every structure that holds
// one guarantees this: it is used only in calls from the interpreter.
unsafe impl Send for Owned {}
// SAFETY: the pointer never changes after construction, and every use of it requires the token.
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes over a new reference. Returns `None` for null; a Python exception that is set stays set.
    ///
    /// # Safety
    ///
    /// `object` is null or a reference that the caller owns.
    #[inline]
    pub unsafe fn steal(object: *mut PyObject) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    /// Makes a new reference from a borrowed one.
    #[inline]
    pub fn of(object: &Bound<'_, PyAny>) -> Self {
        // SAFETY: a `Bound` is live and shows that the thread is attached; it is not null.
        unsafe {
            ffi::Py_INCREF(object.as_ptr());
            Self(NonNull::new_unchecked(object.as_ptr()))
        }
    }

    /// A second reference to the same object.
    #[inline]
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self::of(&self.bind(py))
    }

    /// A new reference to `None`. The reference from `Python::None` goes through a locked list when a native method
    /// drops it, because PyO3 does not count these methods as attached.
    #[inline]
    pub fn none(py: Python<'_>) -> Self {
        // SAFETY: `None` is never freed.
        unsafe { Self::of(&Borrowed::from_ptr(py, ffi::Py_None())) }
    }

    /// The object, borrowed from `self`.
    #[inline(always)]
    pub fn bind<'py>(&self, py: Python<'py>) -> Object<'_, 'py> {
        // SAFETY: `self` owns a reference for as long as the result borrows it; `py` shows that the thread is attached.
        unsafe { Borrowed::from_ptr(py, self.as_ptr()) }
    }

    /// Makes a new reference that another thread will drop; see [`share_with_other_thread`].
    #[inline]
    pub fn for_other_thread(object: &Bound<'_, PyAny>) -> Self {
        share_with_other_thread(object);
        // SAFETY: `share_with_other_thread` has counted the reference, and a `Bound` is not null.
        unsafe { Self(NonNull::new_unchecked(object.as_ptr())) }
    }

    /// Prepares the reference to be dropped by another thread; see [`share_with_other_thread`].
    #[inline]
    pub fn into_other_thread(self, py: Python<'_>) -> Self {
        /// `_Py_REF_MAYBE_WEAKREF`: the object has a weak reference. The flag is not part of the reference count.
        #[cfg(Py_GIL_DISABLED)]
        const MAYBE_WEAKREF: isize = 1;
        #[cfg(Py_GIL_DISABLED)]
        // SAFETY: `self` keeps the object alive. If the shared count has no reference and the counts are not merged,
        // this reference is in the owner's local count.
        if matches!(unsafe { (*self.as_ptr()).ob_ref_shared.load(Relaxed) }, 0 | MAYBE_WEAKREF) {
            // Dropping `self` reduces the local count by one.
            return Self::for_other_thread(&self.bind(py));
        }
        let _ = py;
        self
    }

    /// Returns the pointer and gives its reference to the caller.
    pub fn into_ptr(self) -> *mut PyObject {
        let pointer = self.as_ptr();
        std::mem::forget(self);
        pointer
    }

    /// Returns the pointer; `self` keeps the reference.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns one reference; the type's doc says why the thread is attached.
        unsafe { ffi::Py_DECREF(self.as_ptr()) }
    }
}

/// Makes a new reference that another thread will release, and counts it for that use.
///
/// Free-threaded builds use biased reference counting (Choi, Shull and Torrellas 2018, PEP 703). The thread that made
/// an object counts its own references apart from those of other threads. If that thread adds a reference and another
/// thread releases it, the shared count becomes negative. CPython then passes the object through a list to its owner,
/// which interrupts its work to merge the two counts. To avoid this, the new reference is added to the shared count
/// from the start. `Py_INCREF` does the same in every other thread.
#[inline]
pub fn share_with_other_thread(object: &Bound<'_, PyAny>) {
    let object = object.as_ptr();
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: a `Bound` is live, and shows that the thread is attached.
    unsafe {
        ffi::Py_INCREF(object);
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: a `Bound` is live; an immortal object has no count to change.
    unsafe {
        /// `_Py_REF_SHARED_SHIFT` of CPython 3.13 and 3.14: the two bits below the count are flags.
        const ONE_REFERENCE: isize = 1 << 2;
        if (*object).ob_ref_local.load(Relaxed) != u32::MAX {
            (*object).ob_ref_shared.fetch_add(ONE_REFERENCE, Relaxed);
        }
    }
}

#[repr(C)]
struct WeakHead {
    head: PyObject,
    wr_object: *mut PyObject,
}

/// A weak reference of CPython.
pub struct WeakReference(Owned);

impl WeakReference {
    /// Makes a weak reference to `object`; `callback` is called when the object dies.
    ///
    /// # Errors
    ///
    /// `object` does not support weak references.
    pub fn new(object: &Bound<'_, PyAny>, callback: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let callback = callback.map_or(ptr::null_mut(), |callback| callback.as_ptr());
        // SAFETY: live objects or null for no callback; the result is a new reference or null with an error set.
        let made = unsafe { Owned::steal(ffi::PyWeakref_NewRef(object.as_ptr(), callback)) };
        made.map(Self).ok_or_else(|| PyErr::fetch(object.py()))
    }

    /// The address of the object, for comparisons only.
    #[inline(always)]
    pub fn referent(&self) -> *mut PyObject {
        // SAFETY: `wr_object` is the first field of `PyWeakReference` in every version. It is `None` after the object
        // is gone, so a reused address never compares equal.
        unsafe {
            let field = &raw const (*self.0.as_ptr().cast::<WeakHead>()).wr_object;
            (*field.cast::<std::sync::atomic::AtomicPtr<PyObject>>()).load(Relaxed)
        }
    }

    /// The object; `None` after it is gone.
    #[cfg(Py_GIL_DISABLED)]
    pub fn upgrade<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.bind(py).call0().ok().filter(|object| !object.is_none())
    }

    /// The object; `None` after it is gone, or while it is being freed.
    #[cfg(not(Py_GIL_DISABLED))]
    #[inline]
    pub fn upgrade<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        // SAFETY: the field is `None` once the object's memory is freed, and the token shows that the GIL is held. An
        // object without references is being freed.
        unsafe {
            let object = Borrowed::from_ptr(py, self.referent());
            (!object.is_none() && ffi::Py_REFCNT(object.as_ptr()) > 0).then(|| object.to_owned())
        }
    }

    /// The address of the weak reference itself, which CPython passes to the callback.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// A second reference to the weak reference.
    pub fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }
}

/// The arguments of a call, without the `self` of a method.
#[derive(Clone, Copy)]
pub struct Call<'a, 'py> {
    py: Python<'py>,
    /// `count` positional values, followed by one value for each keyword. All of them are live for `'a`.
    values: *const *mut PyObject,
    count: usize,
    /// The tuple of keyword names; null if there are none.
    keywords: *mut PyObject,
    _borrowed: PhantomData<&'a [Object<'a, 'py>]>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// The call that CPython makes to a `METH_FASTCALL | METH_KEYWORDS` function.
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
    /// The call has at least `count` values.
    #[inline(always)]
    unsafe fn first(&self, count: usize) -> &'a [Object<'a, 'py>] {
        if count == 0 {
            return &[];
        }
        // SAFETY: the caller ensures `count` live objects; `Object` is a transparent pointer that is not null.
        unsafe { std::slice::from_raw_parts(self.values.cast(), count) }
    }

    /// The token, which proves that the thread is attached.
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
        // SAFETY: `new` received that number of values.
        unsafe { self.first(self.count) }
    }

    /// The positional values, followed by the values of the keywords.
    #[inline]
    pub fn values(&self) -> &'a [Object<'a, 'py>] {
        // SAFETY: `new` requires one value for each name.
        unsafe { self.first(self.count + self.keyword_count()) }
    }

    #[inline(always)]
    fn keyword_count(&self) -> usize {
        // SAFETY: null or a tuple, as `new` says.
        unsafe { if self.keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(self.keywords) as usize } }
    }

    /// The positional value of a call that has exactly one value and no keywords.
    #[inline(always)]
    pub fn only(&self) -> Option<Object<'a, 'py>> {
        match self.positional() {
            [value] if !self.has_keywords() => Some(*value),
            _ => None,
        }
    }

    /// True if the call has keywords.
    #[inline(always)]
    pub fn has_keywords(&self) -> bool {
        !self.keywords.is_null()
    }

    /// The tuple of keyword names; null if there are none.
    #[inline(always)]
    pub fn keywords(&self) -> *mut PyObject {
        self.keywords
    }

    /// Names and values of the keywords.
    #[inline(always)]
    pub fn named(&self) -> impl Iterator<Item = (Object<'a, 'py>, Object<'a, 'py>)> {
        let count = self.keyword_count();
        let (names, values): (&'a [Object<'a, 'py>], &'a [Object<'a, 'py>]) = if count == 0 {
            (&[], &[])
        } else {
            // SAFETY: a tuple of `count` names, as `new` says. The call has one value for each name after the
            // positional values. The items of a tuple are in its struct.
            unsafe {
                let first = &raw const (*self.keywords.cast::<ffi::PyTupleObject>()).ob_item;
                let values = self.values.add(self.count);
                (std::slice::from_raw_parts(first.cast(), count), std::slice::from_raw_parts(values.cast(), count))
            }
        };
        names.iter().copied().zip(values.iter().copied())
    }

    /// The first positional value, and the call without that value; `None` if there is no positional value.
    #[inline(always)]
    pub fn split_first(&self) -> Option<(Object<'a, 'py>, Self)> {
        let (first, _) = self.positional().split_first()?;
        // SAFETY: there is at least one value.
        let values = unsafe { self.values.add(1) };
        Some((*first, Self { values, count: self.count - 1, ..*self }))
    }
}

/// The items of an exact tuple; `None` for any other object.
#[inline]
pub fn tuple_items<'a, 'py>(object: Object<'a, 'py>) -> Option<&'a [Object<'a, 'py>]> {
    if !ptr::eq(class_of(object), &raw const ffi::PyTuple_Type) {
        return None;
    }
    // SAFETY: an exact tuple keeps its items in its struct; they are not null and never change while it lives.
    unsafe {
        let count = ffi::PyTuple_GET_SIZE(object.as_ptr()) as usize;
        let first = &raw const (*object.as_ptr().cast::<ffi::PyTupleObject>()).ob_item;
        Some(std::slice::from_raw_parts(first.cast::<Object<'a, 'py>>(), count))
    }
}

/// The UTF-8 bytes of a `str`. `None` for any other object and for text with lone surrogates; no exception is set.
#[inline(always)]
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

/// The result of [`utf8`] as `&str`.
pub fn text<'a>(object: Object<'a, '_>) -> Option<&'a str> {
    // SAFETY: CPython's encoder yields valid UTF-8.
    utf8(object).map(|bytes| unsafe { std::str::from_utf8_unchecked(bytes) })
}

/// The exact type of an object, as an address. Compare it with the address of a type.
#[inline(always)]
pub fn class_of(object: Object<'_, '_>) -> *mut ffi::PyTypeObject {
    // SAFETY: a live object has a type.
    unsafe { ffi::Py_TYPE(object.as_ptr()) }
}

/// True if the exact type of `object` is `str`.
#[inline(always)]
pub fn is_exact_str(object: Object<'_, '_>) -> bool {
    ptr::eq(class_of(object), &raw const ffi::PyUnicode_Type)
}

/// True if the exact type of `object` is `int`.
#[inline(always)]
pub fn is_exact_int(object: Object<'_, '_>) -> bool {
    ptr::eq(class_of(object), &raw const ffi::PyLong_Type)
}

/// True if the exact type is `str`, `int` or `float`.
#[inline]
pub fn is_scalar(object: Object<'_, '_>) -> bool {
    is_exact_str(object) || is_exact_int(object) || ptr::eq(class_of(object), &raw const ffi::PyFloat_Type)
}

/// True if the object is a `str` or an instance of a subclass.
#[inline]
pub fn is_str(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object; only the flags of its type are read.
    unsafe { ffi::PyUnicode_Check(object.as_ptr()) != 0 }
}

/// Returns `object.__dict__`.
///
/// # Errors
///
/// The object has no `__dict__`.
pub fn own_attributes(object: Object<'_, '_>) -> Result<Owned, Failure> {
    // SAFETY: a live object, and the thread is attached; a new reference, or null with an error set if it has no dict.
    let found = unsafe { Owned::steal(ffi::PyObject_GenericGetDict(object.as_ptr(), ptr::null_mut())) };
    found.ok_or_else(|| Failure::of_error(object.py()))
}

/// Makes a `str` of UTF-8 text; `None` with an exception set.
pub fn str_of(_attached: Python<'_>, text: &[u8]) -> Option<Owned> {
    // SAFETY: text of this length, and the thread is attached; a new reference or null with an error set.
    unsafe { Owned::steal(ffi::PyUnicode_DecodeUTF8(text.as_ptr().cast(), text.len() as isize, ptr::null())) }
}

/// Makes a tuple of the values; `None` with an exception set.
pub fn tuple(_attached: Python<'_>, values: &[Object<'_, '_>]) -> Option<Owned> {
    // SAFETY: the token shows that the thread is attached. The new tuple takes over one reference for each item.
    unsafe {
        let tuple = Owned::steal(ffi::PyTuple_New(values.len() as isize))?;
        for (index, value) in values.iter().enumerate() {
            ffi::PyTuple_SetItem(tuple.as_ptr(), index as isize, Owned::of(value).into_ptr());
        }
        Some(tuple)
    }
}

/// Reads `object.name`; returns `None` and clears the exception if that raises.
#[inline]
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

/// The address of an attribute of the object's class; null if the class has none of this name.
#[inline]
pub fn of_class(object: Object<'_, '_>, name: Object<'_, '_>) -> *mut PyObject {
    unsafe extern "C" {
        fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
    }
    // SAFETY: a live type and `str`, and the thread is attached; the result is borrowed, and only its address is used.
    unsafe { _PyType_Lookup(class_of(object), name.as_ptr()) }
}

/// A new reference to `None`, which CPython expects from a method without a result.
#[inline]
pub fn none(_attached: Python<'_>) -> *mut PyObject {
    // SAFETY: `None` is always live, and the token shows that the thread is attached.
    unsafe {
        let object = ffi::Py_None();
        ffi::Py_INCREF(object);
        object
    }
}

/// A new reference to `True` or `False` for CPython.
#[inline]
pub fn truth(_attached: Python<'_>, value: bool) -> *mut PyObject {
    // SAFETY: both objects are never freed, and the token shows that the thread is attached.
    unsafe {
        let object = if value { ffi::Py_True() } else { ffi::Py_False() };
        ffi::Py_INCREF(object);
        object
    }
}

/// A reference to `False`.
pub fn false_value(py: Python<'_>) -> Owned {
    Owned::of(PyBool::new(py, false).as_any())
}

/// True if a Python exception is set.
pub fn has_error(_attached: Python<'_>) -> bool {
    // SAFETY: the token shows that the thread is attached.
    unsafe { !ffi::PyErr_Occurred().is_null() }
}

/// Clears the Python exception that is set, if any.
pub fn clear_error(_attached: Python<'_>) {
    // SAFETY: the token shows that the thread is attached.
    unsafe { ffi::PyErr_Clear() }
}

/// Saves the Python exception that is set, and restores it when dropped.
pub struct SavedError<'py> {
    kind: *mut PyObject,
    value: *mut PyObject,
    traceback: *mut PyObject,
    _attached: Python<'py>,
}

impl<'py> SavedError<'py> {
    /// Takes the current exception, if there is one.
    pub fn take(py: Python<'py>) -> Self {
        let mut kept =
            Self { kind: ptr::null_mut(), value: ptr::null_mut(), traceback: ptr::null_mut(), _attached: py };
        // SAFETY: three out-pointers of our own. The function is deprecated since 3.12, but present in every supported
        // version.
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Fetch(&mut kept.kind, &mut kept.value, &mut kept.traceback);
        }
        kept
    }
}

impl Drop for SavedError<'_> {
    fn drop(&mut self) {
        // SAFETY: returns the three references from `take`; null restores "no error".
        #[allow(deprecated)]
        unsafe {
            ffi::PyErr_Restore(self.kind, self.value, self.traceback);
        }
    }
}

/// The object and the arguments of a method called by CPython.
///
/// # Safety
///
/// The thread is attached for `'a` and `'py`. `object` is live for `'a`, and the other arguments meet the contract of
/// [`Call::new`].
#[inline(always)]
pub unsafe fn received<'a, 'py>(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> (Object<'a, 'py>, Call<'a, 'py>) {
    // SAFETY: the caller ensures that the thread is attached and the objects are live as long as the result.
    unsafe {
        let py = Python::assume_attached();
        std::hint::assert_unchecked(!object.is_null());
        (Borrowed::from_ptr(py, object), Call::new(py, arguments, count, keywords))
    }
}

/// True if the object is an exact `list`.
#[inline]
pub fn is_exact_list(object: Object<'_, '_>) -> bool {
    ptr::eq(class_of(object), &raw const ffi::PyList_Type)
}

/// True if the object is an exact `list` without items.
pub fn is_empty_list(object: Object<'_, '_>) -> bool {
    // SAFETY: the exact type is checked before the size is read.
    is_exact_list(object) && unsafe { ffi::PyList_GET_SIZE(object.as_ptr()) } == 0
}

/// True if an exact `str` has the text of `name`. Usually both are the same object.
#[inline]
pub fn has_text(object: Object<'_, '_>, name: &Owned) -> bool {
    if object.as_ptr() == name.as_ptr() {
        return true;
    }
    // SAFETY: two live `str`; comparing them runs no user Python code.
    is_exact_str(object) && unsafe { ffi::PyUnicode_Compare(object.as_ptr(), name.as_ptr()) } == 0
}

/// True if attributes of the object are found on itself, then on its class, without code of the class.
#[inline]
pub fn looks_up_plainly(object: Object<'_, '_>) -> bool {
    // SAFETY: a live type; only the address of a function is compared.
    unsafe {
        (*class_of(object))
            .tp_getattro
            .is_some_and(|get| get as usize == ffi::PyObject_GenericGetAttr as *const () as usize)
    }
}
