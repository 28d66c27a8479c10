//! Attribute names as interned `str` objects, which are made once, when the module is initialised.
//!
//! `pyo3::intern!` and `PyOnceLock` are not allowed in this crate. Their first use lets another thread run before the
//! first use is complete. If that thread forks, every later use in the child waits forever.

use std::sync::OnceLock;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::interpreter::object::Owned;

macro_rules! names {
    ($($field:ident = $text:literal,)*) => {
        /// Every name that native code looks up.
        pub struct Names {
            $(
                #[doc = concat!("`", $text, "`")]
                pub $field: Owned,
            )*
        }

        impl Names {
            fn new(_attached: Python<'_>) -> Option<Self> {
                // SAFETY: NUL-terminated literals; the token shows that the thread is attached.
                unsafe {
                    Some(Self {
                        $($field: Owned::steal(ffi::PyUnicode_InternFromString(concat!($text, "\0").as_ptr().cast()))?,)*
                    })
                }
            }
        }
    };
}

names! {
    acquire = "acquire",
    args = "args",
    asctime = "asctime",
    asctime_search = "asctime_search",
    cancel = "cancel",
    blocking_levels = "_blocking_levels",
    call_handlers = "callHandlers",
    cache = "cache",
    cancelled = "cancelled",
    cause = "__cause__",
    class = "__class__",
    close = "close",
    co_filename = "co_filename",
    co_name = "co_name",
    context = "__context__",
    captured = "captured",
    converter = "converter",
    created = "created",
    dict = "__dict__",
    disabled = "disabled",
    done = "done",
    drain = "drain",
    current_task = "current_task",
    current_process = "current_process",
    datefmt = "datefmt",
    default_formatter = "_defaultFormatter",
    default_msec_format = "default_msec_format",
    default_time_format = "default_time_format",
    defaults = "_defaults",
    emit = "emit",
    empty = "empty",
    enqueue = "enqueue",
    entry = "_entry",
    event = "event",
    exc_info = "exc_info",
    exc_text = "exc_text",
    exceptions = "exceptions",
    extra = "extra",
    filename = "filename",
    filter = "filter",
    filters = "filters",
    fmt = "_fmt",
    format = "format",
    format_exception = "formatException",
    format_message = "formatMessage",
    format_stack = "formatStack",
    format_time = "formatTime",
    formatter = "formatter",
    func_name = "funcName",
    get_message = "getMessage",
    get_name = "get_name",
    getpid = "getpid",
    get_running_loop = "_get_running_loop",
    handle = "handle",
    handlers = "handlers",
    init = "__init__",
    is_enabled_for = "isEnabledFor",
    items = "items",
    level = "level",
    levelname = "levelname",
    levelno = "levelno",
    lineno = "lineno",
    lock = "lock",
    log = "log",
    logger = "logger",
    main_process = "MainProcess",
    merge_extra = "merge_extra",
    message = "message",
    method_name = "method_name",
    module = "module",
    module_of_class = "__module__",
    msecs = "msecs",
    msg = "msg",
    name = "name",
    name_from = "name_from",
    notes = "__notes__",
    parent = "parent",
    pathname = "pathname",
    prepare = "prepare",
    process = "process",
    process_name = "processName",
    propagate = "propagate",
    private_name = "_name",
    put_nowait = "put_nowait",
    qualname = "__qualname__",
    put_slowly = "put_slowly",
    queue = "queue",
    queue_bytes = "queue_bytes",
    queue_full = "queue_full",
    refuse = "refuse",
    relative_created = "relativeCreated",
    release = "release",
    self_ = "self",
    sentinel = "_sentinel",
    set_exception = "set_exception",
    set_result = "set_result",
    shut = "shut",
    stack_info = "stack_info",
    stacklevel = "stacklevel",
    stream = "stream",
    suppress_context = "__suppress_context__",
    structlog_context = "_context",
    structlog_logger = "_logger",
    structlog_processors = "_processors",
    strftime = "strftime",
    style = "_style",
    style_format = "_format",
    task_name = "taskName",
    terminator = "terminator",
    flush = "flush",
    thread = "thread",
    traceback = "__traceback__",
    tracebacklimit = "tracebacklimit",
    thread_name = "threadName",
    debug = "debug",
    info = "info",
    warning = "warning",
    error = "error",
    critical = "critical",
    time = "time",
    uses_time = "usesTime",
    create_future = "create_future",
    event_loop_of = "_event_loop_of",
    refusal = "_refusal",
    start_worker = "_start_worker",
    wake = "wake",
    writer = "writer",
    writer_of_handler = "_writer",
}

impl Names {
    /// The methods of loggers that structlog names by level, from the lowest level on.
    pub fn structlog_methods(&self) -> [&Owned; 5] {
        [&self.debug, &self.info, &self.warning, &self.error, &self.critical]
    }
}

/// The method that reports whether a level is enabled. If the method is patched, only stock logging calls it.
pub const IS_ENABLED_FOR: &str = "isEnabledFor";

/// The method that makes the record of a call.
pub const MAKE_RECORD: &str = "makeRecord";

/// The methods of a logger that receive a record. If one of them is patched, it is called with the record.
pub const RECORD_STEPS: [&str; 3] = ["handle", "filter", "callHandlers"];

static NAMES: OnceLock<Names> = OnceLock::new();

/// Makes the names. Called when the module is initialised.
pub fn init(py: Python<'_>) -> bool {
    Names::new(py).map(|names| drop(NAMES.set(names))).is_some()
}

/// Returns all names.
#[inline]
pub fn names() -> &'static Names {
    NAMES.get().expect("made at module initialisation")
}

/// Returns one of the names in the type that PyO3 functions accept.
///
/// # Panics
///
/// `name` is no `str`. Every name of [`Names`] is one.
pub fn bound<'a, 'py>(py: Python<'py>, name: &'a Owned) -> Borrowed<'a, 'py, PyString> {
    name.bind(py).cast::<PyString>().expect("every name is a str")
}

/// The interned `str` of a name that Python code passes.
///
/// # Errors
///
/// `name` is no `str`, or cannot be encoded.
pub fn interned(name: &Bound<'_, PyAny>) -> PyResult<Owned> {
    Ok(Owned::of(&PyString::intern(name.py(), &name.extract::<String>()?)))
}
