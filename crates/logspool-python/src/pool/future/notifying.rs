//! Notifies the standard library's waiters, and calls the callbacks, when a future ends.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::fields::{FutureRef, object_in};
use super::library::library;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Object, Owned};
use crate::pool::completions::Completions;

/// Reports the current error to `sys.unraisablehook`.
fn write_unraisable(object: Object<'_, '_>) {
    // SAFETY: a live object, whose token shows that the thread is attached.
    unsafe { ffi::PyErr_WriteUnraisable(object.as_ptr()) }
}

fn interned(_attached: Python<'_>, name: &CStr) -> Option<Owned> {
    // SAFETY: a C string, and the token shows that the thread is attached; a new reference or null with an error set.
    unsafe { Owned::steal(ffi::PyUnicode_InternFromString(name.as_ptr())) }
}

/// Notifies `wait` and `as_completed` of the standard library. The caller holds the future's condition, if the future
/// has one.
pub(super) fn notify_waiters(future: FutureRef<'_, '_>, how: &CStr) {
    let (py, object) = (future.py(), future.object());
    let Some(waiters) = object_in(py, &future.fields().waiters) else { return };
    // The list is copied, because a waiter removes itself from the list.
    // SAFETY: a live object whose type CPython checks; a new reference or null with an error set.
    let waiters = unsafe { Owned::steal(ffi::PyList_AsTuple(waiters.as_ptr())) };
    let (Some(waiters), Some(how)) = (waiters, interned(py, how)) else { return write_unraisable(object) };
    for waiter in object::tuple_items(waiters.bind(py)).unwrap_or(&[]) {
        if leaving::method_of_one(*waiter, &how, object).is_none() {
            write_unraisable(*waiter);
        }
    }
}

/// Notifies the waiters of a cancelled job, once.
pub(super) fn notify_cancelled(future: FutureRef<'_, '_>) {
    let (py, fields) = (future.py(), future.fields());
    let condition = object_in(py, &fields.condition);
    if let Some(condition) = &condition {
        call_method(py, condition, c"acquire");
    }
    if fields.promise.note_waiters_notified() {
        notify_waiters(future, c"add_cancelled");
    }
    if let Some(condition) = &condition {
        call_method(py, condition, c"release");
    }
}

/// Calls `object.name()`. Reports an exception to `sys.unraisablehook`.
pub(super) fn call_method(py: Python<'_>, object: &Owned, name: &CStr) {
    let object = object.bind(py);
    if interned(py, name).and_then(|name| leaving::method(object, &name)).is_none() {
        write_unraisable(object);
    }
}

/// Calls the callbacks of a future. `callbacks` is one callback, or a list to which no other thread has a reference.
pub(super) fn call_back(future: FutureRef<'_, '_>, callbacks: Object<'_, '_>) {
    match callbacks.cast_exact::<PyList>() {
        Ok(many) => many.iter().for_each(|callback| call_one_back(future, callback.as_borrowed())),
        Err(_) => call_one_back(future, callbacks),
    }
}

/// Calls a callback. An exception of any class is logged, so that the worker can run its other jobs.
fn call_one_back(future: FutureRef<'_, '_>, callback: Object<'_, '_>) {
    if let Err(error) = call(future, callback) {
        log(future, &error);
    }
}

/// Calls a callback of a future that has ended.
fn call(future: FutureRef<'_, '_>, callback: Object<'_, '_>) -> PyResult<()> {
    let object = future.object();
    if let Ok(completions) = callback.cast_exact::<Completions>() {
        completions.get().add(object.to_owned().unbind());
        return Ok(());
    }
    leaving::call_with(callback, object).map(drop).ok_or_else(|| PyErr::fetch(object.py()))
}

/// Logs the exception of a callback, as the standard library does.
fn log(future: FutureRef<'_, '_>, error: &PyErr) {
    let py = future.py();
    let logger = library().logger.bind(py);
    let keywords = PyDict::new(py);
    let logged = keywords.set_item("exc_info", error.value(py)).and_then(|()| {
        logger.call_method("error", ("exception calling callback for %r", future.object()), Some(&keywords))
    });
    if let Err(error) = logged {
        error.write_unraisable(py, Some(&logger));
    }
}

/// Calls `callback` when the future ends, or now if the future has ended already.
///
/// # Errors
///
/// An exception of the callback that is no `Exception`, such as `KeyboardInterrupt`, if the callback is called now.
/// `MemoryError` if there is no memory.
pub fn add_done_callback(future: FutureRef<'_, '_>, callback: Object<'_, '_>) -> PyResult<()> {
    let (py, fields) = (future.py(), future.fields());
    let mut list: Option<Owned> = None;
    loop {
        let locked = fields.promise.lock_and_watch();
        if fields.promise.state().is_done() {
            drop(locked);
            return match call(future, callback) {
                Err(error) if error.is_instance_of::<PyException>(py) => {
                    log(future, &error);
                    Ok(())
                }
                called => called,
            };
        }
        let found = fields.callbacks.load(Ordering::Relaxed);
        if found.is_null() {
            fields.callbacks.store(Owned::of(&callback).into_ptr(), Ordering::Relaxed);
            return Ok(());
        }
        // SAFETY: the object in the field is live, because the field is emptied only under the lock.
        if unsafe { ffi::PyList_CheckExact(found) } != 0 {
            // SAFETY: a live list and a live callback; the token shows that the thread is attached.
            let failed = unsafe { ffi::PyList_Append(found, callback.as_ptr()) } != 0;
            drop(locked);
            return if failed { Err(PyErr::fetch(py)) } else { Ok(()) };
        }
        if let Some(list) = list.take() {
            // The first callback, with its reference, moves into the list, and the list moves into the field.
            // SAFETY: a list that only this function has, and the live callback in the field.
            let failed = unsafe { ffi::PyList_Append(list.as_ptr(), found) } != 0;
            if failed {
                drop(locked);
                return Err(PyErr::fetch(py));
            }
            fields.callbacks.store(list.into_ptr(), Ordering::Relaxed);
            // SAFETY: the reference that the field owned; the list has its own.
            unsafe { ffi::Py_DECREF(found) };
            continue;
        }
        drop(locked);
        // The list is made without holding the lock: the allocation may start the garbage collector, which runs
        // arbitrary code.
        list = Some(Owned::of(PyList::empty(py).as_any()));
    }
}

/// The callbacks that are registered now, as a new list.
///
/// # Errors
///
/// No memory.
pub fn callbacks(future: FutureRef<'_, '_>) -> PyResult<Owned> {
    let (py, fields) = (future.py(), future.fields());
    let found = {
        let _locked = fields.promise.lock();
        object_in(py, &fields.callbacks)
    };
    let list = PyList::empty(py);
    if let Some(found) = found {
        let found = found.bind(py);
        match found.cast_exact::<PyList>() {
            Ok(many) => many.iter().try_for_each(|each| list.append(each))?,
            Err(_) => list.append(found)?,
        }
    }
    Ok(Owned::of(list.as_any()))
}
