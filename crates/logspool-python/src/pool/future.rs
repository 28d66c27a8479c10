//! `logspool.pool.Future`: a `concurrent.futures.Future` whose parts are native.
//!
//! A subclass of the standard library's class with fields of its own behind those of the base. The attributes that
//! the standard library's functions touch (`_condition`, `_state`, `_waiters` and so on) are descriptors of the type,
//! made on demand: `wait`, `as_completed`, `asyncio.wrap_future` work as they are, and a future that nobody looks at
//! has none of them. The fields that hold objects are declared as members of the type, so that CPython's own
//! functions for traversal and deallocation take care of them.
//!
//! The state is the core's [`Promise`]: whoever ends a future writes the result first.

mod library;
mod telling;

use std::ffi::{CStr, c_int};
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use logspool_pool::{Promise, State};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::waiting::{self, Deadline};
use crate::leaving;
use crate::object::{self, Owned};
use library::library;
pub use telling::{add_done_callback, callbacks};
use telling::{call_back, call_method, tell_of_cancellation, tell_waiters};

/// What stands behind the fields of the base class. Zeroed memory is a pending future.
#[repr(C)]
struct Fields {
    promise: Promise,
    result: AtomicPtr<PyObject>,
    exception: AtomicPtr<PyObject>,
    /// Null, one callback, or a list of them; used under the promise's lock.
    callbacks: AtomicPtr<PyObject>,
    /// A list, once the standard library's `wait` or `as_completed` asked for it.
    waiters: AtomicPtr<PyObject>,
    /// A `threading.Condition`, once somebody asked for it.
    condition: AtomicPtr<PyObject>,
}

/// Where [`Fields`] lie in an object.
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// The fields of a future.
///
/// # Safety
///
/// `object` is a live instance of the type that `init` made.
#[inline]
unsafe fn fields<'a>(object: *mut PyObject) -> &'a Fields {
    // SAFETY: the type's basic size has room for them behind the base's fields; zeroed memory is valid.
    unsafe { &*object.byte_add(OFFSET.load(Ordering::Relaxed)).cast() }
}

/// A reference of one's own to what a field holds.
///
/// # Safety
///
/// Attached; the field is not emptied meanwhile.
unsafe fn held(field: &AtomicPtr<PyObject>) -> Option<Owned> {
    let object = field.load(Ordering::Acquire);
    // SAFETY: a field owns a reference to what it holds.
    (!object.is_null()).then(|| unsafe { Owned::borrow(object) })
}

/// Fills an empty field; gives back what could not be put there.
fn fill(field: &AtomicPtr<PyObject>, object: Owned) -> Result<(), Owned> {
    match field.compare_exchange(ptr::null_mut(), object.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
        Ok(_) => {
            // The field has the reference now.
            std::mem::forget(object);
            Ok(())
        }
        Err(_) => Err(object),
    }
}

/// A new pending future; null with an error set where memory is short.
///
/// # Safety
///
/// Attached; `class` is the type that `init` made, or derived from it.
#[inline]
pub unsafe fn allocate(class: *mut ffi::PyTypeObject) -> *mut PyObject {
    // SAFETY: a type's own function for it; the memory comes zeroed.
    unsafe { ((*class).tp_alloc.unwrap_unchecked())(class, 0) }
}

/// Begins the job of a future. False: it was cancelled, and those who wait for it are told.
///
/// # Safety
///
/// A live future; attached.
#[inline]
pub unsafe fn start(object: *mut PyObject) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        let promise = &fields(object).promise;
        if promise.start() {
            return true;
        }
        tell_of_cancellation(object);
        false
    }
}

/// Ends a future that runs with a result.
///
/// # Safety
///
/// A live future; attached.
#[inline]
pub unsafe fn finish_with(object: *mut PyObject, result: Owned) {
    // SAFETY: as the caller says.
    unsafe {
        finish(object, &fields(object).result, result);
    }
}

/// Ends a future that runs with an exception.
///
/// # Safety
///
/// A live future; attached; `exception` is an instance of `BaseException`.
pub unsafe fn fail_with(object: *mut PyObject, exception: Owned) {
    // SAFETY: as the caller says.
    unsafe {
        finish(object, &fields(object).exception, exception);
    }
}

