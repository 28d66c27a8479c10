//! The native methods of classes of Python code, and the functions that their bound methods name.
//!
//! CPython calls a method descriptor (`PyDescr_NewMethod`) faster than any other object, and it binds one to a builtin
//! method. That has no `__func__`, and no `weakref.WeakMethod` can be made of it, as libraries such as blinker make one
//! of each receiver. A type of this crate in the class would cost each call 2.7 ns. So the class has CPython's
//! descriptor, and [`bind_descriptor`] replaces the function by which CPython binds one. For a descriptor of this
//! module it returns the same as a Python function: a `types.MethodType`, with a [`NativeFunction`] as its `__func__`.
//! Every other descriptor is bound as before. A call `log.info(...)` binds nothing.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::interpreter::object::Owned;

/// A `METH_FASTCALL | METH_KEYWORDS` function.
pub type WithKeywords =
    unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, ffi::Py_ssize_t, *mut PyObject) -> *mut PyObject;

/// What a native method is made of.
pub struct MethodSpec {
    /// The method's name.
    pub name: &'static CStr,
    /// The docstring, which begins with the signature as that of a builtin function.
    pub doc: &'static CStr,
    /// The code.
    pub function: WithKeywords,
}

/// The function of a native method.
#[pyclass(frozen, weakref, module = "logspool._native")]
struct NativeFunction {
    /// CPython reads this field at the offset that [`make_callable`] gives it.
    vectorcall: ffi::vectorcallfunc,
    function: WithKeywords,
    class: Py<PyType>,
    name: &'static str,
    doc: &'static str,
}

#[pymethods]
impl NativeFunction {
    #[getter(__name__)]
    fn name(&self) -> &'static str {
        self.name
    }

    #[getter(__qualname__)]
    fn qualified_name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{}.{}", self.class.bind(py).qualname()?, self.name))
    }

    #[getter(__module__)]
    fn module<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.class.bind(py).getattr("__module__")
    }

    #[getter(__objclass__)]
    fn class(&self, py: Python<'_>) -> Py<PyType> {
        self.class.clone_ref(py)
    }

    /// The docstring without the signature.
    #[getter(__doc__)]
    fn doc(&self) -> &'static str {
        self.doc.split_once(END_OF_SIGNATURE).map_or(self.doc, |(_, text)| text)
    }

    /// The signature, which the docstring begins with.
    #[getter(__text_signature__)]
    fn signature(&self) -> Option<String> {
        let (head, _) = self.doc.split_once(END_OF_SIGNATURE)?;
        Some(format!("{})", head.strip_prefix(self.name)?))
    }

    /// Bind the function to an object, as a function of Python code.
    fn __get__(slf: Bound<'_, Self>, object: Bound<'_, PyAny>, _class: Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if object.is_none() {
            return Ok(slf.into_any().unbind());
        }
        // SAFETY: two live objects of an attached thread; a new reference or null with an error set.
        unsafe {
            Bound::from_owned_ptr_or_err(slf.py(), PyMethod_New(slf.as_ptr(), object.as_ptr())).map(Bound::unbind)
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<function {} at {:p}>", slf.get().qualified_name(slf.py())?, slf.as_ptr()))
    }

    /// A pickle finds the function by its name.
    fn __reduce__(&self, py: Python<'_>) -> PyResult<String> {
        self.qualified_name(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)
    }
}

/// Follows the last argument of the signature in the docstring of a builtin function. The text comes after it.
const END_OF_SIGNATURE: &str = ")\n--\n\n";

unsafe extern "C" {
    // Declared here because PyO3 does not declare it.
    fn PyMethod_New(function: *mut PyObject, object: *mut PyObject) -> *mut PyObject;
}

/// The definition of a descriptor, and the function of its bound methods.
#[repr(C)]
struct Definition {
    method: ffi::PyMethodDef,
    function: AtomicPtr<PyObject>,
}

/// Number of definitions that have a function. Chosen: there are some 50 methods of `logging`; a wrapper class of
/// structlog has six. The methods of further classes bind as builtin ones.
const MAX_DEFINITIONS: usize = 256;

struct Definitions(UnsafeCell<[MaybeUninit<Definition>; MAX_DEFINITIONS]>);

// SAFETY: an entry is written once, by the caller that has taken its number, before a descriptor refers to it.
unsafe impl Sync for Definitions {}

static DEFINITIONS: Definitions = Definitions(UnsafeCell::new([const { MaybeUninit::uninit() }; MAX_DEFINITIONS]));

/// Number of entries that callers have taken. The atomics of this file are outside the crate's `queue` module: they
/// change when a method is made.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Makes a native method of `class`.
///
/// # Errors
///
/// There is not enough memory.
pub fn new<'py>(class: &Bound<'py, PyType>, spec: &MethodSpec) -> PyResult<Bound<'py, PyAny>> {
    let method = ffi::PyMethodDef {
        ml_name: spec.name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: spec.function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: spec.doc.as_ptr(),
    };
    let number = TAKEN.fetch_add(1, Relaxed);
    if number >= MAX_DEFINITIONS {
        return descriptor(class, Box::leak(Box::new(method)));
    }
    replace_binding(class.py())?;
    let function = AtomicPtr::new(function(class, spec)?.into_ptr());
    // SAFETY: no other caller has this number, and no descriptor refers to the entry yet. It is never freed.
    let method = unsafe {
        let entry = DEFINITIONS.0.get().cast::<Definition>().add(number);
        entry.write(Definition { method, function });
        &raw mut (*entry).method
    };
    descriptor(class, method)
}

