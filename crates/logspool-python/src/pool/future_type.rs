//! The Python type of [`super::future`]: its methods and attributes, and its construction.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use logspool_pool::JobState;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::arguments;
use super::fast::{into_pointer, none_into_pointer};
use super::future::{self, Ending, FutureHandle, FutureRef};
use crate::interpreter::object::{self, Call, Object, Owned};

/// Reads the argument `timeout`, given by position or by name.
fn timeout(method: &str, call: Call<'_, '_>) -> PyResult<Option<f64>> {
    if call.values().len() > 1 {
        return Err(PyTypeError::new_err(format!(
            "{method}() takes one argument, timeout ({} given)",
            call.values().len()
        )));
    }
    if call.named().any(|(name, _)| object::text(name) != Some("timeout")) {
        return Err(PyTypeError::new_err(format!("{method}() takes no keyword argument but timeout")));
    }
    call.values().first().map_or(Ok(None), |value| arguments::timeout(value))
}

/// Defines methods with arguments. Each row has the action that the method performs on its future and the call.
macro_rules! fast_methods {
    ($($name:ident: $act:expr;)*) => {
        $(
            /// # Safety
            ///
            /// Called by CPython as a `METH_FASTCALL | METH_KEYWORDS` method of a future, in an attached thread.
            unsafe extern "C" fn $name(
                object: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: CPython calls it in an attached thread with live objects; the descriptor checked that this is
                // a future.
                let (future, call) = unsafe {
                    let (object, call) = object::received(object, arguments, count, keywords);
                    (FutureRef::of(object), call)
                };
                into_pointer(call.py(), $act(future, call))
            }
        )*
    };
}

fast_methods! {
    result: |future, call| match future::result_at_hand(future) {
        Some(result) => Ok(result),
        None => timeout("result", call).and_then(|timeout| future::result(future, timeout)),
    };
    exception: |future, call| timeout("exception", call).and_then(|timeout| future::exception(future, timeout));
}

/// Defines methods with at most one argument. Each row has the action that the method performs on its future and the
/// argument.
macro_rules! plain_methods {
    ($($name:ident: $act:expr;)*) => {
        $(
            /// # Safety
            ///
            /// Called by CPython as a `METH_NOARGS` or `METH_O` method of a future, in an attached thread.
            unsafe extern "C" fn $name(object: *mut PyObject, argument: *mut PyObject) -> *mut PyObject {
                // SAFETY: CPython calls it in an attached thread with live objects; the descriptor checked that this is
                // a future. The argument is null for methods without one.
                let (future, argument) = unsafe {
                    let py = Python::assume_attached();
                    let future = FutureRef::of(Borrowed::from_ptr(py, object));
                    (future, Borrowed::from_ptr_or_opt(py, argument))
                };
                let act: fn(FutureRef<'_, '_>, Option<Object<'_, '_>>) -> *mut PyObject = $act;
                act(future, argument)
            }
        )*
    };
}

plain_methods! {
    done: |future, _| object::truth(future.py(), future::state(future).is_done());
    running: |future, _| object::truth(future.py(), future::state(future) == JobState::Running);
    cancelled: |future, _| object::truth(future.py(), future::state(future).is_cancelled());
    cancel: |future, _| object::truth(future.py(), future::cancel(future));
    add_done_callback: |future, callback| {
        none_into_pointer(future.py(), callback.map_or(Ok(()), |callback| future::add_done_callback(future, callback)))
    };
    set_running_or_notify_cancel: |future, _| match future::state(future) {
        JobState::Pending | JobState::Cancelled => object::truth(future.py(), future::start(future)),
        other => {
            let message = format!("Future in unexpected state: {}", future::name(other));
            into_pointer(future.py(), Err(PyRuntimeError::new_err(message)))
        }
    };
    set_result: |future, result| set(future, result, Ending::Result);
    set_exception: |future, exception| set(future, exception, Ending::Exception);
    snapshot: |future, _| into_pointer(future.py(), future::snapshot(future));
}

