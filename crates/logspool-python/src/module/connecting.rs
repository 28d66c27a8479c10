//! Python functions that give native code the functions and objects of `python/logspool/` that it uses.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use logspool_record::address::{ServiceAddress, TlsIdentity};
use logspool_record::traceback::OriginMessages;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PyString, PyTuple, PyType};

use crate::calls::format_time::TimeFunctions;
use crate::calls::{self, adapter, context, formatting, keywords, message, methods, prepare, site};
use crate::interpreter::change_number::{self, ChangeNumber, NumberedDict};
use crate::interpreter::object::Owned;
use crate::interpreter::{call_thread, dict, frame, reentrant_lock, running_loop};
use crate::plans::callbacks::{self, PlanningCallbacks};
use crate::plans::{class_version, handler_states, sink_options, table, text_stream};

/// Set what planning calls: the functions of `python/logspool/adoption/`, and the objects that stock logging reads.
#[pyfunction]
#[pyo3(signature = (*, describe, describe_format, classify_logger, name_of_filter, describe_factory, describe_record_maker, open_streams, logging_globals, logger_methods, lock, record_class, source_file,
    mapping, active_threads, current_thread, thread_class, modules, bound_fields, exception_text, stack_text,
    made_text, record_names))]
#[allow(clippy::too_many_arguments)]
pub fn connect(
    py: Python<'_>,
    describe: Py<PyAny>,
    describe_format: Py<PyAny>,
    classify_logger: Py<PyAny>,
    name_of_filter: Py<PyAny>,
    describe_factory: Py<PyAny>,
    describe_record_maker: Py<PyAny>,
    open_streams: Py<PyAny>,
    logging_globals: Py<PyAny>,
    logger_methods: Vec<Py<PyString>>,
    lock: Py<PyAny>,
    record_class: Py<PyAny>,
    source_file: &str,
    mapping: &Bound<'_, PyAny>,
    active_threads: &Bound<'_, PyDict>,
    current_thread: &Bound<'_, PyAny>,
    thread_class: &Bound<'_, PyType>,
    modules: &Bound<'_, PyDict>,
    bound_fields: &Bound<'_, PyAny>,
    exception_text: &Bound<'_, PyAny>,
    stack_text: &Bound<'_, PyAny>,
    made_text: &Bound<'_, PyAny>,
    record_names: &Bound<'_, PyFrozenSet>,
) -> PyResult<()> {
    if !site::init(py) {
        PyErr::take(py);
        return Err(PyRuntimeError::new_err("CPython has no slot left on code objects (at most 255 exist)"));
    }
    site::set_source_file(source_file);
    message::set_mapping(Owned::of(mapping));
    message::set_made_text(Owned::of(made_text));
    keywords::set_keyword_functions(keywords::KeywordFunctions {
        exception_text: Owned::of(exception_text),
        stack_text: Owned::of(stack_text),
        record_names: Owned::of(record_names),
    });
    let os = py.import("os")?;
    call_thread::set_sources(call_thread::ThreadSources {
        active_threads: NumberedDict::of(active_threads),
        current_thread: Owned::of(current_thread),
        thread_name: Owned::of(&thread_class.getattr("name")?),
    });
    context::set_sources(context::Sources {
        bound_fields: Owned::of(bound_fields),
        os: NumberedDict::of(&os.dict()),
        getpid: Owned::of(&os.getattr("getpid")?),
    });
    running_loop::set_modules(running_loop::Modules {
        modules: NumberedDict::of(modules),
        multiprocessing: Owned::of(PyString::intern(py, "multiprocessing").as_any()),
        asyncio: Owned::of(PyString::intern(py, "asyncio").as_any()),
    });
    let forget = wrap_pyfunction!(forget_dead, py)?.into_any().unbind();
    callbacks::set_callbacks(PlanningCallbacks {
        describe,
        describe_format,
        classify_logger,
        name_of_filter,
        describe_factory,
        describe_record_maker,
        open_streams,
        logging_globals,
        logger_methods,
        lock,
        record_class,
        forget,
    });
    Ok(())
}

/// Set the functions and objects that make the texts of exceptions; see `_traceback.py`.
#[pyfunction]
#[pyo3(signature = (*, is_stock, frame_texts, final_lines, final_line, classes, traceback, linecache, sys, expected,
    cause_message, context_message, interactive_sources, absent_is_final))]
