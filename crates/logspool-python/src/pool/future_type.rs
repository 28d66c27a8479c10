//! The Python face of [`super::future`]: methods and attributes of the type, and how it is made.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use logspool_pool::State;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::arguments;
use super::fast::{give, give_none};
use super::future;
use crate::object::{self, Owned};

type Arguments = *const *mut PyObject;

/// The argument `timeout`, by position or by name.
unsafe fn timeout(
    py: Python<'_>,
    method: &str,
    values: Arguments,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> PyResult<Option<f64>> {
    // SAFETY: `values` holds `count` of them and one per keyword.
    unsafe {
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) };
        if count + named > 1 {
            return Err(PyTypeError::new_err(format!(
                "{method}() takes one argument, timeout ({} given)",
                count + named
            )));
        }
        if named == 1 && object::text(ffi::PyTuple_GET_ITEM(keywords, 0)) != Some("timeout") {
            return Err(PyTypeError::new_err(format!("{method}() takes no keyword argument but timeout")));
        }
        if count + named == 0 {
            return Ok(None);
        }
        arguments::timeout(&Bound::from_borrowed_ptr(py, *values))
    }
}

unsafe extern "C" fn result(
    object: *mut PyObject,
    arguments: Arguments,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls a method; attached.
    unsafe {
        if let Some(result) = future::result_at_hand(object) {
            return result;
        }
        let py = Python::assume_attached();
        let timeout = match timeout(py, "result", arguments, count, keywords) {
            Ok(timeout) => timeout,
            Err(error) => return give(py, Err(error)),
        };
        future::result(py, object, timeout)
    }
}

unsafe extern "C" fn exception(
    object: *mut PyObject,
    arguments: Arguments,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls a method; attached.
    unsafe {
        let py = Python::assume_attached();
        let found = timeout(py, "exception", arguments, count, keywords)
            .and_then(|timeout| future::exception(py, object, timeout));
        give(py, found)
    }
}

unsafe extern "C" fn done(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as CPython calls a method; attached.
    unsafe { object::truth(future::state(object).is_done()) }
}

unsafe extern "C" fn running(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { object::truth(future::state(object) == State::Running) }
}

unsafe extern "C" fn cancelled(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { object::truth(future::state(object).is_cancelled()) }
}

unsafe extern "C" fn cancel(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { object::truth(future::cancel(object)) }
}

unsafe extern "C" fn add_done_callback(object: *mut PyObject, callback: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        let added = future::add_done_callback(py, object, callback);
        give_none(py, added)
    }
}

unsafe extern "C" fn set_running_or_notify_cancel(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        match future::state(object) {
            State::Pending | State::Cancelled => object::truth(future::start(object)),
            other => {
                let message = format!("Future in unexpected state: {}", future::name(other));
                give(Python::assume_attached(), Err(PyRuntimeError::new_err(message)))
            }
        }
    }
}

unsafe extern "C" fn set_result(object: *mut PyObject, result: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { set(object, Owned::borrow(result), false) }
}

unsafe extern "C" fn set_exception(object: *mut PyObject, exception: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { set(object, Owned::borrow(exception), true) }
}

unsafe fn set(object: *mut PyObject, value: Owned, failed: bool) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        give_none(py, future::set(py, object, value, failed))
    }
}

unsafe extern "C" fn snapshot(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let py = Python::assume_attached();
        give(py, future::snapshot(py, object))
    }
}

unsafe extern "C" fn init(_object: *mut PyObject, _arguments: *mut PyObject, _keywords: *mut PyObject) -> c_int {
    // The base's would set attributes that are descriptors here.
    0
}

unsafe extern "C" fn get_state(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: as above; the name is a plain C string.
    unsafe { ffi::PyUnicode_InternFromString(future::c_name(future::state(object)).as_ptr()) }
}

macro_rules! getter {
    ($name:ident, $get:path) => {
        unsafe extern "C" fn $name(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
            // SAFETY: as CPython calls a getter; attached.
            unsafe {
                let py = Python::assume_attached();
                give(py, $get(py, object))
            }
        }
    };
}

getter!(get_condition, future::condition);
getter!(get_waiters, future::waiters);
getter!(get_callbacks, future::callbacks);
getter!(get_result, future::kept_result);
getter!(get_exception, future::kept_exception);

const fn fast(name: &'static CStr, function: super::fast::Function, doc: &'static CStr) -> ffi::PyMethodDef {
    ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: doc.as_ptr(),
    }
}

/// A method that takes no keywords.
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

/// An attribute that cannot be set.
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

/// What a native type adds to its base, a class in Python or a type made in this way. Each table ends with zeros.
pub struct Addition {
    /// With the module.
    pub name: &'static CStr,
    pub doc: &'static CStr,
    /// Of an object, the base's fields included.
    pub size: c_int,
    pub flags: std::ffi::c_ulong,
    pub members: Vec<ffi::PyMemberDef>,
    pub methods: Vec<ffi::PyMethodDef>,
    pub attributes: Vec<ffi::PyGetSetDef>,
    /// In the place of the base's.
    pub init: Option<ffi::initproc>,
}

/// Makes a type. Called once for each.
///
/// # Errors
///
/// CPython cannot make it.
pub fn derive<'py>(base: &Bound<'py, PyAny>, addition: Addition) -> PyResult<Bound<'py, PyType>> {
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
    // SAFETY: the definitions live for good; attached.
    unsafe {
        let made = ffi::PyType_FromSpecWithBases(&mut spec, base.as_ptr());
        Ok(Bound::from_owned_ptr_or_err(base.py(), made)?.cast_into_unchecked())
    }
}

/// Makes the type, with `concurrent.futures` imported by then.
fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let (base, size) = future::connect(py)?;
    derive(
        &base,
        Addition {
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
pub fn class(py: Python<'_>) -> PyResult<&'static Owned> {
    if let Some(class) = CLASS.get() {
        return Ok(class);
    }
    let made = make(py)?;
    // SAFETY: a live object, attached.
    Ok(CLASS.get_or_init(|| unsafe { Owned::borrow(made.as_ptr()) }))
}