fn set(future: FutureRef<'_, '_>, value: Option<Object<'_, '_>>, ending: Ending) -> *mut PyObject {
    let set = value.map_or(Ok(()), |value| future::set(future, Owned::of(&value), ending));
    none_into_pointer(future.py(), set)
}

/// Replaces the `__init__` of the base class, which would assign to attributes that are descriptors here.
///
/// # Safety
///
/// No requirement: the function uses none of its arguments. It is `unsafe` only because CPython's type for such
/// functions is.
unsafe extern "C" fn init(_object: *mut PyObject, _arguments: *mut PyObject, _keywords: *mut PyObject) -> c_int {
    0
}

fn state_name(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    Ok(Owned::of(PyString::intern(future.py(), future::name(future::state(future))).as_any()))
}

/// Defines read-only attributes. Each row has the function that returns the value.
macro_rules! getters {
    ($($name:ident: $get:path;)*) => {
        $(
            /// # Safety
            ///
            /// Called by CPython as a getter of a future, in an attached thread.
            unsafe extern "C" fn $name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
                // SAFETY: CPython calls it in an attached thread with a live object; the descriptor checked that this
                // is a future.
                let future = unsafe { FutureRef::of(Borrowed::from_ptr(Python::assume_attached(), object)) };
                into_pointer(future.py(), $get(future))
            }
        )*
    };
}

getters! {
    get_state: state_name;
    get_condition: future::condition;
    get_waiters: future::waiters;
    get_callbacks: future::callbacks;
    get_result: future::kept_result;
    get_exception: future::kept_exception;
}

const fn fast(name: &'static CStr, function: super::fast::Function, doc: &'static CStr) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }
}

/// The definition of a method that takes no keyword arguments.
pub const fn plain(
    name: &'static CStr,
    function: ffi::PyCFunction,
    flags: c_int,
    doc: &'static CStr,
) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: function },
        ml_flags: flags,
        ml_doc: doc.as_ptr(),
    }
}

/// The definition of a read-only attribute.
pub const fn attribute(name: &'static CStr, get: ffi::getter) -> ffi::PyGetSetDef {
    ffi::PyGetSetDef { name: name.as_ptr(), get: Some(get), set: None, doc: ptr::null(), closure: ptr::null_mut() }
}

fn methods() -> Vec<ffi::PyMethodDef> {
    vec![
        fast(c"result", result, c"result($self, timeout=None)\n--\n\nReturn what the job returned, or raise what it raised; wait for its end, at most `timeout` seconds."),
        fast(c"exception", exception, c"exception($self, timeout=None)\n--\n\nReturn what the job raised, or None; wait for its end, at most `timeout` seconds."),
        plain(c"done", done, ffi::METH_NOARGS, c"done($self)\n--\n\nReturn True if the job was cancelled or has ended."),
        plain(c"running", running, ffi::METH_NOARGS, c"running($self)\n--\n\nReturn True if the job is being done."),
        plain(c"cancelled", cancelled, ffi::METH_NOARGS, c"cancelled($self)\n--\n\nReturn True if the job was cancelled."),
        plain(c"cancel", cancel, ffi::METH_NOARGS, c"cancel($self)\n--\n\nCancel the job if it has not begun. Return whether it is cancelled."),
        plain(c"add_done_callback", add_done_callback, ffi::METH_O, c"add_done_callback($self, fn, /)\n--\n\nCall `fn` with this future at its end; at once if that was already."),
        plain(c"set_running_or_notify_cancel", set_running_or_notify_cancel, ffi::METH_NOARGS, c"For executors: begin the job, or tell those who wait that it is cancelled."),
        plain(c"set_result", set_result, ffi::METH_O, c"For executors: end with a result."),
        plain(c"set_exception", set_exception, ffi::METH_O, c"For executors: end with an exception."),
        plain(c"_get_snapshot", snapshot, ffi::METH_NOARGS, c"(done, cancelled, result, exception), for asyncio."),
        ffi::PyMethodDef::zeroed(),
    ]
}

