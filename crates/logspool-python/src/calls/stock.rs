//! The stock functions that the native methods fall back to. A stock function does the whole of a call that logspool
//! cannot serve.
//!
//! A stock function is called with the same arguments as the native method. logspool adds no Python frame, so
//! `findCaller` counts the same frames as without logspool.

use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi::{self, PyObject};

use crate::calls::message;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::interpreter::reentrant_lock;

/// Every method that logspool replaces. The number of a method is the index of its stock function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Method {
    /// `Logger.debug`
    Debug,
    /// `Logger.info`
    Info,
    /// `Logger.warning`
    Warning,
    /// `Logger.error`
    Error,
    /// `Logger.critical`
    Critical,
    /// `Logger.log`
    Log,
    /// `LoggerAdapter.debug`
    AdapterDebug,
    /// `LoggerAdapter.info`
    AdapterInfo,
    /// `LoggerAdapter.warning`
    AdapterWarning,
    /// `LoggerAdapter.error`
    AdapterError,
    /// `LoggerAdapter.exception`
    AdapterException,
    /// `LoggerAdapter.critical`
    AdapterCritical,
    /// `LoggerAdapter.log`
    AdapterLog,
    /// `Logger.removeHandler`
    RemoveHandler,
    /// `StreamHandler.emit`
    StreamEmit,
    /// `FileHandler.emit`
    FileEmit,
    /// `StreamHandler.flush`
    StreamFlush,
    /// `StreamHandler.setStream`
    SetStream,
    /// `FileHandler.close`
    FileClose,
    /// `Handler.close`
    HandlerClose,
    /// `Handler.handleError`
    HandleError,
    /// `Handler.handle`
    HandlerHandle,
    /// `LogRecord.__init__`
    RecordInit,
    /// `LogRecord.getMessage`
    RecordMessage,
    /// `Formatter.format`
    FormatterFormat,
    /// `Formatter.formatTime`
    FormatterTime,
    /// `Formatter.formatMessage`
    FormatterMessage,
    /// `logging.handlers.BaseRotatingHandler.emit`
    RotatingEmit,
    /// `logging.handlers.WatchedFileHandler.emit`
    WatchedEmit,
    /// `logging.handlers.RotatingFileHandler.doRollover`
    SizeRollover,
    /// `logging.handlers.TimedRotatingFileHandler.doRollover`
    TimeRollover,
    /// `logging.handlers.RotatingFileHandler.shouldRollover`
    SizeQuestion,
    /// `logging.handlers.TimedRotatingFileHandler.shouldRollover`
    TimeQuestion,
    /// `logspool.SinkHandler.emit`
    SinkEmit,
    /// `logspool.SinkHandler.flush`
    SinkFlush,
    /// `logging.handlers.QueueHandler.prepare`
    QueuePrepare,
    /// `logging.handlers.QueueListener.handle`
    ListenerHandle,
    /// `logging.handlers.QueueListener.dequeue`
    ListenerDequeue,
}

impl Method {
    /// True if the stock function waits for the lock of the handler.
    fn takes_handler_lock(self) -> bool {
        use Method::{FileClose, HandlerClose, HandlerHandle, SetStream, SinkFlush, StreamFlush};
        matches!(self, HandlerHandle | StreamFlush | SetStream | FileClose | HandlerClose | SinkFlush)
    }

    /// True if logspool calls the stock function only where the thread has no lock of a handler: the functions that begin
    /// a logging call, and the one that fills its record.
    #[cfg(Py_GIL_DISABLED)]
    fn begins_outside_handlers(self) -> bool {
        use Method::{AdapterLog, RecordInit};
        self as usize <= AdapterLog as usize || self == RecordInit
    }
}

/// Number of replaced methods.
pub const METHODS: usize = 38;

static STOCK: [OnceLock<Owned>; METHODS] = [const { OnceLock::new() }; METHODS];

/// Sets the stock function of a method. Later calls change nothing.
pub fn set_stock(method: Method, function: Owned) {
    let _ = STOCK[method as usize].set(function);
}

/// Maximum number of values, including `self`, that are passed to a stock function without a heap allocation.
const INLINE: usize = 12;

/// Calls the stock function of `method` with `object` as the first argument. Returns null with an exception set if the
/// call raised.
pub fn call_stock(method: Method, object: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    call_stock_with(method, object, call, call.values())
}

/// Like [`call_stock`], but with other values instead of the call's own.
pub fn call_stock_with(
    method: Method,
    object: Object<'_, '_>,
    call: Call<'_, '_>,
    values: &[Object<'_, '_>],
) -> *mut PyObject {
    assert_eq!(values.len(), call.values().len(), "one value for each of the call's");
    let py = object.py();
    let Some(function) = STOCK[method as usize].get() else { return object::none(py) };
    let function = function.bind(py);
    if method.takes_handler_lock() && leaving::is_alone(py) {
        free_handler_lock(object);
    }
    #[cfg(Py_GIL_DISABLED)]
    let _turn = leaving::StockTurn::take(py, method.begins_outside_handlers());
    let count = call.positional().len() + 1;
    if values.len() < INLINE {
        let mut all = [ptr::null_mut(); INLINE];
        all[0] = object.as_ptr();
        for (place, value) in all[1..].iter_mut().zip(values) {
            *place = value.as_ptr();
        }
        // SAFETY: `object` and as many live values as the call has; its keywords are null or a tuple of `str`.
        unsafe { leaving::vectorcall(function, all.as_ptr(), count, call.keywords()) }
    } else {
        let all: Vec<_> = std::iter::once(&object).chain(values).map(|value| value.as_ptr()).collect();
        // SAFETY: as many live values as the call has, after `object`; its keywords are null or a tuple of `str`.
        unsafe { leaving::vectorcall(function, all.as_ptr(), count, call.keywords()) }
    }
}

/// Frees the lock of a handler whose owner the interpreter has stopped.
#[cold]
fn free_handler_lock(handler: Object<'_, '_>) {
    let _error = object::SavedError::take(handler.py());
    match object::attribute(handler, &names().lock) {
        Some(lock) => reentrant_lock::free_if_stopped(lock.bind(handler.py())),
        None => object::clear_error(handler.py()),
    }
}

/// The value that `Handler.handle` returns for a record that passed all filters.
pub fn passed_filters(record: Object<'_, '_>) -> *mut PyObject {
    if cfg!(Py_3_12) { Owned::of(&record).into_ptr() } else { object::truth(record.py(), true) }
}

/// Runs the stock method on a record. If the text of the record's message was already made, the stock method gets that
/// text.
pub fn with_made_text(record: Object<'_, '_>, stock: impl FnOnce() -> *mut PyObject) -> *mut PyObject {
    let py = record.py();
    let made = object::attribute(record, &names().msg)
        .and_then(|message| Some((message::take_made(message.bind(py))?, message)));
    let Some((made, message)) = made else { return stock() };
    let set = |value: &Owned| {
        // SAFETY: live objects, and the thread is attached.
        if unsafe { ffi::PyObject_SetAttr(record.as_ptr(), names().msg.as_ptr(), value.as_ptr()) } != 0 {
            object::clear_error(py);
        }
    };
    set(&made);
    let result = stock();
    let _error = object::SavedError::take(py);
    set(&message);
    result
}
