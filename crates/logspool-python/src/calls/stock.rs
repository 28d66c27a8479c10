//! The stock functions after the native methods: what logspool cannot serve, they do from its start.
//!
//! They are called with the same arguments, from no Python frame of logspool's own: `findCaller` counts frames as ever.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use pyo3::ffi::{self, PyObject};

use crate::calls::message;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Owned};

/// Every method that is replaced. The number is the index of its stock function.
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
    /// `logspool.ServiceHandler.emit`
    ServiceEmit,
    /// `logspool.ServiceHandler.flush`
    ServiceFlush,
    /// `logging.handlers.QueueHandler.prepare`
    QueuePrepare,
}

/// How many methods are replaced.
pub const METHODS: usize = 24;

static STOCK: [OnceLock<Owned>; METHODS] = [const { OnceLock::new() }; METHODS];

/// Sets the stock function behind a method. The first call counts.
pub fn set_stock(method: Method, function: Owned) {
    let _ = STOCK[method as usize].set(function);
}

/// The stock function behind a method.
pub fn stock(method: Method) -> *mut PyObject {
    STOCK[method as usize].get().map_or(ptr::null_mut(), Owned::as_ptr)
}

/// Arguments that are passed on without the heap.
const INLINE: usize = 12;

/// Calls the stock function of `method` with `object` in front of the arguments.
///
/// # Safety
///
/// As for a `METH_FASTCALL | METH_KEYWORDS` function; attached.
pub unsafe fn call_stock(
    method: Method,
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: `arguments` holds `count` positional values and one per keyword.
    unsafe {
        let function = stock(method);
        if function.is_null() {
            return object::none();
        }
        #[cfg(Py_GIL_DISABLED)]
        let _turn = leaving::StockTurn::take();
        let extra = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) as usize };
        let total = count + extra;
        if total < INLINE {
            let mut values = [const { MaybeUninit::<*mut PyObject>::uninit() }; INLINE];
            values[0].write(object);
            ptr::copy_nonoverlapping(arguments, values.as_mut_ptr().add(1).cast(), total);
            leaving::vectorcall(function, values.as_ptr().cast(), count + 1, keywords)
        } else {
            let mut values = Vec::with_capacity(total + 1);
            values.push(object);
            values.extend_from_slice(std::slice::from_raw_parts(arguments, total));
            leaving::vectorcall(function, values.as_ptr(), count + 1, keywords)
        }
    }
}

/// What `Handler.handle` returns for a record that no filter dropped.
///
/// # Safety
///
/// A live object; attached.
pub unsafe fn passed_filters(record: *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects; a new reference is made.
    unsafe {
        let answer = if cfg!(Py_3_12) { record } else { ffi::Py_True() };
        ffi::Py_INCREF(answer);
        answer
    }
}

/// Runs a stock method on a record whose message may have been made into text already: not a second time.
/// # Safety
///
/// `record` is live; attached.
pub unsafe fn with_made_text(record: *mut PyObject, stock: impl FnOnce() -> *mut PyObject) -> *mut PyObject {
    // SAFETY: live objects, attached.
    unsafe {
        let made = object::attribute(record, names().msg.as_ptr())
            .and_then(|message| Some((message::take_made(message.as_ptr())?, message)));
        let Some((made, message)) = made else { return stock() };
        let set = |value: &Owned| {
            if ffi::PyObject_SetAttr(record, names().msg.as_ptr(), value.as_ptr()) != 0 {
                ffi::PyErr_Clear();
            }
        };
        set(&made);
        let result = stock();
        let _error = object::ErrorKept::take();
        set(&message);
        result
    }
}