/// Puts what a job made into its field and ends the future.
#[inline]
unsafe fn finish(object: *mut PyObject, field: &AtomicPtr<PyObject>, value: Owned) {
    // SAFETY: a live future and a field of it; attached.
    unsafe {
        // Full already: somebody else called `set_result`; the first one counts.
        if fill(field, value).is_ok() && !fields(object).promise.try_finish_unwatched() {
            end(object, State::Finished, || ());
        }
    }
}

/// Ends a pending future with an exception in a forked child, and tells nobody: the job goes on in the parent, and so
/// do those who asked to be told of its end. One that was cancelled counts as told: who would tell is the parent's, too.
///
/// # Safety
///
/// A live future; attached; `exception` is an instance of `BaseException`.
pub unsafe fn fail_after_fork(object: *mut PyObject, exception: Owned) {
    // SAFETY: as the caller says.
    unsafe {
        let fields = fields(object);
        let ends = match fields.promise.state() {
            State::Pending => fill(&fields.exception, exception).is_ok(),
            state => state == State::Cancelled,
        };
        if !ends {
            return;
        }
        // Made anew for those who ask in the child. Not dropped: threads of the parent may have been at work with them.
        fields.condition.store(ptr::null_mut(), Ordering::Relaxed);
        fields.waiters.store(ptr::null_mut(), Ordering::Relaxed);
        fields.promise.end_after_fork();
    }
}

/// Cancels a pending future. False: it has begun.
///
/// # Safety
///
/// A live future; attached.
pub unsafe fn cancel(object: *mut PyObject) -> bool {
    // SAFETY: as the caller says.
    unsafe {
        end(object, State::Cancelled, || ());
        state(object).is_cancelled()
    }
}

/// Brings a future to its end and tells all who asked to be told. False, and nothing is done, where it cannot go there.
unsafe fn end(object: *mut PyObject, to: State, store: impl FnOnce()) -> bool {
    // SAFETY: a live future, attached.
    unsafe {
        let fields = fields(object);
        let mut condition: Option<Owned> = None;
        let (ended, callbacks) = loop {
            let locked = fields.promise.lock(false);
            let found = fields.condition.load(Ordering::Acquire);
            if condition.is_none() && !found.is_null() {
                let found = Owned::borrow(found);
                drop(locked);
                // Whoever installs a waiter holds the condition: the state does not change under his eyes.
                call_method(&found, c"acquire");
                condition = Some(found);
                continue;
            }
            let may = match to {
                State::Cancelled => fields.promise.state() == State::Pending,
                _ => !fields.promise.state().is_done(),
            };
            if may {
                store();
            }
            let ended =
                may && (if to == State::Cancelled { fields.promise.cancel() } else { fields.promise.finish(&locked) });
            let callbacks =
                if ended { fields.callbacks.swap(ptr::null_mut(), Ordering::AcqRel) } else { ptr::null_mut() };
            break (ended, Owned::steal(callbacks));
        };
        if let Some(condition) = condition {
            if ended {
                if to == State::Finished {
                    let failed = !fields.exception.load(Ordering::Acquire).is_null();
                    tell_waiters(object, if failed { c"add_exception" } else { c"add_result" });
                }
                call_method(&condition, c"notify_all");
            }
            call_method(&condition, c"release");
        }
        if let Some(callbacks) = callbacks {
            call_back(object, &callbacks);
        }
        ended
    }
}

/// Waits for the end of a future. `Ok(false)`: the time was over first.
unsafe fn wait(py: Python<'_>, object: *mut PyObject, timeout: Option<f64>) -> PyResult<bool> {
    // SAFETY: the caller holds a reference to the live future.
    let promise = unsafe { &fields(object).promise };
    if promise.state().is_done() {
        return Ok(true);
    }
    waiting::wait(py, Deadline::after(timeout)?, |slice| promise.wait(Some(slice)))
}

