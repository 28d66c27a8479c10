//! The native methods of handlers: `emit`, `handle`, and the methods that first write everything queued (barriers). The
//! native methods of formatters and records are declared here, too.
//!
//! Pipeline stages: *call site* and *capture*, on the stock path (see ARCHITECTURE.md).

use std::ptr;
use std::time::Duration;

use logspool::pipeline;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::stock::{Method, call_stock};
use crate::calls::{emit, formatter_methods, prepare, queue_listener, record_init, record_message};
use crate::interpreter::failure::passed;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned, SavedError};
use crate::interpreter::{leaving, reentrant_lock};

use crate::plans::handler_states;

/// Declares the C functions that CPython calls, each with the function that handles its object and arguments.
macro_rules! methods {
    ($($name:ident: $act:expr;)*) => {
        $(
            /// # Safety
            ///
            /// Call only as CPython calls a `METH_FASTCALL | METH_KEYWORDS` method: from an attached thread.
            pub unsafe extern "C" fn $name(
                object: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: CPython calls this from an attached thread, with live objects; the descriptor checked the
                // object's type.
                let (object, call) = unsafe { object::received(object, arguments, count, keywords) };
                $act(object, call)
            }
        )*
    };
}

pub(crate) use methods;

/// Runs `before`, which waits for the queued records of the handler; then calls the stock method.
fn after_barrier(
    method: Method,
    handler: Object<'_, '_>,
    call: Call<'_, '_>,
    before: impl FnOnce(Object<'_, '_>, Duration) -> PyResult<()>,
) -> *mut PyObject {
    let barrier = {
        let _error = SavedError::take(call.py());
        before(handler, pipeline::shutdown_timeout())
    };
    if !passed(call.py(), barrier) {
        return ptr::null_mut();
    }
    call_stock(method, handler, call)
}

fn flush_queue(handler: Object<'_, '_>, timeout: Duration) -> PyResult<()> {
    handler_states::flush(&handler, timeout).map(drop)
}

fn flush_and_catch_up(handler: Object<'_, '_>, timeout: Duration) -> PyResult<()> {
    handler_states::flush(&handler, timeout)?;
    handler_states::catch_up(&handler)
}

fn close_queue(handler: Object<'_, '_>, timeout: Duration) -> PyResult<()> {
    handler_states::release(&handler, timeout)
}

/// The native `close`: writes everything queued, closes the sink, then calls the stock method.
///
/// The sink is taken under the handler's lock. Without the lock, another thread would find no sink and an open stream,
/// and its line would come before the queued ones. The stock `close` of a file handler has the lock too until the stream
/// is closed. That of `Handler` takes the lock of `logging`, so here it gets no lock of the handler.
fn close(method: Method, handler: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let locked = {
        let _error = SavedError::take(call.py());
        lock(handler)
    };
    let lock = match locked {
        Ok(lock) => lock,
        Err(error) => {
            error.restore(call.py());
            return ptr::null_mut();
        }
    };
    let unlock = || {
        if let Some(lock) = &lock {
            reentrant_lock::release(lock.bind(call.py()));
        }
    };
    let released = {
        let _error = SavedError::take(call.py());
        handler_states::release_drained(&handler, pipeline::shutdown_timeout())
    };
    let keeps = method == Method::FileClose;
    if !keeps {
        unlock();
    }
    let result = if passed(call.py(), released) { call_stock(method, handler, call) } else { ptr::null_mut() };
    if keeps {
        unlock();
    }
    result
}

/// Acquires the handler's lock, if it has one. The thread of deferred formatters may wait for the lock, so it gets its
/// work done first.
fn lock(handler: Object<'_, '_>) -> PyResult<Option<Owned>> {
    let py = handler.py();
    handler_states::drain_deferred(&handler, pipeline::shutdown_timeout())?;
    let raised = || PyErr::fetch(py);
    let found = leaving::optional_attribute(handler, &names().lock).ok_or_else(raised)?;
    let lock = found.filter(|lock| !lock.bind(py).is_none());
    if let Some(lock) = &lock {
        reentrant_lock::acquire(lock.bind(py)).ok_or_else(raised)?;
    }
    Ok(lock)
}

/// Writes the records queued for standard error before stock logging prints its error report there.
fn flush_beside_report(handler: Object<'_, '_>, timeout: Duration) -> PyResult<()> {
    // SAFETY: `handler` shows that the thread is attached. The borrowed reference becomes an owned one before the
    // stream's `fileno()` runs.
    let stream = unsafe {
        let stream = ffi::PySys_GetObject(c"stderr".as_ptr());
        Borrowed::from_ptr_or_opt(handler.py(), stream).map(|stream| Owned::of(&stream))
    };
    match stream {
        Some(stream) if !stream.bind(handler.py()).is_none() => {
            handler_states::flush_beside(&stream.bind(handler.py()), timeout)
        }
        _ => Ok(()),
    }
}

/// The native `Logger.removeHandler`: writes the records queued for the handler, then removes the handler.
fn remove(logger: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    if let [handler] = call.positional()
        && !passed(call.py(), handler_states::flush(handler, pipeline::shutdown_timeout()))
    {
        return ptr::null_mut();
    }
    // Nothing else has to be released: a plan refers to the logger's list of handlers, and `removeHandler` removes the
    // handler from that list.
    call_stock(Method::RemoveHandler, logger, call)
}

methods! {
    remove_handler: remove;
    stream_flush: |handler, call| after_barrier(Method::StreamFlush, handler, call, flush_and_catch_up);
    set_stream: |handler, call| after_barrier(Method::SetStream, handler, call, flush_queue);
    file_close: |handler, call| close(Method::FileClose, handler, call);
    handler_close: |handler, call| close(Method::HandlerClose, handler, call);
    size_rollover: |handler, call| after_barrier(Method::SizeRollover, handler, call, close_queue);
    time_rollover: |handler, call| after_barrier(Method::TimeRollover, handler, call, close_queue);
    size_question: |handler, call| after_barrier(Method::SizeQuestion, handler, call, flush_and_catch_up);
    time_question: |handler, call| after_barrier(Method::TimeQuestion, handler, call, flush_and_catch_up);
    handle_error: |handler, call| after_barrier(Method::HandleError, handler, call, flush_beside_report);
    sink_flush: |handler, call| after_barrier(Method::SinkFlush, handler, call, flush_queue);
    stream_emit: |handler, call| emit::emit(Method::StreamEmit, handler, call);
    file_emit: |handler, call| emit::emit(Method::FileEmit, handler, call);
    rotating_emit: |handler, call| emit::emit(Method::RotatingEmit, handler, call);
    watched_emit: |handler, call| emit::emit(Method::WatchedEmit, handler, call);
    sink_emit: |handler, call| emit::emit(Method::SinkEmit, handler, call);
    handler_handle: emit::handle;
    queue_prepare: prepare::prepare;
    listener_handle: queue_listener::handle;
    listener_dequeue: queue_listener::dequeue;
    record_init: record_init::init;
    record_message: record_message::get_message;
    formatter_format: formatter_methods::format;
    formatter_time: formatter_methods::format_time;
    formatter_message: formatter_methods::format_message;
}
