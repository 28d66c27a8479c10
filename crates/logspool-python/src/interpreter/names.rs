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
    cancel = "cancel",
    cancelled = "cancelled",
    close = "close",
    co_filename = "co_filename",
    co_name = "co_name",
    created = "created",
    done = "done",
    drain = "drain",
    current_task = "current_task",
    current_process = "current_process",
    emit = "emit",
    enqueue = "enqueue",
    entry = "_entry",
    exc_info = "exc_info",
    exc_text = "exc_text",
    extra = "extra",
    filename = "filename",
    filter = "filter",
    filters = "filters",
    format = "format",
    formatter = "formatter",
    func_name = "funcName",
    get_name = "get_name",
    get_running_loop = "_get_running_loop",
    handlers = "handlers",
    init = "__init__",
    is_enabled_for = "isEnabledFor",
    items = "items",
    level = "level",
    levelname = "levelname",
    levelno = "levelno",
    lineno = "lineno",
    lock = "lock",
    message = "message",
    module = "module",
    msecs = "msecs",
    msg = "msg",
    name = "name",
    parent = "parent",
    pathname = "pathname",
    prepare = "prepare",
    process = "process",
    process_name = "processName",
    propagate = "propagate",
    private_name = "_name",
    put_nowait = "put_nowait",
    queue = "queue",
    queue_bytes = "queue_bytes",
    queue_full = "queue_full",
    release = "release",
    set_exception = "set_exception",
    set_result = "set_result",
    shut = "shut",
    stack_info = "stack_info",
    stacklevel = "stacklevel",
    stream = "stream",
    task_name = "taskName",
    terminator = "terminator",
    flush = "flush",
    thread = "thread",
    thread_name = "threadName",
    create_future = "create_future",
    event_loop_of = "_event_loop_of",
    refusal = "_refusal",
    start_worker = "_start_worker",
    wake = "wake",
}

/// The method that reports whether a level is enabled. If the method is patched, only stock logging calls it.
pub const IS_ENABLED_FOR: &str = "isEnabledFor";

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
