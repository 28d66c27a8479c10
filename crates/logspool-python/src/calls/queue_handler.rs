//! The native `Handler.handle` of a `QueueHandler`: prepares a record and puts it into the handler's queue.
//!
//! This module is not a pipeline stage. It saves the Python frames of `handle`, `acquire`, `emit`, `enqueue` and
//! `release`, which take as long as the queue itself. It serves only an unmodified `QueueHandler` without filters whose
//! queue is of the standard library. All other handlers are left to the stock function. If the queue does not accept a
//! record, stock logging tries again and reports the error.

use pyo3::ffi::{self, PyObject};

use crate::calls::prepare::{self, StockObjects};
use crate::calls::stock;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::{Names, names};
use crate::interpreter::object::{self, Object, Owned, SavedError};

/// The native `handler.handle(record)`. `None`: stock logging has to handle the record.
#[inline]
pub fn handle(handler: Object<'_, '_>, record: Object<'_, '_>) -> Option<*mut PyObject> {
    let queueing = prepare::stock()?;
    if object::class_of(handler).cast() != queueing.class.as_ptr() {
        return None;
    }
    match enqueue(queueing, handler, record) {
        Ok(()) => Some(stock::passed_filters(record)),
        Err(Failure::Raised) => Some(std::ptr::null_mut()),
        Err(Failure::Stock) => None,
    }
}

/// Puts a record into the queue of a handler.
///
/// # Errors
///
/// [`Failure::Stock`]: the record is not in the queue, and stock logging has to do the whole call. [`Failure::Raised`]:
/// an exception is set that no handler catches.
fn enqueue(stock: &StockObjects, handler: Object<'_, '_>, record: Object<'_, '_>) -> Result<(), Failure> {
    let py = record.py();
    if !prepare::verdict(py, stock)?.hands_on || overrides_step(handler)? {
        return Err(Failure::Stock);
    }
    let Names { filters, lock, queue, acquire, release, put_nowait, .. } = names();
    let attribute = |name: &Owned| object::attribute(handler, name).ok_or(Failure::Stock);
    let (filters, lock, queue) = (attribute(filters)?, attribute(lock)?, attribute(queue)?);
    let (lock, queue) = (lock.bind(py), queue.bind(py));
    if !object::is_empty_list(filters.bind(py))
        || object::class_of(lock).cast() != stock.lock_class.as_ptr()
        || !stock.queue_classes.iter().any(|known| known.as_ptr() == object::class_of(queue).cast())
    {
        return Err(Failure::Stock);
    }
    let prepared = prepare::prepared(stock, handler, record)?;
    leaving::method(lock, acquire).ok_or(Failure::Raised)?;
    let put = leaving::method_of_one(queue, put_nowait, prepared.bind(py));
    {
        let _error = SavedError::take(py);
        // `release` fails only if other code has already released the lock.
        if leaving::method(lock, release).is_none() {
            object::clear_error(py);
        }
    }
    put.map(drop).ok_or_else(|| Failure::of_error(py))
}

/// True if the handler instance overrides one of the steps of `handle`.
fn overrides_step(handler: Object<'_, '_>) -> Result<bool, Failure> {
    let attributes = object::own_attributes(handler)?;
    let Names { acquire, emit, enqueue, filter, prepare, release, .. } = names();
    // SAFETY: the dict of a live handler, and the thread is attached; looking up a `str` runs no user Python code.
    let has = |name: &Owned| unsafe { !ffi::PyDict_GetItemWithError(attributes.as_ptr(), name.as_ptr()).is_null() };
    Ok([acquire, emit, enqueue, filter, prepare, release].into_iter().any(has))
}
