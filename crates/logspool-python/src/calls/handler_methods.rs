//! The native methods of handlers: barriers, which write what is queued first, and `emit` and `handle`.
//!
//! Stop on the line: *call site* into *capture*, on the stock path.

use std::ptr;
use std::time::Duration;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::stock::{Method, call_stock};
use crate::calls::{emit, prepare};
use crate::interpreter::failure::passed;
use crate::interpreter::object::{ErrorKept, Owned};
use crate::options;
use crate::plans::adoption;

/// A barrier on the handler that is removed.
pub unsafe extern "C" fn remove_handler(
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a logger.
    unsafe {
        if count == 1 && !passed(adoption::flush(*arguments, options::shutdown_timeout())) {
            return ptr::null_mut();
        }
        // Plans hold the logger's list, which holds handlers only as long as they are in it; nothing else to let go.
        call_stock(Method::RemoveHandler, logger, arguments, count as usize, keywords)
    }
}

macro_rules! barrier_methods {
    ($($function:ident: $method:ident, $before:expr;)*) => {
        $(
            pub unsafe extern "C" fn $function(
                handler: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: called by CPython with a handler.
                unsafe {
                    let barrier = {
                        let _error = ErrorKept::take();
                        let before: unsafe fn(*mut PyObject, Duration) -> PyResult<()> = $before;
                        before(handler, options::shutdown_timeout())
                    };
                    if !passed(barrier) {
                        return ptr::null_mut();
                    }
                    call_stock(Method::$method, handler, arguments, count as usize, keywords)
                }
            }
        )*
    };
}

unsafe fn flush_queue(handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: passed on.
    unsafe { adoption::flush(handler, timeout).map(drop) }
}

unsafe fn flush_and_catch_up(handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: passed on.
    unsafe {
        adoption::flush(handler, timeout)?;
        adoption::catch_up(handler)
    }
}

unsafe fn close_queue(handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: attached.
    unsafe { adoption::release(Python::assume_attached(), handler, timeout) }
}

barrier_methods! {
    stream_flush: StreamFlush, flush_and_catch_up;
    set_stream: SetStream, flush_queue;
    file_close: FileClose, close_queue;
    handler_close: HandlerClose, close_queue;
    size_rollover: SizeRollover, close_queue;
    time_rollover: TimeRollover, close_queue;
    size_question: SizeQuestion, flush_and_catch_up;
    time_question: TimeQuestion, flush_and_catch_up;
    handle_error: HandleError, flush_beside_report;
    service_flush: ServiceFlush, flush_queue;
}

/// What stock logging is about to print on standard error comes after what is queued for it.
unsafe fn flush_beside_report(_handler: *mut PyObject, timeout: Duration) -> PyResult<()> {
    // SAFETY: attached; a borrowed reference made an own one before its `fileno()` runs.
    unsafe {
        let stream = ffi::PySys_GetObject(c"stderr".as_ptr());
        if !stream.is_null() && stream != ffi::Py_None() {
            adoption::flush_beside(&Owned::borrow(stream), timeout)?;
        }
    }
    Ok(())
}

macro_rules! emit_methods {
    ($($function:ident: $method:ident;)*) => {
        $(
            pub unsafe extern "C" fn $function(
                handler: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: called by CPython with a handler.
                unsafe { emit::emit(Method::$method, handler, arguments, count, keywords) }
            }
        )*
    };
}

pub unsafe extern "C" fn handler_handle(
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a handler.
    unsafe { emit::handle(handler, arguments, count, keywords) }
}

pub unsafe extern "C" fn queue_prepare(
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a handler.
    unsafe { prepare::prepare(handler, arguments, count, keywords) }
}

emit_methods! {
    stream_emit: StreamEmit;
    file_emit: FileEmit;
    rotating_emit: RotatingEmit;
    watched_emit: WatchedEmit;
    service_emit: ServiceEmit;
}
