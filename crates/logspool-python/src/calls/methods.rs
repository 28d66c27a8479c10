//! Native methods that replace methods of `logging`, and the stock functions that they fall back to.
//!
//! Pipeline stages: *call site* and *capture* (see ARCHITECTURE.md). Each native method is a descriptor of the stdlib
//! class ([`native_method`]). CPython calls it by vectorcall, without a bound method. If logspool cannot serve
//! a call, the method calls the stock function with the same arguments. The method adds no Python frame, so
//! `findCaller` counts the same frames as without logspool.

use std::ffi::CStr;

use pyo3::exceptions::PyKeyError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::calls::stock::{self, Method};
use crate::calls::{adapter, capture, handler_methods};
use crate::interpreter::native_method::{self, MethodSpec, WithKeywords};
use crate::interpreter::object::Owned;
use crate::plans::{hooks, native_log};

/// Number of native methods of the module `logging`; they come first in [`DECLARED`].
const LOGGING_METHODS: usize = 27;

struct MethodRow {
    class: &'static str,
    name: &'static CStr,
    doc: &'static CStr,
    method: Method,
    function: WithKeywords,
}

const LOG_DOC: &CStr =
    c"debug($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with the severity of this method's name.";

static DECLARED: [MethodRow; stock::METHODS] = [
    MethodRow { class: "Logger", name: c"debug", doc: LOG_DOC, method: Method::Debug, function: capture::debug },
    MethodRow {
        class: "Logger",
        name: c"info",
        doc: c"info($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'INFO'.",
        method: Method::Info,
        function: capture::info,
    },
    MethodRow {
        class: "Logger",
        name: c"warning",
        doc: c"warning($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'WARNING'.",
        method: Method::Warning,
        function: capture::warning,
    },
    MethodRow {
        class: "Logger",
        name: c"error",
        doc: c"error($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'ERROR'.",
        method: Method::Error,
        function: capture::error,
    },
    MethodRow {
        class: "Logger",
        name: c"critical",
        doc: c"critical($self, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with severity 'CRITICAL'.",
        method: Method::Critical,
        function: capture::critical,
    },
    MethodRow {
        class: "Logger",
        name: c"log",
        doc: c"log($self, level, msg, /, *args, **kwargs)\n--\n\nLog 'msg % args' with the integer severity 'level'.",
        method: Method::Log,
        function: capture::log,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"debug",
        doc: c"debug($self, msg, /, *args, **kwargs)\n--\n\nDelegate a call of severity 'DEBUG' to the logger.",
        method: Method::AdapterDebug,
        function: adapter::debug,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"info",
        doc: c"info($self, msg, /, *args, **kwargs)\n--\n\nDelegate a call of severity 'INFO' to the logger.",
        method: Method::AdapterInfo,
        function: adapter::info,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"warning",
        doc: c"warning($self, msg, /, *args, **kwargs)\n--\n\nDelegate a call of severity 'WARNING' to the logger.",
        method: Method::AdapterWarning,
        function: adapter::warning,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"error",
        doc: c"error($self, msg, /, *args, **kwargs)\n--\n\nDelegate a call of severity 'ERROR' to the logger.",
        method: Method::AdapterError,
        function: adapter::error,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"exception",
        doc: c"exception($self, msg, /, *args, exc_info=True, **kwargs)\n--\n\nLog an exception with severity 'ERROR'.",
        method: Method::AdapterException,
        function: adapter::exception,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"critical",
        doc: c"critical($self, msg, /, *args, **kwargs)\n--\n\nDelegate a call of severity 'CRITICAL' to the logger.",
        method: Method::AdapterCritical,
        function: adapter::critical,
    },
    MethodRow {
        class: "LoggerAdapter",
        name: c"log",
        doc: c"log($self, level, msg, /, *args, **kwargs)\n--\n\nLog with the contextual information of this adapter.",
        method: Method::AdapterLog,
        function: adapter::log,
    },
    MethodRow {
        class: "Logger",
        name: c"removeHandler",
        doc: c"removeHandler($self, hdlr, /)\n--\n\nRemove the specified handler, once everything queued for it is written.",
        method: Method::RemoveHandler,
        function: handler_methods::remove_handler,
    },
    MethodRow {
        class: "StreamHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::StreamEmit,
        function: handler_methods::stream_emit,
    },
    MethodRow {
        class: "FileHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::FileEmit,
        function: handler_methods::file_emit,
    },
    MethodRow {
        class: "StreamHandler",
        name: c"flush",
        doc: c"flush($self, /)\n--\n\nWait until everything queued is written, then flush the stream.",
        method: Method::StreamFlush,
        function: handler_methods::stream_flush,
    },
    MethodRow {
        class: "StreamHandler",
        name: c"setStream",
        doc: c"setStream($self, stream, /)\n--\n\nSet the stream, once everything queued for the old one is written.",
        method: Method::SetStream,
        function: handler_methods::set_stream,
    },
    MethodRow {
        class: "FileHandler",
        name: c"close",
        doc: c"close($self, /)\n--\n\nWait until everything queued is written, then close the stream.",
        method: Method::FileClose,
        function: handler_methods::file_close,
    },
    MethodRow {
        class: "Handler",
        name: c"close",
        doc: c"close($self, /)\n--\n\nWait until everything queued is written, then tidy up.",
        method: Method::HandlerClose,
        function: handler_methods::handler_close,
    },
    MethodRow {
        class: "Handler",
        name: c"handleError",
        doc: c"handleError($self, record)\n--\n\nReport an error of emit(), after what is queued for standard error.",
        method: Method::HandleError,
        function: handler_methods::handle_error,
    },
    MethodRow {
        class: "Handler",
        name: c"handle",
        doc: c"handle($self, record)\n--\n\nEmit the specified record unless a filter drops it.",
        method: Method::HandlerHandle,
        function: handler_methods::handler_handle,
    },
    MethodRow {
        class: "LogRecord",
        name: c"__init__",
        doc: c"__init__($self, name, level, pathname, lineno, msg, args, exc_info, func=None, sinfo=None, **kwargs)\n--\n\nInitialize a logging record with interesting information.",
        method: Method::RecordInit,
        function: handler_methods::record_init,
    },
    MethodRow {
        class: "LogRecord",
        name: c"getMessage",
        doc: c"getMessage($self, /)\n--\n\nReturn the message of this record, with its arguments filled in.",
        method: Method::RecordMessage,
        function: handler_methods::record_message,
    },
    MethodRow {
        class: "Formatter",
        name: c"format",
        doc: c"format($self, record)\n--\n\nFormat the specified record as text.",
        method: Method::FormatterFormat,
        function: handler_methods::formatter_format,
    },
    MethodRow {
        class: "Formatter",
        name: c"formatTime",
        doc: c"formatTime($self, record, datefmt=None)\n--\n\nReturn the creation time of the specified record as text.",
        method: Method::FormatterTime,
        function: handler_methods::formatter_time,
    },
    MethodRow {
        class: "Formatter",
        name: c"formatMessage",
        doc: c"formatMessage($self, record)\n--\n\nReturn the line of the specified record without its exception and its stack.",
        method: Method::FormatterMessage,
        function: handler_methods::formatter_message,
    },
    MethodRow {
        class: "BaseRotatingHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::RotatingEmit,
        function: handler_methods::rotating_emit,
    },
    MethodRow {
        class: "WatchedFileHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nEmit a record.",
        method: Method::WatchedEmit,
        function: handler_methods::watched_emit,
    },
    MethodRow {
        class: "RotatingFileHandler",
        name: c"doRollover",
        doc: ROLLOVER_DOC,
        method: Method::SizeRollover,
        function: handler_methods::size_rollover,
    },
    MethodRow {
        class: "TimedRotatingFileHandler",
        name: c"doRollover",
        doc: ROLLOVER_DOC,
        method: Method::TimeRollover,
        function: handler_methods::time_rollover,
    },
    MethodRow {
        class: "RotatingFileHandler",
        name: c"shouldRollover",
        doc: QUESTION_DOC,
        method: Method::SizeQuestion,
        function: handler_methods::size_question,
    },
    MethodRow {
        class: "TimedRotatingFileHandler",
        name: c"shouldRollover",
        doc: QUESTION_DOC,
        method: Method::TimeQuestion,
        function: handler_methods::time_question,
    },
    MethodRow {
        class: "SinkHandler",
        name: c"emit",
        doc: c"emit($self, record, /)\n--\n\nQueue a record.",
        method: Method::SinkEmit,
        function: handler_methods::sink_emit,
    },
    MethodRow {
        class: "SinkHandler",
        name: c"flush",
        doc: c"flush($self, /)\n--\n\nWait until the sink has everything that is queued.",
        method: Method::SinkFlush,
        function: handler_methods::sink_flush,
    },
    MethodRow {
        class: "QueueHandler",
        name: c"prepare",
        doc: c"prepare($self, record)\n--\n\nReturn a copy of the record for the queue, its message and arguments merged.",
        method: Method::QueuePrepare,
        function: handler_methods::queue_prepare,
    },
    MethodRow {
        class: "QueueListener",
        name: c"handle",
        doc: c"handle($self, record)\n--\n\nHandle a record. After the last one of the queue, wait until its line is written.",
        method: Method::ListenerHandle,
        function: handler_methods::listener_handle,
    },
    MethodRow {
        class: "QueueListener",
        name: c"dequeue",
        doc: c"dequeue($self, block)\n--\n\nDequeue a record. Before the listener stops, wait until its lines are written.",
        method: Method::ListenerDequeue,
        function: handler_methods::listener_dequeue,
    },
];