/// The result of a future that has one; a new reference.
///
/// # Safety
///
/// A live future; attached.
#[inline]
pub unsafe fn result_at_hand(object: *mut PyObject) -> Option<*mut PyObject> {
    // SAFETY: as the caller says; a finished future keeps its result.
    unsafe {
        let fields = fields(object);
        if fields.promise.state() != State::Finished || !fields.exception.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let result = fields.result.load(Ordering::Relaxed);
        ffi::Py_XINCREF(result);
        (!result.is_null()).then_some(result)
    }
}

/// Waits for the end, then gives the result as a new reference; null with the error set that the job raised, or
/// `TimeoutError`, or `CancelledError`.
///
/// # Safety
///
/// A live future; attached.
pub unsafe fn result(py: Python<'_>, object: *mut PyObject, timeout: Option<f64>) -> *mut PyObject {
    // SAFETY: as the caller says.
    unsafe {
        if let Err(error) = wait_or_raise(py, object, timeout) {
            error.restore(py);
            return ptr::null_mut();
        }
        if let Some(exception) = held(&fields(object).exception) {
            // As `raise` does it: with the exception that is being handled as its context.
            ffi::PyErr_SetObject(ffi::Py_TYPE(exception.as_ptr()).cast(), exception.as_ptr());
            return ptr::null_mut();
        }
        result_at_hand(object).unwrap_or_else(object::none)
    }
}

/// Waits for the end, then gives the exception or `None`.
///
/// # Safety
///
/// A live future; attached.
pub unsafe fn exception(py: Python<'_>, object: *mut PyObject, timeout: Option<f64>) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe {
        wait_or_raise(py, object, timeout)?;
        kept_exception(py, object)
    }
}

/// Waits for the end; raises `TimeoutError` or `CancelledError`.
unsafe fn wait_or_raise(py: Python<'_>, object: *mut PyObject, timeout: Option<f64>) -> PyResult<()> {
    // SAFETY: as for `wait`.
    unsafe {
        if !wait(py, object, timeout)? {
            return Err(raised(py, &library().timed_out));
        }
        match fields(object).promise.state() {
            State::Finished => Ok(()),
            _ => Err(raised(py, &library().cancelled)),
        }
    }
}

/// An exception of a class without arguments.
fn raised(py: Python<'_>, class: &Owned) -> PyErr {
    // SAFETY: a live class, attached.
    let class = unsafe { Bound::from_borrowed_ptr(py, class.as_ptr()) };
    match class.call0() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// What has become of the job.
///
/// # Safety
///
/// A live future; attached. So for all that follow.
#[inline]
pub unsafe fn state(object: *mut PyObject) -> State {
    // SAFETY: as the caller says.
    unsafe { fields(object).promise.state() }
}

/// The standard library's name of a state.
pub fn name(state: State) -> &'static str {
    c_name(state).to_str().unwrap_or_default()
}

/// As [`name`].
pub fn c_name(state: State) -> &'static CStr {
    match state {
        State::Pending => c"PENDING",
        State::Running => c"RUNNING",
        State::Cancelled => c"CANCELLED",
        State::CancelledAndNotified => c"CANCELLED_AND_NOTIFIED",
        State::Finished => c"FINISHED",
    }
}

/// Ends a future for its owner outside of the pool.
pub unsafe fn set(py: Python<'_>, object: *mut PyObject, value: Owned, failed: bool) -> PyResult<()> {
    // SAFETY: as the caller says.
    unsafe {
        let value = if failed { instance(py, value)? } else { value };
        let fields = fields(object);
        let field = if failed { &fields.exception } else { &fields.result };
        let mut value = Some(value);
        let ended = end(object, State::Finished, || {
            value = value.take().and_then(|value| fill(field, value).err());
        });
        if ended {
            return Ok(());
        }
        let message = format!("{}: {}", name(state(object)), Bound::from_borrowed_ptr(py, object).repr()?);
        let class = Bound::from_borrowed_ptr(py, library().invalid_state.as_ptr());
        Err(PyErr::from_value(class.call1((message,))?))
    }
}

