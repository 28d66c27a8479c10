//! Native methods that stand in the place of `logging`'s own, and the stock functions behind them.
//!
//! Stop on the line: *call site* into *capture*. Each is a true method descriptor of the stdlib class
//! (`PyDescr_NewMethod`), called by vectorcall without a bound method. A method that logspool cannot serve calls the
//! stock function with the same arguments, from no Python frame of its own: `findCaller` counts frames as ever.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::adoption;
use crate::capture::{self, Level, Outcome};
use crate::emit;
use crate::hooks;
use crate::leaving;
use crate::message;
use crate::object::{self, Call, ErrorKept, Owned};
use crate::options;
use crate::prepare;

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
    /// `logspool.SinkHandler.emit`
    SinkEmit,
    /// `logspool.SinkHandler.flush`
    SinkFlush,
    /// `logging.handlers.QueueHandler.prepare`
    QueuePrepare,
}

const METHODS: usize = 24;

/// Those of them in `logging` itself.
const LOGGING_METHODS: usize = 15;

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
        let _turn = leaving::Turn::take();
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

/// Does a call natively if that can be. `None`: stock logging does it.
#[inline(always)]
unsafe fn native_call(logger: *mut PyObject, level: Level, call: Call) -> Option<*mut PyObject> {
    // SAFETY: passed on.
    match unsafe { capture::log(logger, level, call) } {
        Outcome::Done => Some(object::none()),
        Outcome::Stock => None,
        Outcome::Raised => Some(ptr::null_mut()),
    }
}

#[inline(always)]
unsafe fn level_call(
    method: Method,
    number: u16,
    gate: usize,
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls a `METH_FASTCALL | METH_KEYWORDS` method; the descriptor checked `logger`'s type.
    unsafe {
        let count = count as usize;
        // A message given by keyword is stock logging's.
        if count >= 1 {
            let level = Level { number, gate, object: level_object(gate) };
            if let Some(result) = native_call(logger, level, Call { arguments, count, keywords }) {
                return result;
            }
            return stock_call(method, logger, Call { arguments, count, keywords }, 0);
        }
        call_stock(method, logger, arguments, count, keywords)
    }
}

/// Leaves a call to stock logging whose native way ended before it left a trace. The text of the message, argument
/// number `index`, is not made a second time.
#[cold]
#[inline(never)]
unsafe fn stock_call(method: Method, logger: *mut PyObject, call: Call, index: usize) -> *mut PyObject {
    let Call { arguments, count, keywords } = call;
    // SAFETY: as the caller says: `count` live arguments and one per keyword.
    unsafe {
        let Some(made) = message::take_made(*arguments.add(index)) else {
            return call_stock(method, logger, arguments, count, keywords);
        };
        let named = if keywords.is_null() { 0 } else { ffi::PyTuple_GET_SIZE(keywords) as usize };
        let mut values = std::slice::from_raw_parts(arguments, count + named).to_vec();
        values[index] = made.as_ptr();
        call_stock(method, logger, values.as_ptr(), count, keywords)
    }
}

/// The level of `Logger.log`; `None` when it is nothing usual.
#[inline(always)]
unsafe fn level_of(object: *mut PyObject) -> Option<Level> {
    // SAFETY: a live object; its exact type is checked first.
    unsafe {
        if ffi::Py_TYPE(object) != &raw mut ffi::PyLong_Type {
            return None;
        }
        let number = crate::values::small_int(object).and_then(|number| u16::try_from(number).ok())?;
        let gate = match number {
            10 | 20 | 30 | 40 | 50 => usize::from(number / 10 - 1),
            _ => usize::MAX,
        };
        Some(Level { number, gate, object })
    }
}

static LEVELS: OnceLock<[Owned; 5]> = OnceLock::new();

#[inline(always)]
fn level_object(gate: usize) -> *mut PyObject {
    LEVELS.get().map_or(ptr::null_mut(), |levels| levels[gate].as_ptr())
}

/// Makes the five level objects. Called at module initialisation.
///
/// # Safety
///
/// Attached.
pub unsafe fn init() -> bool {
    // SAFETY: attached; small ints cannot fail in practice.
    let levels = [10, 20, 30, 40, 50].map(|number| unsafe { Owned::steal(ffi::PyLong_FromLong(number)) });
    if levels.iter().any(Option::is_none) {
        return false;
    }
    let _ = LEVELS.set(levels.map(|level| level.expect("checked above")));
    true
}

