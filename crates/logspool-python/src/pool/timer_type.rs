//! `logspool.pool.Timer`: the future of a job that is not due yet.
//!
//! A subclass of [`super::future_type`]'s type, made in the same way, that knows where the job waits.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use logspool_pool::timers::{Clock, Key};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::future_type::Addition;
use super::{future, future_type, timers};
use crate::object::{self, Owned};

/// What stands behind the fields of a future.
#[repr(C)]
struct Fields {
    /// The pool, held for the threads that it starts.
    pool: AtomicPtr<PyObject>,
    /// The parts of a [`Key`].
    at: AtomicU64,
    number: AtomicU64,
    clock: AtomicU64,
}

/// Where [`Fields`] lie in an object.
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// The fields of a timer.
///
/// # Safety
///
/// `object` is a live instance of the type.
unsafe fn fields<'a>(object: *mut PyObject) -> &'a Fields {
    // SAFETY: the type's basic size has room for them; zeroed memory is valid.
    unsafe { &*object.byte_add(OFFSET.load(Ordering::Relaxed)).cast() }
}

/// The key of a timer.
///
/// # Safety
///
/// As for [`fields`].
unsafe fn key(object: *mut PyObject) -> Key {
    // SAFETY: passed on.
    let fields = unsafe { fields(object) };
    let clock = if fields.clock.load(Ordering::Relaxed) == Clock::Wall as u64 { Clock::Wall } else { Clock::Steady };
    Key { clock, at: fields.at.load(Ordering::Relaxed), number: fields.number.load(Ordering::Relaxed) }
}

/// A new timer for a job of `pool` that waits under `key`.
///
/// # Errors
///
/// Memory is short.
///
/// # Safety
///
/// `pool` is live; attached.
pub unsafe fn new(py: Python<'_>, pool: *mut PyObject, key: Key) -> PyResult<Owned> {
    // SAFETY: the type is the one made here.
    unsafe {
        let made = Owned::steal(future::allocate(class(py)?.as_ptr().cast())).ok_or_else(|| PyErr::fetch(py))?;
        let fields = fields(made.as_ptr());
        fields.pool.store(Owned::borrow(pool).into_ptr(), Ordering::Relaxed);
        fields.at.store(key.at, Ordering::Relaxed);
        fields.number.store(key.number, Ordering::Relaxed);
        fields.clock.store(key.clock as u64, Ordering::Relaxed);
        Ok(made)
    }
}

unsafe extern "C" fn cancel(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: as CPython calls a method; attached.
    unsafe {
        let cancelled = future::cancel(object);
        if cancelled {
            // One whose time has come is in the queue; its worker finds out.
            timers::cancel(Python::assume_attached(), key(object));
        }
        object::truth(cancelled)
    }
}

unsafe extern "C" fn when(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: as CPython calls a getter; attached.
    unsafe { ffi::PyFloat_FromDouble(key(object).at as f64 / 1e9) }
}

/// Makes the type. Called once.
fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    // SAFETY: a live type, attached.
    let base = unsafe { Bound::from_borrowed_ptr(py, future_type::class(py)?.as_ptr()) };
    let offset: usize = base.getattr("__basicsize__")?.extract::<usize>()?.next_multiple_of(align_of::<Fields>());
    OFFSET.store(offset, Ordering::Relaxed);
    let members = vec![
        ffi::PyMemberDef {
            // With a space: cannot be written in Python.
            name: c" pool".as_ptr(),
            type_code: ffi::Py_T_OBJECT_EX,
            offset: (offset + offset_of!(Fields, pool)) as ffi::Py_ssize_t,
            flags: 0,
            doc: ptr::null(),
        },
        ffi::PyMemberDef { name: ptr::null(), type_code: 0, offset: 0, flags: 0, doc: ptr::null() },
    ];
    let methods = vec![
        future_type::plain(
            c"cancel",
            cancel,
            ffi::METH_NOARGS,
            c"cancel($self)\n--\n\nCancel the job if it has not begun. Return whether it is cancelled.",
        ),
        ffi::PyMethodDef::zeroed(),
    ];
    let attributes = vec![
        future_type::attribute(c"when", when),
        ffi::PyGetSetDef { name: ptr::null(), get: None, set: None, doc: ptr::null(), closure: ptr::null_mut() },
    ];
    future_type::derive(
        &base,
        Addition {
            name: c"logspool.pool.Timer",
            doc: c"The future of a job that is done later.",
            size: c_int::try_from(offset + size_of::<Fields>())?,
            flags: ffi::Py_TPFLAGS_DEFAULT,
            members,
            methods,
            attributes,
            init: None,
        },
    )
}

static CLASS: OnceLock<Owned> = OnceLock::new();

/// The type of timers, made on first use.
///
/// # Errors
///
/// The type cannot be made.
pub fn class(py: Python<'_>) -> PyResult<&'static Owned> {
    if let Some(class) = CLASS.get() {
        return Ok(class);
    }
    let made = make(py)?;
    Ok(CLASS.get_or_init(|| Owned::of(made.as_any())))
}