/// An exception, made where a class was given.
unsafe fn instance(py: Python<'_>, exception: Owned) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe {
        if ffi::PyExceptionClass_Check(exception.as_ptr()) == 0 {
            return Ok(exception);
        }
        Owned::steal(leaving::call(exception.as_ptr())).ok_or_else(|| PyErr::fetch(py))
    }
}

/// `_get_snapshot()`: (done, cancelled, result, exception).
pub unsafe fn snapshot(py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe {
        let state = state(object);
        let (result, exception) = (kept_result(py, object)?, kept_exception(py, object)?);
        let bound = |each: &Owned| Bound::from_borrowed_ptr(py, each.as_ptr());
        let made = (state.is_done(), state.is_cancelled(), bound(&result), bound(&exception)).into_pyobject(py)?;
        Ok(Owned::of(made.as_any()))
    }
}

/// The result so far, or `None`.
pub unsafe fn kept_result(_py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe { Ok(finished(object, |fields| &fields.result)) }
}

/// The exception so far, or `None`.
pub unsafe fn kept_exception(_py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe { Ok(finished(object, |fields| &fields.exception)) }
}

unsafe fn finished(object: *mut PyObject, field: impl Fn(&Fields) -> &AtomicPtr<PyObject>) -> Owned {
    // SAFETY: as the caller says.
    unsafe {
        let found = if state(object) == State::Finished { held(field(fields(object))) } else { None };
        found.unwrap_or_else(|| Owned::borrow(ffi::Py_None()))
    }
}

/// The `Condition` of the future, made when it is asked for first.
pub unsafe fn condition(py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe { made_on_demand(py, object, |fields| &fields.condition, || leaving::call(library().condition.as_ptr())) }
}

/// The list of those whom the standard library's functions wait with, made when it is asked for first.
pub unsafe fn waiters(py: Python<'_>, object: *mut PyObject) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe { made_on_demand(py, object, |fields| &fields.waiters, || ffi::PyList_New(0)) }
}

unsafe fn made_on_demand(
    py: Python<'_>,
    object: *mut PyObject,
    field: impl Fn(&Fields) -> &AtomicPtr<PyObject>,
    make: impl FnOnce() -> *mut PyObject,
) -> PyResult<Owned> {
    // SAFETY: as the caller says.
    unsafe {
        let fields = fields(object);
        let field = field(fields);
        if let Some(found) = held(field) {
            return Ok(found);
        }
        let made = Owned::steal(make()).ok_or_else(|| PyErr::fetch(py))?;
        let locked = fields.promise.lock(true);
        let refused = fill(field, made).err();
        drop(locked);
        drop(refused);
        held(field).ok_or_else(|| PyRuntimeError::new_err("the future is being destroyed"))
    }
}

/// Reads what the type needs of the standard library. Returns the base class and the size of an object.
pub fn connect(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, c_int)> {
    let library = library::connect(py)?;
    // SAFETY: a live object, attached.
    let base = unsafe { Bound::from_borrowed_ptr(py, library.future.as_ptr()) };
    let size: usize = base.cast::<PyType>()?.getattr("__basicsize__")?.extract()?;
    let offset = size.next_multiple_of(align_of::<Fields>());
    OFFSET.store(offset, Ordering::Relaxed);
    Ok((base, c_int::try_from(offset + size_of::<Fields>())?))
}

/// The fields that hold objects, for CPython's traversal and deallocation, which leaves out what is read-only. Their
/// names, with a space, cannot be written in Python.
pub fn members() -> Vec<ffi::PyMemberDef> {
    let offset = OFFSET.load(Ordering::Relaxed);
    let member = |name: &'static CStr, field: usize| ffi::PyMemberDef {
        name: name.as_ptr(),
        type_code: ffi::Py_T_OBJECT_EX,
        offset: (offset + field) as ffi::Py_ssize_t,
        flags: 0,
        doc: ptr::null(),
    };
    vec![
        member(c" result", offset_of!(Fields, result)),
        member(c" exception", offset_of!(Fields, exception)),
        member(c" callbacks", offset_of!(Fields, callbacks)),
        member(c" waiters", offset_of!(Fields, waiters)),
        member(c" condition", offset_of!(Fields, condition)),
        ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() },
    ]
}