macro_rules! level_methods {
    ($($function:ident: $method:ident, $number:literal, $gate:literal;)*) => {
        $(
            unsafe extern "C" fn $function(
                logger: *mut PyObject,
                arguments: *const *mut PyObject,
                count: ffi::Py_ssize_t,
                keywords: *mut PyObject,
            ) -> *mut PyObject {
                // SAFETY: called by CPython with a logger.
                unsafe { level_call(Method::$method, $number, $gate, logger, arguments, count, keywords) }
            }
        )*
    };
}

level_methods! {
    debug: Debug, 10, 0;
    info: Info, 20, 1;
    warning: Warning, 30, 2;
    error: Error, 40, 3;
    critical: Critical, 50, 4;
}

unsafe extern "C" fn log(
    logger: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a logger.
    unsafe {
        let count = count as usize;
        if count >= 2 {
            let call = Call { arguments, count, keywords };
            if let Some(result) = level_of(*arguments).and_then(|level| native_call(logger, level, call.rest())) {
                return result;
            }
            return stock_call(Method::Log, logger, call, 1);
        }
        call_stock(Method::Log, logger, arguments, count, keywords)
    }
}

/// Whether a barrier was passed. Where not, its error is set.
///
/// # Safety
///
/// Attached.
pub unsafe fn passed<T>(barrier: PyResult<T>) -> bool {
    // SAFETY: attached, as the caller says.
    barrier.map_err(|error| error.restore(unsafe { Python::assume_attached() })).is_ok()
}

