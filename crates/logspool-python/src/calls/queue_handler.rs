//! `Handler.handle` of a `QueueHandler`: prepares a record and puts it into the handler's queue.
//!
//! Beside the line: it saves the Python frames of `handle`, `acquire`, `emit`, `enqueue` and `release`, which take as
//! long as the queue itself. Only a `QueueHandler` as the standard library made it, without filters and with a queue of
//! the standard library, is served. Everything else is left to the stock function from its start, and so is a record
//! that the queue does not take: stock logging tries again and reports the error.

use pyo3::ffi::{self, PyObject};

use crate::calls::prepare::{self, Stock};
use crate::calls::stock;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::{Names, names};
use crate::interpreter::object::{self, ErrorKept, Owned};

/// `handler.handle(record)`. `None`: stock logging does it.
///
/// # Safety
///
/// Live objects; attached.
#[inline]
pub unsafe fn handle(handler: *mut PyObject, record: *mut PyObject) -> Option<*mut PyObject> {
    let stock = prepare::stock()?;
    // SAFETY: passed on.
    unsafe {
        if ffi::Py_TYPE(handler).cast::<PyObject>() != stock.class.as_ptr() {
            return None;
        }
        match hand_on(stock, handler, record) {
            Ok(()) => Some(stock::passed_filters(record)),
            Err(Failure::Raised) => Some(std::ptr::null_mut()),
            Err(Failure::Stock) => None,
        }
    }
}

/// Puts a record into the queue of a handler.
///
/// # Errors
///
/// [`Failure::Stock`]: it is not there, and stock logging is to do it all.
unsafe fn hand_on(stock: &Stock, handler: *mut PyObject, record: *mut PyObject) -> Result<(), Failure> {
    // SAFETY: live objects, attached; exact types are checked before they are relied on.
    unsafe {
        if !prepare::verdict(stock)?.hands_on || overrides_step(handler)? {
            return Err(Failure::Stock);
        }
        let Names { filters, lock, queue, acquire, release, put_nowait, .. } = names();
        let attribute = |name: &Owned| object::attribute(handler, name.as_ptr()).ok_or(Failure::Stock);
        let (filters, lock, queue) = (attribute(filters)?, attribute(lock)?, attribute(queue)?);
        let class = |object: &Owned| ffi::Py_TYPE(object.as_ptr()).cast::<PyObject>();
        if class(&filters) != (&raw mut ffi::PyList_Type).cast()
            || ffi::PyList_GET_SIZE(filters.as_ptr()) != 0
            || class(&lock) != stock.lock_class.as_ptr()
            || !stock.queue_classes.iter().any(|known| known.as_ptr() == class(&queue))
        {
            return Err(Failure::Stock);
        }
        let prepared = prepare::prepared(stock, handler, record)?;
        Owned::steal(leaving::method(lock.as_ptr(), acquire.as_ptr())).ok_or(Failure::Raised)?;
        let put = Owned::steal(leaving::method_of_one(queue.as_ptr(), put_nowait.as_ptr(), prepared.as_ptr()));
        {
            let _error = ErrorKept::take();
            // It fails only where another one has released it meanwhile.
            if Owned::steal(leaving::method(lock.as_ptr(), release.as_ptr())).is_none() {
                ffi::PyErr_Clear();
            }
        }
        if put.is_some() {
            return Ok(());
        }
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) == 0 {
            return Err(Failure::Raised);
        }
        ffi::PyErr_Clear();
        Err(Failure::Stock)
    }
}

/// Whether the handler itself has a method of the name of one of the steps.
unsafe fn overrides_step(handler: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: a live instance of a Python class, attached; looking up a `str` runs no foreign code.
    unsafe {
        let attributes = prepare::own_attributes(handler)?;
        let Names { acquire, emit, enqueue, filter, prepare, release, .. } = names();
        let has = |name: &Owned| !ffi::PyDict_GetItemWithError(attributes.as_ptr(), name.as_ptr()).is_null();
        Ok([acquire, emit, enqueue, filter, prepare, release].into_iter().any(has))
    }
}