#[allow(clippy::too_many_arguments)]
pub fn set_traceback(
    is_stock: &Bound<'_, PyAny>,
    frame_texts: &Bound<'_, PyAny>,
    final_lines: &Bound<'_, PyAny>,
    final_line: &Bound<'_, PyAny>,
    classes: Vec<Py<PyType>>,
    traceback: &Bound<'_, PyDict>,
    linecache: &Bound<'_, PyDict>,
    sys: &Bound<'_, PyDict>,
    expected: Vec<(Bound<'_, PyDict>, Bound<'_, PyString>, Bound<'_, PyAny>)>,
    cause_message: String,
    context_message: String,
    interactive_sources: Option<Bound<'_, PyDict>>,
    absent_is_final: bool,
) {
    calls::traceback::set_traceback_functions(calls::traceback::TracebackFunctions {
        is_stock: Owned::of(is_stock),
        frame_texts: Owned::of(frame_texts),
        final_lines: Owned::of(final_lines),
        final_line: Owned::of(final_line),
        classes,
        traceback: NumberedDict::of(traceback),
        linecache: NumberedDict::of(linecache),
        sys: Owned::of(sys),
        expected: expected
            .iter()
            .map(|(dict, name, value)| (Owned::of(dict), Owned::of(name), Owned::of(value)))
            .collect(),
        messages: OriginMessages { cause: cause_message, context: context_message },
        interactive_sources: interactive_sources.map(|sources| Owned::of(&sources)),
        absent_is_final,
    });
}

/// Callback of weak references; called when a logger or handler dies.
#[pyfunction]
pub fn forget_dead(reference: &Bound<'_, PyAny>) {
    table::forget(reference);
    handler_states::forget(reference);
}

/// Set the classes whose instances use the queue even if `install()` is not called.
#[pyfunction]
pub fn set_own_classes(classes: &Bound<'_, PyTuple>) {
    callbacks::set_own_classes(Owned::of(classes));
}

/// Set the class of handlers into whose queues calls put their values themselves.
#[pyfunction]
pub fn set_thread_handler(class: &Bound<'_, PyType>) -> PyResult<()> {
    callbacks::set_thread_handler(class)
}

/// Set the function that tells whether adapters of a class have the stock methods, and the class `logging.Logger`.
#[pyfunction]
pub fn set_adapter_classes(is_plain: &Bound<'_, PyAny>, logger: &Bound<'_, PyType>) {
    adapter::set_classes(is_plain, logger);
}

/// Set the function that reopens a handler's stream after its sink has switched to another file; see `_rotation.py`.
#[pyfunction]
pub fn set_catch_up(function: &Bound<'_, PyAny>) {
    handler_states::set_catch_up(Owned::of(function));
}

/// Set the function that lets a handler's stream follow its open sink to another file; see `_rotation.py`.
#[pyfunction]
pub fn set_follow(function: &Bound<'_, PyAny>) {
    handler_states::set_follow(Owned::of(function));
}

/// Set the parts of the standard library's `QueueHandler` that native code needs; see `_queueing.py`.
#[pyfunction]
pub fn set_queue_prepare(
    describe: &Bound<'_, PyAny>,
    class_: &Bound<'_, PyAny>,
    cleared: Vec<Bound<'_, PyString>>,
    copied_otherwise: &Bound<'_, PyDict>,
    lock_class: &Bound<'_, PyAny>,
    queue_classes: Vec<Bound<'_, PyAny>>,
) {
    prepare::set_stock(prepare::StockObjects {
        describe: Owned::of(describe),
        class: Owned::of(class_),
        cleared: cleared.iter().map(|name| Owned::of(name.as_any())).collect(),
        copied_otherwise: Owned::of(copied_otherwise),
        lock_class: Owned::of(lock_class),
        queue_classes: queue_classes.iter().map(Owned::of).collect(),
    });
}

/// Set the stock functions of formatting, by the names of [`formatting::FormattingObjects`]; see `_formatting.py`.
#[pyfunction]
#[pyo3(signature = (functions, time, logging, /))]
pub fn set_stock_formatting(
    functions: &Bound<'_, PyDict>,
    time: &Bound<'_, PyAny>,
    logging: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let get = |name: &str| functions.as_any().get_item(name).map(|function| Owned::of(&function));
    let of_time = |name: &str| time.getattr(name).map(|function| Owned::of(&function));
    formatting::set_stock(formatting::FormattingObjects {
        handler_format: get("handler_format")?,
        format: [get("format")?, get("native_format")?],
        uses_time: get("uses_time")?,
        format_time: [get("format_time")?, get("native_format_time")?],
        format_message: [get("format_message")?, get("native_format_message")?],
        format_stack: get("format_stack")?,
        style_uses_time: get("style_uses_time")?,
        style_format: get("style_format")?,
        percent_format: get("percent_format")?,
        get_message: [get("get_message")?, get("native_get_message")?],
        times: TimeFunctions {
            localtime: get("localtime")?,
            gmtime: get("gmtime")?,
            strftime: get("strftime")?,
            module: Owned::of(time),
            time: of_time("__dict__")?,
            logging: Owned::of(logging),
        },
    });
    Ok(())
}

/// Set the function that waits for deferred formatters; see `_deferring.py`.
#[pyfunction]
pub fn set_drain(function: &Bound<'_, PyAny>) {
    handler_states::set_drain(Owned::of(function));
}

/// Set where text streams count their unwritten text, as byte offsets in `TextIOWrapper` and `BufferedWriter`.
#[pyfunction]
pub fn set_stream_offsets(pending_text: usize, write_end: usize) {
    text_stream::set_offsets(pending_text, write_end);
}

/// Check this interpreter's private frame layout against its public functions. Return what is wrong, or an empty text.
#[pyfunction]
pub fn frame_self_check(py: Python<'_>) -> &'static str {
    frame::self_check(py)
}

/// Check whether numbers follow the changes of dicts, and use them if they do. Return why not, or an empty text.
#[pyfunction]
pub fn dict_self_check(py: Python<'_>) -> PyResult<&'static str> {
    change_number::self_check(py)
}

/// Check the words of a new `RLock` (or of `lock`), and use them if they are as expected. Return why not, or an empty
/// text.
#[pyfunction]
#[pyo3(signature = (lock=None, /))]
pub fn lock_self_check(py: Python<'_>, lock: Option<Bound<'_, PyAny>>) -> PyResult<&'static str> {
    let lock = match lock {
        Some(lock) => lock,
        None => py.import("_thread")?.call_method0("RLock")?,
    };
    reentrant_lock::self_check(&lock)
}

/// Check whether the version tag of a class that no other code uses follows its changes. Return what is wrong, or an
/// empty text.
#[pyfunction]
pub fn class_self_check(class: &Bound<'_, PyType>) -> PyResult<&'static str> {
    class_version::self_check(class)
}

/// Set whether native code uses the private frame layout.
#[pyfunction]
pub fn use_direct_frames(allowed: bool) {
    frame::use_direct(allowed);
}

/// Return the words of an object's C struct. `_streams.py` compares them to find offsets.
#[pyfunction]
pub fn object_words(object: &Bound<'_, PyAny>) -> Vec<i64> {
    // SAFETY: each instance occupies at least the basic size of its type, so every word read is inside it.
    unsafe {
        let class = ffi::Py_TYPE(object.as_ptr());
        let words = (*class).tp_basicsize as usize / 8;
        (0..words).map(|index| object.as_ptr().cast::<i64>().add(index).read()).collect()
    }
}

/// Return a word that changes with each change of a dict, as the dict, the distance in bytes from its address modulo
/// 2**64, a mask and the value. It is valid as long as the dict lives.
///
/// Where changes are not numbered (free-threaded builds from 3.14 on), it is the number of items.
#[pyfunction]
pub fn dict_word<'py>(dict: &Bound<'py, PyDict>) -> (Bound<'py, PyDict>, usize, u64, u64) {
    let place = ChangeNumber::of(dict).map_or_else(|| dict::length_place(dict), ChangeNumber::place);
    // SAFETY: a word of the dict, or a word that lives as long.
    let value = unsafe { (*place).load(Relaxed) };
    (dict.clone(), (place as usize).wrapping_sub(dict.as_ptr() as usize), u64::MAX, value)
}

/// Return every kind of sink as a dict with these keys: kind, about, takes ("lines" or "entries"), options.
#[pyfunction]
pub fn sink_table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    sink_options::table(py)
}

/// Check the options of a sink, and return its name as statistics show it.
#[pyfunction]
#[pyo3(signature = (kind, options, /))]
pub fn check_sink(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
    sink_options::check(kind, options)
}

/// Return (class name, method name) of every method that `install()` replaces.
#[pyfunction]
pub fn native_methods() -> Vec<(&'static str, &'static str)> {
    methods::declared().collect()
}

/// Make the native method `class.name`; it falls back to `function`.
#[pyfunction]
#[pyo3(signature = (class, owner, name, function, /))]
pub fn native_method<'py>(
    class: &Bound<'py, PyType>,
    owner: &str,
    name: &str,
    function: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    methods::descriptor(class, owner, name, Owned::of(function))
}

/// Make `__setattr__` (or `__delattr__`) for a class whose attributes plans depend on.
#[pyfunction]
#[pyo3(signature = (class, delete, /))]
pub fn attribute_hook<'py>(class: &Bound<'py, PyType>, delete: bool) -> PyResult<Bound<'py, PyAny>> {
    methods::attribute_hook(class, delete)
}

/// Check the address of a service and the TLS options. Return the address for display and the complete address.
#[pyfunction]
#[pyo3(signature = (address, authorities, certificate, key, server_name, /))]
pub fn service_address(
    address: &str,
    authorities: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    server_name: Option<String>,
) -> PyResult<(String, String)> {
    let identity = TlsIdentity { authorities, certificate, key, server_name };
    match address.parse::<ServiceAddress>().and_then(|address| address.with_identity(identity)) {
        Ok(address) => Ok((address.to_string(), address.to_text())),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// Return the second in which a file was created, or None if the file system does not record it.
#[pyfunction]
pub fn birth_second(path: PathBuf) -> Option<u64> {
    let born = std::fs::metadata(path).ok()?.created().ok()?;
    born.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}
