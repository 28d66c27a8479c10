//! The native `handle` and `dequeue` of `logging.handlers.QueueListener`.
//!
//! This module is not a pipeline stage. A program that waits with `queue.join()` or `listener.stop()` expects the lines
//! in the files afterwards. So the listener waits for its lines before it calls `task_done()`, but only when its queue is
//! empty: after a burst it waits once. Everything else is left to the stock methods.

use std::ptr;

use logspool::pipeline;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::calls::stock::{Method, call_stock};
use crate::interpreter::failure::passed;
use crate::interpreter::leaving;
use crate::interpreter::names::{Names, names};
use crate::interpreter::object::{self, Call, Object};
use crate::plans::handler_states;

/// The native `listener.handle(record)`: waits for the lines of its handlers if the queue is empty.
pub fn handle(listener: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let result = call_stock(Method::ListenerHandle, listener, call);
    after(listener, result, is_queue_empty)
}

/// The native `listener.dequeue(block)`: waits for the lines of its handlers if the listener has to stop.
pub fn dequeue(listener: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let result = call_stock(Method::ListenerDequeue, listener, call);
    after(listener, result, |listener| {
        object::attribute(listener, &names().sentinel).is_none_or(|sentinel| sentinel.as_ptr() == result)
    })
}

/// Returns `result`, after the lines of the handlers are written if the listener `is_idle`. A method that raised does not
/// wait.
fn after(
    listener: Object<'_, '_>,
    result: *mut PyObject,
    is_idle: impl FnOnce(Object<'_, '_>) -> bool,
) -> *mut PyObject {
    if result.is_null() || !is_idle(listener) || passed(listener.py(), write_lines(listener)) {
        return result;
    }
    // SAFETY: the method returned this reference, and nothing else owns it.
    drop(unsafe { object::Owned::steal(result) });
    ptr::null_mut()
}

/// True also if the queue cannot tell.
fn is_queue_empty(listener: Object<'_, '_>) -> bool {
    let Names { queue, empty, .. } = names();
    let answer = object::attribute(listener, queue).and_then(|queue| leaving::method(queue.bind(listener.py()), empty));
    let is_empty = answer.and_then(|answer| leaving::is_true(answer.bind(listener.py())));
    if is_empty.is_none() {
        object::clear_error(listener.py());
    }
    is_empty.unwrap_or(true)
}

fn write_lines(listener: Object<'_, '_>) -> PyResult<()> {
    let Some(handlers) = object::attribute(listener, &names().handlers) else { return Ok(()) };
    let handlers = handlers.bind(listener.py());
    let Ok(handlers) = handlers.cast::<PyTuple>() else { return Ok(()) };
    for handler in handlers.iter() {
        handler_states::flush_local(&handler, pipeline::shutdown_timeout())?;
    }
    Ok(())
}
