//! `logspool.pool.Timer`: the future of a job that is not due yet.
//!
//! The type is a subclass of the type in [`super::future_type`], and is made in the same way. A timer has the key under
//! which its job waits in [`super::timers`].

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use logspool_pool::timers::{Clock, TimerKey};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::future::{self, FutureHandle, FutureRef};
use super::future_type::{self, TypeParts};
use super::timers;
use crate::interpreter::object::{self, Object, Owned};

/// The native fields of a timer. They follow the fields of a future in the object.
#[repr(C)]
struct TimerFields {
    /// Keeps the pool alive, because the pool must start a worker for the job.
    pool: AtomicPtr<PyObject>,
    /// The parts of a [`TimerKey`].
    at: AtomicU64,
    number: AtomicU64,
    clock: AtomicU64,
}

/// Offset of [`TimerFields`] in an object, in bytes.
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// A borrowed timer.
#[derive(Clone, Copy)]
struct TimerRef<'a, 'py>(FutureRef<'a, 'py>);

impl<'a, 'py> TimerRef<'a, 'py> {
    /// # Safety
    ///
    /// `object` is an instance of the type that [`make`] made.
    unsafe fn of(object: Object<'a, 'py>) -> Self {
        // SAFETY: the type of timers is a subclass of the type of futures.
        Self(unsafe { FutureRef::of(object) })
    }

    fn fields(self) -> &'a TimerFields {
        // SAFETY: the type's basic size has room for the fields at this offset; zeroed memory is valid.
        unsafe { &*self.0.object().as_ptr().byte_add(OFFSET.load(Ordering::Relaxed)).cast() }
    }

    /// The key of the job in the timers.
    fn key(self) -> TimerKey {
        let fields = self.fields();
        let is_wall = fields.clock.load(Ordering::Relaxed) == Clock::Wall as u64;
        let clock = if is_wall { Clock::Wall } else { Clock::Steady };
        TimerKey { clock, at: fields.at.load(Ordering::Relaxed), number: fields.number.load(Ordering::Relaxed) }
    }
}

/// A new timer for a job of `pool` that waits under `key`.
///
/// # Errors
///
/// No memory.
pub fn new(pool: &Bound<'_, PyAny>, key: TimerKey) -> PyResult<FutureHandle> {
    let py = pool.py();
    // SAFETY: `class` returns the type of timers, a subclass of the type of futures.
    let made = unsafe { FutureHandle::allocate(py, class(py)?)? };
    // SAFETY: the object was just made as an instance of the type of timers.
    let fields = unsafe { TimerRef::of(made.bind(py).object()) }.fields();
    fields.pool.store(Owned::of(pool).into_ptr(), Ordering::Relaxed);
    fields.at.store(key.at, Ordering::Relaxed);
    fields.number.store(key.number, Ordering::Relaxed);
    fields.clock.store(key.clock as u64, Ordering::Relaxed);
    Ok(made)
}

/// # Safety
///
/// Called by CPython as a `METH_NOARGS` method of a timer, in an attached thread.
unsafe extern "C" fn cancel(object: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: CPython calls it in an attached thread with a live object; the descriptor checked that this is a timer.
    let timer = unsafe { TimerRef::of(Borrowed::from_ptr(Python::assume_attached(), object)) };
    let cancelled = future::cancel(timer.0);
    if cancelled {
        // If the job is due already, it is in the queue. The worker that takes it sees that the future is cancelled.
        timers::cancel(timer.0.py(), timer.key());
    }
    object::truth(timer.0.py(), cancelled)
}

/// # Safety
///
/// Called by CPython as a getter of a timer, in an attached thread.
unsafe extern "C" fn when(object: *mut PyObject, _: *mut c_void) -> *mut PyObject {
    // SAFETY: CPython calls it in an attached thread with a live object; the descriptor checked that this is a timer.
    unsafe {
        let timer = TimerRef::of(Borrowed::from_ptr(Python::assume_attached(), object));
        ffi::PyFloat_FromDouble(timer.key().at as f64 / 1e9)
    }
}

/// Makes the type of timers. Called once.
fn make(py: Python<'_>) -> PyResult<Bound<'_, PyType>> {
    let base = future_type::class(py)?.bind(py);
    let offset: usize = base.getattr("__basicsize__")?.extract::<usize>()?.next_multiple_of(align_of::<TimerFields>());
    OFFSET.store(offset, Ordering::Relaxed);
    let members = vec![
        ffi::PyMemberDef {
            // The name begins with a space, so that Python code cannot access the member.
            name: c" pool".as_ptr(),
            type_code: ffi::Py_T_OBJECT_EX,
            offset: (offset + offset_of!(TimerFields, pool)) as ffi::Py_ssize_t,
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
        TypeParts {
            name: c"logspool.pool.Timer",
            doc: c"The future of a job that is done later.",
            size: c_int::try_from(offset + size_of::<TimerFields>())?,
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
