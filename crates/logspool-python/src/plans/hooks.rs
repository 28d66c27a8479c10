//! Sees every attribute set or deleted on loggers, handlers, formatters and styles that plans depend on.
//!
//! Stop on the line: beside *capture*. `config.py`, `assertLogs` and users assign `logger.handlers`,
//! `handler.level`, `formatter.datefmt` past all setters. `install()` gives the classes a `__setattr__` and a
//! `__delattr__` that move the epoch when such an assignment matters, and then do what `object`'s do. Reading stays
//! as fast as it was.

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::interpreter::failure::passed;
use crate::interpreter::object;
use crate::options;
use crate::plans::watched::{Effect, effect, make_stale, watched};
use crate::plans::{adoption, table};

/// `__setattr__(self, name, value)`.
///
/// # Safety
///
/// Called by CPython as a `METH_FASTCALL` method.
pub unsafe extern "C" fn set_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    if count != 2 {
        // SAFETY: attached.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"__setattr__ takes a name and a value".as_ptr()) };
        return std::ptr::null_mut();
    }
    // SAFETY: two arguments.
    unsafe { change(object, *arguments, *arguments.add(1)) }
}

/// `__delattr__(self, name)`.
///
/// # Safety
///
/// Called by CPython as a `METH_FASTCALL` method.
pub unsafe extern "C" fn delete_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    if count != 1 {
        // SAFETY: attached.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_TypeError, c"__delattr__ takes a name".as_ptr()) };
        return std::ptr::null_mut();
    }
    // SAFETY: one argument; a null value deletes.
    unsafe { change(object, *arguments, std::ptr::null_mut()) }
}

unsafe fn change(object: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    let watched = watched(object);
    let effect = watched.as_ref().map_or(Effect::Nothing, |watched| effect(watched, object, name));
    let watched = watched.filter(|_| effect != Effect::Nothing);
    if let Some(watched) = &watched {
        // SAFETY: attached; live objects.
        if !unsafe { passed(before(object, name, value)) } {
            return std::ptr::null_mut();
        }
        make_stale(watched, effect);
    }
    // SAFETY: live objects; null deletes.
    if unsafe { ffi::PyObject_GenericSetAttr(object, name, value) } != 0 {
        return std::ptr::null_mut();
    }
    if let Some(watched) = &watched {
        // Once more: on free-threaded builds a plan may have been made between the first and the assignment.
        make_stale(watched, effect);
        if matches!(effect, Effect::Release | Effect::All) {
            // SAFETY: attached.
            unsafe { table::forget_all() };
        }
    }
    object::none()
}

/// A stream that is exchanged gets what was queued for it first, and its descriptor is let go.
unsafe fn before(object: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> PyResult<()> {
    // SAFETY: live objects, attached.
    unsafe {
        if ffi::PyUnicode_Check(name) == 0 || object::text(name) != Some("stream") {
            return Ok(());
        }
        let Some(state) = adoption::known(object) else { return Ok(()) };
        if let adoption::Verdict::Adopted(adoption) = &state.verdict
            && adoption.stream.text != value
            && state.open_sink().is_some()
        {
            let _error = object::ErrorKept::take();
            return adoption::release(Python::assume_attached(), object, options::shutdown_timeout());
        }
    }
    Ok(())
}