fn attributes() -> Vec<ffi::PyGetSetDef> {
    vec![
        attribute(c"_state", get_state),
        attribute(c"_condition", get_condition),
        attribute(c"_waiters", get_waiters),
        attribute(c"_done_callbacks", get_callbacks),
        attribute(c"_result", get_result),
        attribute(c"_exception", get_exception),
        ffi::PyGetSetDef { name: ptr::null(), get: None, set: None, doc: ptr::null(), closure: ptr::null_mut() },
    ]
}

/// The parts that a native type adds to its base, which is a Python class or another type of [`derive`]. Each table
/// ends with a zeroed entry.
pub struct TypeParts {
    /// The name of the type, with its module.
    pub name: &'static CStr,
    pub doc: &'static CStr,
    /// Size of an object in bytes, including the fields of the base.
    pub size: c_int,
    pub flags: std::ffi::c_ulong,
    pub members: Vec<ffi::PyMemberDef>,
    pub methods: Vec<ffi::PyMethodDef>,
    pub attributes: Vec<ffi::PyGetSetDef>,
    /// The function that replaces `__init__` of the base.
    pub init: Option<ffi::initproc>,
}

/// Makes a type. Called once for each type.
///
/// # Errors
///
/// The exception that CPython raised.
pub fn derive<'py>(base: &Bound<'py, PyAny>, addition: TypeParts) -> PyResult<Bound<'py, PyType>> {
    let members = Box::leak(addition.members.into_boxed_slice());
    let methods = Box::leak(addition.methods.into_boxed_slice());
    let attributes = Box::leak(addition.attributes.into_boxed_slice());
    let mut slots = vec![
        ffi::PyType_Slot { slot: ffi::Py_tp_members, pfunc: members.as_mut_ptr().cast() },
        ffi::PyType_Slot { slot: ffi::Py_tp_methods, pfunc: methods.as_mut_ptr().cast() },
        ffi::PyType_Slot { slot: ffi::Py_tp_getset, pfunc: attributes.as_mut_ptr().cast() },
        ffi::PyType_Slot { slot: ffi::Py_tp_doc, pfunc: addition.doc.as_ptr().cast_mut().cast() },
    ];
    slots.extend(addition.init.map(|init| ffi::PyType_Slot { slot: ffi::Py_tp_init, pfunc: init as *mut c_void }));
    slots.push(ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() });
    let mut spec = ffi::PyType_Spec {
        name: addition.name.as_ptr(),
        basicsize: addition.size,
        itemsize: 0,
        flags: addition.flags as _,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the definitions are leaked, and `base` shows that the thread is attached; a new reference or null.
    unsafe {
        let made = ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(base.py(), made)?.cast_into_unchecked())
    }
}

/// Makes the type of futures; imports `concurrent.futures`.
fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let (base, size) = future::connect(py)?;
    derive(
        &base,
        TypeParts {
            name: c"logspool.pool.Future",
            doc: c"The future result of a job of `logspool.pool.Pool`.",
            size,
            flags: ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_BASETYPE,
            members: future::members(),
            methods: methods(),
            attributes: attributes(),
            init: Some(init),
        },
    )
}

static CLASS: OnceLock<Owned> = OnceLock::new();

/// The type of futures, made on first use.
#[inline]
pub fn class(py: Python<'_>) -> PyResult<&'static Owned> {
    if let Some(class) = CLASS.get() {
        return Ok(class);
    }
    let made = make(py)?;
    Ok(CLASS.get_or_init(|| Owned::of(made.as_any())))
}

/// A new pending future.
///
/// # Errors
///
/// No memory, or the type cannot be made.
#[inline]
pub fn pending(py: Python<'_>) -> PyResult<FutureHandle> {
    // SAFETY: the class of `class` is the type that `make` derived for futures.
    unsafe { FutureHandle::allocate(py, class(py)?) }
}