/// A barrier on the handler that is removed.
unsafe extern "C" fn remove_handler(
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
            unsafe extern "C" fn $function(
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
    sink_flush: SinkFlush, flush_queue;
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
            unsafe extern "C" fn $function(
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

unsafe extern "C" fn handler_handle(
    handler: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with a handler.
    unsafe { emit::handle(handler, arguments, count, keywords) }
}

unsafe extern "C" fn queue_prepare(
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
    sink_emit: SinkEmit;
}

type WithKeywords =
    unsafe extern "C" fn(*mut PyObject, *const *mut PyObject, ffi::Py_ssize_t, *mut PyObject) -> *mut PyObject;

struct Declared {
    class: &'static str,
    name: &'static CStr,
    doc: &'static CStr,
    method: Method,
    function: WithKeywords,
}

const LOG_DOC: &CStr =
    c"debug($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with the severity of this method's name.";

static DECLARED: [Declared; METHODS] = [
    Declared { class: "Logger", name: c"debug", doc: LOG_DOC, method: Method::Debug, function: debug },
    Declared {
        class: "Logger",
        name: c"info",
        doc: c"info($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'INFO'.",
        method: Method::Info,
        function: info,
    },
    Declared {
        class: "Logger",
        name: c"warning",
        doc: c"warning($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'WARNING'.",
        method: Method::Warning,
        function: warning,
    },
    Declared {
        class: "Logger",
        name: c"error",
        doc: c"error($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'ERROR'.",
        method: Method::Error,
        function: error,
    },
    Declared {
        class: "Logger",
        name: c"critical",
        doc: c"critical($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'CRITICAL'.",
        method: Method::Critical,
        function: critical,
    },
    Declared {
        class: "Logger",
        name: c"log",
        doc: c"log($self, level, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with the integer severity 'level'.",
        method: Method::Log,
        function: log,
    },
    Declared {
        class: "Logger",
        name: c"removeHandler",
        doc: c"removeHandler($self, hdlr, /)\n--\n\nRemove the specified handler, once everything queued for it is written.",
        method: Method::RemoveHandler,
        function: remove_handler,
    },
    Declared {
        class: "StreamHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::StreamEmit,
        function: stream_emit,
    },
    Declared {
        class: "FileHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::FileEmit,
        function: file_emit,
    },
    Declared {
        class: "StreamHandler",
        name: c"flush",
        doc: c"flush($self, /)\n--\n\nWait until everything queued is written, then flush the stream.",
        method: Method::StreamFlush,
        function: stream_flush,
    },
    Declared {
        class: "StreamHandler",
        name: c"setStream",
        doc: c"setStream($self, stream, /)\n--\n\nSet the stream, once everything queued for the old one is written.",
        method: Method::SetStream,
        function: set_stream,
    },
    Declared {
        class: "FileHandler",
        name: c"close",
        doc: c"close($self, /)\n--\n\nWait until everything queued is written, then close the stream.",
        method: Method::FileClose,
        function: file_close,
    },
    Declared {
        class: "Handler",
        name: c"close",
        doc: c"close($self, /)\n--\n\nWait until everything queued is written, then tidy up.",
        method: Method::HandlerClose,
        function: handler_close,
    },
    Declared {
        class: "Handler",
        name: c"handleError",
        doc: c"handleError($self, record)\n--\n\nReport an error of emit(), after what is queued for standard error.",
        method: Method::HandleError,
        function: handle_error,
    },
    Declared {
        class: "Handler",
        name: c"handle",
        doc: c"handle($self, record)\n--\n\nEmit the specified record unless a filter drops it.",
        method: Method::HandlerHandle,
        function: handler_handle,
    },
    Declared {
        class: "BaseRotatingHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::RotatingEmit,
        function: rotating_emit,
    },
    Declared {
        class: "WatchedFileHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::WatchedEmit,
        function: watched_emit,
    },
    Declared {
        class: "RotatingFileHandler",
        name: c"doRollover",
        doc: ROLLOVER_DOC,
        method: Method::SizeRollover,
        function: size_rollover,
    },
    Declared {
        class: "TimedRotatingFileHandler",
        name: c"doRollover",
        doc: ROLLOVER_DOC,
        method: Method::TimeRollover,
        function: time_rollover,
    },
    Declared {
        class: "RotatingFileHandler",
        name: c"shouldRollover",
        doc: QUESTION_DOC,
        method: Method::SizeQuestion,
        function: size_question,
    },
    Declared {
        class: "TimedRotatingFileHandler",
        name: c"shouldRollover",
        doc: QUESTION_DOC,
        method: Method::TimeQuestion,
        function: time_question,
    },
    Declared {
        class: "SinkHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nQueue a record.",
        method: Method::SinkEmit,
        function: sink_emit,
    },
    Declared {
        class: "SinkHandler",
        name: c"flush",
        doc: c"flush($self, /)\n--\n\nWait until the sink has everything that is queued.",
        method: Method::SinkFlush,
        function: sink_flush,
    },
    Declared {
        class: "QueueHandler",
        name: c"prepare",
        doc: c"prepare($self, record)\n--\n\nReturn a copy of the record for the queue, its message and arguments merged.",
        method: Method::QueuePrepare,
        function: queue_prepare,
    },
];

const ROLLOVER_DOC: &CStr = c"doRollover($self, /)\n--\n\nDo a rollover, once everything queued is written.";

const QUESTION_DOC: &CStr =
    c"shouldRollover($self, record)\n--\n\nSay whether a rollover is due, once everything queued is written.";

/// Class name and method name of every method of `logging` that `install()` replaces. Those of `logging.handlers`
/// follow when they are needed.
pub fn declared() -> impl Iterator<Item = (&'static str, &'static str)> {
    DECLARED[..LOGGING_METHODS].iter().map(|method| (method.class, method.name.to_str().expect("an ASCII literal")))
}

/// Makes the native method `class.name`, with `function` behind it.
///
/// # Safety
///
/// `class` is a live type, the thread attached. Null with an error set when CPython cannot make it or nothing of
/// that name is declared.
pub unsafe fn descriptor(class: *mut ffi::PyTypeObject, owner: &str, name: &str, function: Owned) -> *mut PyObject {
    let Some(declared) = DECLARED.iter().find(|method| method.class == owner && method.name.to_str() == Ok(name))
    else {
        // SAFETY: attached.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_KeyError, c"no such native method".as_ptr()) };
        return ptr::null_mut();
    };
    set_stock(declared.method, function);
    // Leaked: a descriptor points to its definition for ever, and there are a dozen of them.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: declared.name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: declared.function },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: declared.doc.as_ptr(),
    }));
    // SAFETY: a live class and a definition that lives for ever.
    unsafe { ffi::PyDescr_NewMethod(class, definition) }
}

/// Makes `__setattr__` or `__delattr__` for a class.
///
/// # Safety
///
/// As for [`descriptor`].
pub unsafe fn attribute_hook(class: *mut ffi::PyTypeObject, delete: bool) -> *mut PyObject {
    let (name, function): (&CStr, ffi::PyCFunctionFast) =
        if delete { (c"__delattr__", hooks::delete_attribute) } else { (c"__setattr__", hooks::set_attribute) };
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: function },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: c"As object's, and logspool looks whether the attribute matters.".as_ptr(),
    }));
    // SAFETY: as above.
    unsafe { ffi::PyDescr_NewMethod(class, definition) }
}
