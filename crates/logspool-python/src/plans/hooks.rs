//! Intercepts every attribute set or deleted on the loggers, handlers, formatters and styles that plans depend on.
//!
//! Pipeline stage: outside the path of a record, next to *capture* (see ARCHITECTURE.md). `config.py`, `assertLogs` and
//! users assign `logger.handlers`, `handler.level` and `formatter.datefmt` without any setter. So `install()` gives the
//! classes a `__setattr__` and a `__delattr__`. These methods begin a new epoch if the assignment matters, and then do
//! the same as the methods of `object`. Reading an attribute costs the same as without the hooks.

use std::ptr;

use logspool::pipeline;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::interpreter::failure::passed;
use crate::interpreter::object::{self, Object};

use crate::plans::watched::{Effect, effect, make_stale, watched};
use crate::plans::{handler_states, table};

/// `__setattr__(self, name, value)`.
///
/// # Safety
///
/// Call only as CPython calls a `METH_FASTCALL` method: from an attached thread.
pub unsafe extern "C" fn set_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: CPython calls this from an attached thread, with `count` live objects.
    let (object, call) = unsafe { object::received(object, arguments, count, ptr::null_mut()) };
    match call.positional() {
        [name, value] => change(object, *name, Some(*value)),
        _ => refused(call.py(), "__setattr__ takes a name and a value"),
    }
}

/// `__delattr__(self, name)`.
///
/// # Safety
///
/// Call only as CPython calls a `METH_FASTCALL` method: from an attached thread.
pub unsafe extern "C" fn delete_attribute(
    object: *mut PyObject,
    arguments: *mut *mut PyObject,
    count: ffi::Py_ssize_t,
) -> *mut PyObject {
    // SAFETY: CPython calls this from an attached thread, with `count` live objects.
    let (object, call) = unsafe { object::received(object, arguments, count, ptr::null_mut()) };
    match call.only() {
        Some(name) => change(object, name, None),
        None => refused(call.py(), "__delattr__ takes a name"),
    }
}

fn refused(py: Python<'_>, why: &'static str) -> *mut PyObject {
    PyTypeError::new_err(why).restore(py);
    ptr::null_mut()
}

/// Sets the attribute, or deletes it if there is no value.
fn change(object: Object<'_, '_>, name: Object<'_, '_>, value: Option<Object<'_, '_>>) -> *mut PyObject {
    let py = object.py();
    let watched = watched(object);
    let effect = watched.as_ref().map_or(Effect::Nothing, |watched| effect(watched, object, name));
    let watched = watched.filter(|_| effect != Effect::Nothing);
    let value = value.map_or(ptr::null_mut(), |value| value.as_ptr());
    if let Some(watched) = &watched {
        if !passed(py, before(object, name, value)) {
            return ptr::null_mut();
        }
        make_stale(watched, effect);
    }
    // SAFETY: live objects, and the thread is attached; a null value deletes the attribute.
    if unsafe { ffi::PyObject_GenericSetAttr(object.as_ptr(), name.as_ptr(), value) } != 0 {
        return ptr::null_mut();
    }
    if let Some(watched) = &watched {
        // Called a second time: on free-threaded builds another thread may have made a plan between the first call and
        // the assignment.
        make_stale(watched, effect);
        if matches!(effect, Effect::Release | Effect::All) {
            table::forget_all(py);
        }
    }
    object::none(py)
}

/// Called before an attribute is replaced by the object at the address `value`. If the attribute is a handler's
/// `stream`, writes the records queued for the old stream and closes the sink's descriptor.
fn before(object: Object<'_, '_>, name: Object<'_, '_>, value: *mut PyObject) -> PyResult<()> {
    if object::text(name) != Some("stream") {
        return Ok(());
    }
    let Some(state) = handler_states::known(&object) else { return Ok(()) };
    if let handler_states::HandlerVerdict::Adopted(adoption) = &state.verdict
        && !adoption.stream.text.is_null()
        && adoption.stream.text != value
        && state.open_sink().is_some()
    {
        let _error = object::SavedError::take(object.py());
        return handler_states::release(&object, pipeline::shutdown_timeout());
    }
    Ok(())
}
