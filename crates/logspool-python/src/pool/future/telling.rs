//! Who is told of a future's end: the standard library's waiters, and callbacks.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use pyo3::exceptions::PyException;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::fields::{fields, held};
use super::library::library;
use crate::interpreter::leaving;
use crate::interpreter::object::Owned;
use crate::pool::completions::Completions;

/// Tells `wait` and `as_completed` of the standard library. The condition is held.
pub(super) unsafe fn tell_waiters(object: *mut PyObject, how: &CStr) {
    // SAFETY: a live future, attached.
    unsafe {
        let Some(waiters) = held(&fields(object).waiters) else { return };
        // A copy: a waiter takes itself off the list.
        let Some(waiters) = Owned::steal(ffi::PyList_AsTuple(waiters.as_ptr())) else {
            return ffi::PyErr_WriteUnraisable(object);
        };
        let Some(how) = Owned::steal(ffi::PyUnicode_InternFromString(how.as_ptr())) else {
            return ffi::PyErr_WriteUnraisable(object);
        };
        for index in 0..ffi::PyTuple_GET_SIZE(waiters.as_ptr()) {
            let waiter = ffi::PyTuple_GET_ITEM(waiters.as_ptr(), index);
            if Owned::steal(leaving::method_of_one(waiter, how.as_ptr(), object)).is_none() {
                ffi::PyErr_WriteUnraisable(waiter);
            }
        }
    }
}

/// Tells those who wait for a cancelled job, once.
pub(super) unsafe fn tell_of_cancellation(object: *mut PyObject) {
    // SAFETY: a live future, attached.
    unsafe {
        let fields = fields(object);
        let condition = held(&fields.condition);
        if let Some(condition) = &condition {
            call_method(condition, c"acquire");
        }
        if fields.promise.note_told() {
            tell_waiters(object, c"add_cancelled");
        }
        if let Some(condition) = &condition {
            call_method(condition, c"release");
        }
    }
}

/// `object.name()`; what it raises goes to `sys.unraisablehook`.
pub(super) unsafe fn call_method(object: &Owned, name: &CStr) {
    // SAFETY: attached.
    unsafe {
        let done = Owned::steal(ffi::PyUnicode_InternFromString(name.as_ptr()))
            .and_then(|name| Owned::steal(leaving::method(object.as_ptr(), name.as_ptr())));
        if done.is_none() {
            ffi::PyErr_WriteUnraisable(object.as_ptr());
        }
    }
}

/// Calls the callbacks of a future, one or a list of them.
pub(super) unsafe fn call_back(object: *mut PyObject, callbacks: &Owned) {
    // SAFETY: a live future and what its field held; attached. Nobody else has the list any more.
    unsafe {
        let callbacks = callbacks.as_ptr();
        if ffi::PyList_CheckExact(callbacks) == 0 {
            return call_one_back(object, callbacks);
        }
        for index in 0..ffi::PyList_GET_SIZE(callbacks) {
            call_one_back(object, ffi::PyList_GET_ITEM(callbacks, index));
        }
    }
}

/// Calls a callback, whose exceptions are logged whatever they are: the worker has other jobs to do.
unsafe fn call_one_back(object: *mut PyObject, callback: *mut PyObject) {
    // SAFETY: as the caller says.
    unsafe {
        let py = Python::assume_attached();
        if let Err(error) = call(py, object, callback) {
            log(py, object, &error);
        }
    }
}

/// Calls a callback of a future that has ended.
unsafe fn call(py: Python<'_>, object: *mut PyObject, callback: *mut PyObject) -> PyResult<()> {
    // SAFETY: live objects, attached.
    unsafe {
        if let Ok(completions) = Borrowed::from_ptr(py, callback).cast_exact::<Completions>() {
            completions.get().add(Bound::from_borrowed_ptr(py, object).unbind());
            return Ok(());
        }
        Owned::steal(leaving::call_with(callback, object)).map(drop).ok_or_else(|| PyErr::fetch(py))
    }
}

/// Logs what a callback raised, as the standard library does it.
unsafe fn log(py: Python<'_>, object: *mut PyObject, error: &PyErr) {
    // SAFETY: live objects, attached.
    unsafe {
        let logger = Bound::from_borrowed_ptr(py, library().logger.as_ptr());
        let future = Bound::from_borrowed_ptr(py, object);
        let keywords = pyo3::types::PyDict::new(py);
        let logged = keywords
            .set_item("exc_info", error.value(py))
            .and_then(|()| logger.call_method("error", ("exception calling callback for %r", future), Some(&keywords)));
        if let Err(error) = logged {
            error.write_unraisable(py, Some(&logger));
        }
    }
}

/// Calls `callback` at the end, or now where that was already.
///
/// # Errors
///
/// What is no `Exception`, where it is called now: Ctrl-C is this thread's. Memory is short.
pub unsafe fn add_done_callback(py: Python<'_>, object: *mut PyObject, callback: *mut PyObject) -> PyResult<()> {
    // SAFETY: as the caller says.
    unsafe {
        let fields = fields(object);
        let mut list: Option<Owned> = None;
        loop {
            let locked = fields.promise.lock(true);
            if fields.promise.state().is_done() {
                drop(locked);
                return match call(py, object, callback) {
                    Err(error) if error.is_instance_of::<PyException>(py) => {
                        log(py, object, &error);
                        Ok(())
                    }
                    called => called,
                };
            }
            let found = fields.callbacks.load(Ordering::Relaxed);
            if found.is_null() {
                fields.callbacks.store(callback, Ordering::Relaxed);
                ffi::Py_INCREF(callback);
                return Ok(());
            }
            if ffi::PyList_CheckExact(found) != 0 {
                let failed = ffi::PyList_Append(found, callback) != 0;
                drop(locked);
                return if failed { Err(PyErr::fetch(py)) } else { Ok(()) };
            }
            if let Some(list) = list.take() {
                // The first callback and its reference go into the list, the list into the field.
                let failed = ffi::PyList_Append(list.as_ptr(), found) != 0;
                if failed {
                    drop(locked);
                    return Err(PyErr::fetch(py));
                }
                fields.callbacks.store(list.as_ptr(), Ordering::Relaxed);
                std::mem::forget(list);
                ffi::Py_DECREF(found);
                continue;
            }
            drop(locked);
            // Made without the lock: an allocation may collect garbage and run anything.
            list = Some(Owned::steal(ffi::PyList_New(0)).ok_or_else(|| PyErr::fetch(py))?);
        }
    }
}

/// The callbacks so far, as a new list.
pub unsafe fn callbacks(py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe {
        let fields = fields(object);
        let found = {
            let _locked = fields.promise.lock(false);
            held(&fields.callbacks)
        };
        let list = pyo3::types::PyList::empty(py);
        if let Some(found) = found {
            let found = Bound::from_borrowed_ptr(py, found.as_ptr());
            match found.cast_exact::<pyo3::types::PyList>() {
                Ok(many) => many.iter().try_for_each(|each| list.append(each))?,
                Err(_) => list.append(found)?,
            }
        }
        Ok(Owned::of(list.as_any()))
    }
}
