//! Sees every attribute set or deleted on loggers, handlers, formatters and styles that plans depend on.
//!
//! Stop on the line: beside *capture*. `config.py`, `assertLogs` and users assign `logger.handlers`,
//! `handler.level`, `formatter.datefmt` past all setters. `install()` gives the classes a `__setattr__` and a
//! `__delattr__` that move the epoch when such an assignment matters, and then do what `object`'s do. Reading stays
//! as fast as it was.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::adoption;
use crate::environment;
use crate::methods;
use crate::object;
use crate::options;
use crate::plans;

/// Addresses of the objects that plans depend on. One that died stays in: another object at its address only
/// moves the epoch needlessly.
static WATCHED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

/// Adds objects to those that plans depend on.
pub fn watch(objects: impl IntoIterator<Item = usize>) {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().extend(objects);
}

/// Forgets them all.
pub fn forget_all() {
    *WATCHED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn watched(object: *mut PyObject) -> bool {
    let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.as_ref().is_some_and(|watched| watched.contains(&(object as usize)))
}

/// What an assignment to an attribute does to the plans.
#[derive(PartialEq, Eq)]
enum Effect {
    /// Nothing that a plan looks at.
    Nothing,
    /// Plans are stale.
    Stale,
    /// Plans are stale and keep something alive that may have to go.
    Release,
}

/// Instance attributes that plans look at. Others matter only where they hide an attribute of the class.
fn effect(object: *mut PyObject, name: *mut PyObject) -> Effect {
    // SAFETY: a live object; `name` is checked to be a str.
    let text = unsafe { if ffi::PyUnicode_Check(name) == 0 { None } else { object::text(name) } };
    match text {
        Some("handlers" | "parent" | "filters" | "__class__" | "__dict__") => return Effect::Release,
        Some(
            "level" | "propagate" | "disabled" | "name" | "_cache" | "manager" | "formatter" | "stream" | "terminator"
            | "lock" | "mode" | "encoding" | "errors" | "delay" | "baseFilename" | "_closed" | "_style" | "_fmt"
            | "datefmt" | "_defaults" | "_tpl" | "maxBytes" | "backupCount" | "when" | "interval" | "utc" | "atTime"
            | "rolloverAt" | "suffix" | "extMatch" | "dayOfWeek" | "dev" | "ino" | "_builtin_open",
        ) => return Effect::Stale,
        _ => {}
    }
    unsafe extern "C" {
        fn _PyType_Lookup(class: *mut ffi::PyTypeObject, name: *mut PyObject) -> *mut PyObject;
    }
    // SAFETY: a live type and str; the result is only compared with null.
    if text.is_some() && !unsafe { _PyType_Lookup(ffi::Py_TYPE(object), name) }.is_null() {
        Effect::Stale
    } else {
        Effect::Nothing
    }
}

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
    let effect = if watched(object) { effect(object, name) } else { Effect::Nothing };
    if effect != Effect::Nothing {
        // SAFETY: attached; live objects.
        if !unsafe { methods::passed(before(object, name, value)) } {
            return std::ptr::null_mut();
        }
        environment::bump();
    }
    // SAFETY: live objects; null deletes.
    if unsafe { ffi::PyObject_GenericSetAttr(object, name, value) } != 0 {
        return std::ptr::null_mut();
    }
    if effect != Effect::Nothing {
        // Once more: on free-threaded builds a plan may have been made between the first and the assignment.
        environment::bump();
        if effect == Effect::Release {
            // SAFETY: attached.
            unsafe { plans::forget_all() };
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