const ROLLOVER_DOC: &CStr = c"doRollover($self, /)\n--\n\nDo a rollover, once everything queued is written.";

const QUESTION_DOC: &CStr =
    c"shouldRollover($self, record)\n--\n\nSay whether a rollover is due, once everything queued is written.";

/// Class name and method name of every method of `logging` that `install()` replaces. Methods of `logging.handlers` are
/// replaced later, when the program first uses a handler that needs them.
pub fn declared() -> impl Iterator<Item = (&'static str, &'static str)> {
    DECLARED[..LOGGING_METHODS].iter().map(|method| (method.class, method.name.to_str().expect("an ASCII literal")))
}

/// Makes the native method `class.name`, which falls back to the stock function `function`.
///
/// # Errors
///
/// `KeyError` if no method of that name is declared; otherwise the error that CPython raised while making the method.
pub fn descriptor<'py>(
    class: &Bound<'py, PyType>,
    owner: &str,
    name: &str,
    function: Owned,
) -> PyResult<Bound<'py, PyAny>> {
    let declared = DECLARED.iter().find(|method| method.class == owner && method.name.to_str() == Ok(name));
    let declared = declared.ok_or_else(|| PyKeyError::new_err("no such native method"))?;
    stock::set_stock(declared.method, function);
    let spec = MethodSpec { name: declared.name, doc: declared.doc, function: declared.function };
    let made = native_method::new(class, &spec)?;
    if declared.method == Method::Log {
        native_log::set(&made);
    }
    Ok(made)
}

/// Makes a native method for a class of another package.
///
/// # Errors
///
/// The error that CPython raised while making the method.
pub fn with_keywords<'py>(
    class: &Bound<'py, PyType>,
    name: &'static CStr,
    doc: &'static CStr,
    function: WithKeywords,
) -> PyResult<Bound<'py, PyAny>> {
    native_method::new(class, &MethodSpec { name, doc, function })
}

/// Makes the native `__setattr__` for a class, or its `__delattr__` if `delete` is true.
///
/// # Errors
///
/// The error that CPython raised while making the method.
pub fn attribute_hook<'py>(class: &Bound<'py, PyType>, delete: bool) -> PyResult<Bound<'py, PyAny>> {
    let (name, function): (&CStr, ffi::PyCFunctionFast) =
        if delete { (c"__delattr__", hooks::delete_attribute) } else { (c"__setattr__", hooks::set_attribute) };
    let definition = ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFast: function },
        ml_flags: ffi::METH_FASTCALL,
        ml_doc: c"As object's; logspool then checks whether the attribute affects its plans.".as_ptr(),
    };
    // Leaked on purpose: a descriptor refers to its definition until the process ends. There are ten of them.
    native_method::descriptor(class, Box::leak(Box::new(definition)))
}
