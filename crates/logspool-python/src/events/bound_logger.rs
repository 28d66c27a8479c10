//! The native `_proxy_to_logger` of structlog's bound loggers: makes the event dict, runs the processors on it, and
//! calls the wrapped logger with their result.

use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyTuple, PyType};

use crate::calls::handler_methods::methods;
use crate::calls::methods;
use crate::interpreter::dict::NewDict;
use crate::interpreter::leaving;
use crate::interpreter::list::ListWalk;
use crate::interpreter::names::names;
use crate::interpreter::native_method::WithKeywords;
use crate::interpreter::object::{self, Call, Object, Owned};

/// The functions of structlog's classes that native methods replace, by the number of the method. Each does every
/// unusual call.
static OWN: [OnceLock<Owned>; METHODS.len()] = [const { OnceLock::new() }; METHODS.len()];

/// The exception `structlog.DropEvent`.
static DROP_EVENT: OnceLock<Owned> = OnceLock::new();

/// The text of structlog's own error.
const NO_RESULT: &str = "Last processor didn't return an appropriate value.  Valid return values are a dict, a tuple of \
                         (args, kwargs), bytes, or a str.";

const DOC: &CStr = c"Run the processors and call the wrapped logger.";

/// The native methods: `_proxy_to_logger`, and the methods of levels, which call it with their name.
const METHODS: [(&CStr, WithKeywords); 6] = [
    (c"_proxy_to_logger", proxy_to_logger),
    (c"debug", debug),
    (c"info", info),
    (c"warning", warning),
    (c"error", error),
    (c"critical", critical),
];

/// Make the native method `name` for a class of bound loggers, which calls structlog's own `function` for unusual
/// calls.
#[pyfunction]
#[pyo3(signature = (class, name, function, drop_event, /))]
pub fn bound_logger_method<'py>(
    class: &Bound<'py, PyType>,
    name: &str,
    function: &Bound<'py, PyAny>,
    drop_event: &Bound<'py, PyType>,
) -> PyResult<Bound<'py, PyAny>> {
    let index = METHODS.iter().position(|(known, _)| known.to_str() == Ok(name));
    let index = index.ok_or_else(|| PyValueError::new_err(format!("no native method is named {name}")))?;
    let _ = DROP_EVENT.set(Owned::of(drop_event));
    let _ = OWN[index].set(Owned::of(function));
    methods::with_keywords(class, METHODS[index].0, DOC, METHODS[index].1)
}

methods! {
    proxy_to_logger: call_method;
    debug: |bound, call| call_level(1, bound, call);
    info: |bound, call| call_level(2, bound, call);
    warning: |bound, call| call_level(3, bound, call);
    error: |bound, call| call_level(4, bound, call);
    critical: |bound, call| call_level(5, bound, call);
}

/// The native `_proxy_to_logger(method_name, event=None, **event_kw)`.
fn call_method(bound: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let prepared = match call.positional() {
        [method] => prepare(bound, &call, None).map(|prepared| (*method, prepared)),
        [method, event] => prepare(bound, &call, Some(*event)).map(|prepared| (*method, prepared)),
        _ => None,
    };
    match prepared {
        Some((method, prepared)) if object::is_exact_str(method) => finish(prepared, method),
        _ => by_structlog(0, bound, &call),
    }
}

/// The native method of a level, `info(event, **event_kw)`. structlog merges arguments of the event.
fn call_level(index: usize, bound: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    let prepared = match call.positional() {
        [event] => prepare(bound, &call, Some(*event)),
        _ => None,
    };
    match prepared {
        Some(prepared) => finish(prepared, names().structlog_methods()[index - 1].bind(call.py())),
        None => by_structlog(index, bound, &call),
    }
}

/// Runs the processors and calls the method `method` of the logger. Returns null with an exception set.
fn finish(prepared: Prepared<'_>, method: Object<'_, '_>) -> *mut PyObject {
    let py = method.py();
    let Prepared { logger, processors, event } = prepared;
    if let Some(result) = run(&logger, &processors, method, event) {
        return result.into_ptr();
    }
    // SAFETY: an exception is set, and the class is live.
    let is_dropped = DROP_EVENT.get().is_some_and(|class| unsafe { ffi::PyErr_ExceptionMatches(class.as_ptr()) } != 0);
    if is_dropped {
        object::clear_error(py);
        return object::none(py);
    }
    ptr::null_mut()
}

/// What a call needs: the wrapped logger, the processors, and the event dict.
struct Prepared<'py> {
    logger: Owned,
    processors: Owned,
    event: NewDict<'py>,
}