/// Makes a method descriptor. The definition must never be freed.
pub fn descriptor<'py>(class: &Bound<'py, PyType>, definition: *mut ffi::PyMethodDef) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: a live class and a definition that is never freed; a new reference or null with an error set.
    unsafe { Bound::from_owned_ptr_or_err(class.py(), ffi::PyDescr_NewMethod(class.as_type_ptr(), definition)) }
}

/// The beginning of CPython's struct of a method descriptor.
#[repr(C)]
struct MethodDescriptor {
    head: PyObject,
    class: *mut ffi::PyTypeObject,
    name: *mut PyObject,
    qualified_name: *mut PyObject,
    definition: *mut ffi::PyMethodDef,
}

/// The function by which CPython bound method descriptors before.
static STOCK_BINDING: OnceLock<ffi::descrgetfunc> = OnceLock::new();

/// Replaces the function by which CPython binds method descriptors, once.
fn replace_binding(_attached: Python<'_>) -> PyResult<()> {
    if STOCK_BINDING.get().is_some() {
        return Ok(());
    }
    // SAFETY: a static type of CPython. Its slot is a pointer that other threads read at any time, so it is stored
    // atomically.
    unsafe {
        let slot = &raw mut ffi::PyMethodDescr_Type.tp_descr_get;
        let stock = (*slot).ok_or_else(|| PyRuntimeError::new_err("CPython does not bind method descriptors"))?;
        if STOCK_BINDING.set(stock).is_ok() {
            (*slot.cast::<AtomicPtr<c_void>>()).store(bind_descriptor as *mut c_void, Relaxed);
        }
    }
    Ok(())
}

/// Binds a method descriptor.
///
/// # Safety
///
/// Call only as CPython calls `tp_descr_get` of method descriptors: from an attached thread.
unsafe extern "C" fn bind_descriptor(
    descriptor: *mut PyObject,
    object: *mut PyObject,
    class: *mut PyObject,
) -> *mut PyObject {
    let stock = STOCK_BINDING.get().expect("set before the slot");
    // SAFETY: a live method descriptor. Its definition is in `DEFINITIONS` only if `new` has made it; the entry was
    // complete before. `stock` checks the class of the object, and returns a new reference or null with an error set.
    unsafe {
        let descriptor_fields = descriptor.cast::<MethodDescriptor>();
        let definition = (*descriptor_fields).definition;
        let offset = (definition as usize).wrapping_sub(DEFINITIONS.0.get() as usize);
        if offset >= size_of_val(&DEFINITIONS)
            || object.is_null()
            || ffi::PyObject_TypeCheck(object, (*descriptor_fields).class) == 0
        {
            return stock(descriptor, object, class);
        }
        PyMethod_New((*definition.cast::<Definition>()).function.load(Relaxed), object)
    }
}

/// Makes the function that bound methods name.
fn function(class: &Bound<'_, PyType>, spec: &MethodSpec) -> PyResult<Owned> {
    let made = Bound::new(
        class.py(),
        NativeFunction {
            vectorcall: call,
            function: spec.function,
            class: class.clone().unbind(),
            name: spec.name.to_str().expect("an ASCII literal"),
            doc: spec.doc.to_str().expect("an ASCII literal"),
        },
    )?;
    make_callable(&made);
    Ok(Owned::of(made.as_any()))
}

/// Lets CPython call the functions without making a tuple of the arguments.
fn make_callable(function: &Bound<'_, NativeFunction>) {
    let fields = std::ptr::from_ref(function.get()) as usize;
    let offset = fields - function.as_ptr() as usize + offset_of!(NativeFunction, vectorcall);
    // SAFETY: the type of these functions, which only this module makes. Before the first call the slots of each
    // function get the same values.
    unsafe {
        let class = ffi::Py_TYPE(function.as_ptr());
        (*class).tp_vectorcall_offset = offset as ffi::Py_ssize_t;
        (*class).tp_call = Some(ffi::PyVectorcall_Call);
        let flags = (&raw mut (*class).tp_flags).cast::<AtomicUsize>();
        (*flags).fetch_or(ffi::Py_TPFLAGS_HAVE_VECTORCALL as usize, Relaxed);
    }
}

/// Calls a [`NativeFunction`]: `arguments` begins with the object.
///
/// # Safety
///
/// Call only as CPython calls a vectorcall function of this type: from an attached thread.
unsafe extern "C" fn call(
    function: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: CPython calls this from an attached thread, with a function of this type and `count` live arguments.
    unsafe {
        let py = Python::assume_attached();
        let function = Borrowed::from_ptr(py, function).cast_unchecked::<NativeFunction>();
        let function = function.get();
        let count = ffi::PyVectorcall_NARGS(count);
        if count > 0 && ffi::PyObject_TypeCheck(*arguments, function.class.as_ptr().cast()) != 0 {
            return (function.function)(*arguments, arguments.add(1), count - 1, keywords);
        }
        refused(py, function)
    }
}

/// Raises the error for a call without an object of the class.
#[cold]
fn refused(py: Python<'_>, function: &NativeFunction) -> *mut PyObject {
    let class = &function.class;
    let name = function.qualified_name(py).unwrap_or_else(|_| function.name.to_owned());
    PyTypeError::new_err(format!("{name}() needs an object of {class} as its first argument")).restore(py);
    ptr::null_mut()
}