/// Calls structlog's own method.
fn by_structlog(index: usize, bound: Object<'_, '_>, call: &Call<'_, '_>) -> *mut PyObject {
    let Some(function) = OWN[index].get() else { return object::none(call.py()) };
    let values: Vec<_> = std::iter::once(&bound).chain(call.values()).map(|value| value.as_ptr()).collect();
    // SAFETY: the values of the call after the bound logger; its keywords are null or a tuple of `str`.
    unsafe { leaving::vectorcall(function.bind(call.py()), values.as_ptr(), call.count() + 1, call.keywords()) }
}

/// Makes the event dict. `None` if only structlog can do the call; nothing was changed then.
fn prepare<'py>(bound: Object<'_, 'py>, call: &Call<'_, 'py>, event: Option<Object<'_, 'py>>) -> Option<Prepared<'py>> {
    let names = names();
    let py = bound.py();
    let context = object::attribute(bound, &names.structlog_context)?;
    let context = context.bind(py);
    if !context.is_exact_instance_of::<PyDict>() {
        return None;
    }
    let processors = object::attribute(bound, &names.structlog_processors)?;
    let is_sequence = object::is_exact_list(processors.bind(py)) || object::tuple_items(processors.bind(py)).is_some();
    if !is_sequence {
        return None;
    }
    let logger = object::attribute(bound, &names.structlog_logger)?;
    let fields = NewDict::copy_of(context).ok()?;
    for (name, value) in call.named() {
        if [&names.event, &names.method_name, &names.self_].iter().any(|taken| object::has_text(name, taken)) {
            return None;
        }
        fields.set_key(name, value).ok()?;
    }
    if let Some(event) = event.filter(|event| !event.is_none()) {
        fields.set(&names.event, event).ok()?;
    }
    Some(Prepared { logger, processors, event: fields })
}

/// Runs the processors and calls the logger; `None` with an exception set.
fn run(logger: &Owned, processors: &Owned, method: Object<'_, '_>, event: NewDict<'_>) -> Option<Owned> {
    let py = method.py();
    let mut event = event.into_owned();
    if let Some(items) = object::tuple_items(processors.bind(py)) {
        for processor in items {
            event = process(*processor, logger, method, event)?;
        }
    } else {
        let mut walk = ListWalk::of(processors.bind(py));
        while let Some(processor) = walk.next() {
            event = process(processor.bind(py), logger, method, event)?;
        }
    }
    let result = event.bind(py);
    if object::is_str(result) || result.is_instance_of::<PyBytes>() || result.is_instance_of::<PyByteArray>() {
        return leaving::method_of_one(logger.bind(py), &Owned::of(&method), result);
    }
    let called = (|| {
        let (arguments, keywords) = if let Ok(both) = result.cast::<PyTuple>() {
            match both.len() {
                2 => (both.get_item(0)?, both.get_item(1)?),
                0 | 1 => {
                    let error = format!("not enough values to unpack (expected 2, got {})", both.len());
                    return Err(PyValueError::new_err(error));
                }
                count => {
                    let got = if cfg!(Py_3_14) { format!(", got {count}") } else { String::new() };
                    return Err(PyValueError::new_err(format!("too many values to unpack (expected 2{got})")));
                }
            }
        } else if result.is_instance_of::<PyDict>() {
            (PyTuple::empty(py).into_any(), result.to_owned())
        } else {
            return Err(PyValueError::new_err(NO_RESULT));
        };
        let arguments: Vec<Bound<'_, PyAny>> = arguments.try_iter()?.collect::<PyResult<_>>()?;
        let given = PyDict::new(py);
        given.update(keywords.cast()?)?;
        let function = logger.bind(py).getattr(method.cast::<pyo3::types::PyString>()?)?;
        function.call(PyTuple::new(py, arguments)?, Some(&given))
    })();
    match called {
        Ok(result) => Some(Owned::of(&result)),
        Err(error) => {
            error.restore(py);
            None
        }
    }
}

/// Calls one processor; `None` with an exception set.
fn process(processor: Object<'_, '_>, logger: &Owned, method: Object<'_, '_>, event: Owned) -> Option<Owned> {
    // The slot before the values is free for the callee.
    let values = [ptr::null_mut(), logger.as_ptr(), method.as_ptr(), event.as_ptr()];
    // SAFETY: three live objects after a slot that the callee may use, and no keywords.
    unsafe {
        let count = 3 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
        Owned::steal(leaving::vectorcall(processor, values.as_ptr().add(1), count, ptr::null_mut()))
    }
}
