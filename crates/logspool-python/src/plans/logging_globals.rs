//! Facts that are the same for all loggers: level names, clock arithmetic, and a reason that keeps every call off the
//! native path.
//!
//! Pipeline stage: *capture*, its slow path (see ARCHITECTURE.md). `python/logspool/adoption/` determines the facts
//! again after each change of a watched module global.

use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::cpython::{CpythonRules, TimeArithmetic};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::interpreter::call_thread;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::callbacks::PlanningCallbacks;
use crate::plans::class_version::ClassVersion;
use crate::plans::environment;

/// Facts that are the same for all loggers.
pub struct LoggingGlobals {
    /// The value of [`crate::plans::environment::descriptions`] before these facts were determined.
    descriptions: u64,
    /// The class `LogRecord`, with its version tag when these facts were determined.
    pub record_class: ClassVersion,
    /// Why no call may take the native path; empty if calls may take it.
    pub reason: String,
    /// The content of `logging._levelToName`.
    pub level_names: Vec<(u16, String)>,
    /// The value of `logging._startTime`, in nanoseconds.
    pub start_time_ns: i64,
    /// The rules of this Python's `logging`.
    pub cpython: CpythonRules,
    /// The value of `logging.logProcesses`.
    pub shows_process: bool,
    /// Why calls that make a record take the stock path; empty if they do not.
    pub stock_reason: String,
    /// Why native code neither initialises a `LogRecord` nor reads one; empty if it does.
    pub record_reason: String,
    /// Why a record factory makes the record of each call; empty if none does.
    pub factory_reason: String,
    /// The function that makes records; `None` if they are made natively.
    pub record_factory: Option<Owned>,
    /// Which values of thread, process and task a record has.
    pub of_records: RecordContext,
    /// The dict `logging._levelToName`.
    level_to_name: Owned,
}

/// Which values of thread, process and task a `LogRecord` has. The others are `None` in its template.
#[derive(Debug, Clone, Copy)]
pub struct RecordContext {
    /// `logging.logThreads`
    pub threads: bool,
    /// `logging.logProcesses`
    pub processes: bool,
    /// `logging.logMultiprocessing`
    pub process_names: bool,
    /// `logging.logAsyncioTasks`, which Python has since 3.12.
    pub tasks: bool,
}

impl LoggingGlobals {
    /// The name of a level, an exact `int`; `None` if `logging._levelToName` has no name for it.
    #[inline]
    pub fn name_of_level(&self, level: Object<'_, '_>) -> Option<Owned> {
        // SAFETY: a live dict and an exact int, and the thread is attached. The borrowed reference becomes an owned one
        // before any Python code runs.
        let name = unsafe {
            let name = ffi::PyDict_GetItemWithError(self.level_to_name.as_ptr(), level.as_ptr());
            Borrowed::from_ptr_or_opt(level.py(), name).map(|name| Owned::of(&name))
        };
        if name.is_none() {
            object::clear_error(level.py());
        }
        name
    }
}

static KNOWN: Mutex<Option<Arc<LoggingGlobals>>> = Mutex::new(None);

/// The facts that were determined last, if they are still valid.
pub fn known(_attached: Python<'_>) -> Option<Arc<LoggingGlobals>> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
    (known.descriptions == environment::descriptions() && known.record_class.holds()).then_some(known)
}

/// The facts for descriptions that are made under the number `descriptions`.
///
/// # Errors
///
/// The error that Python raised.
pub fn logging_globals(
    callbacks: &PlanningCallbacks,
    py: Python<'_>,
    descriptions: u64,
) -> PyResult<Arc<LoggingGlobals>> {
    let record_class = ClassVersion::assigned(callbacks.record_class.bind(py).cast::<PyType>()?);
    if let Some(known) = &*KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
        && known.descriptions == descriptions
        && known.record_class.tag() == record_class.tag()
    {
        return Ok(known.clone());
    }
    let answer = callbacks.logging_globals.bind(py).call0()?;
    let get = |name: &str| answer.getattr(name);
    let is_true = |name: &str| PyResult::Ok(get(name)?.cast::<PyBool>()?.is_true());
    let arithmetic = match get("arithmetic")?.extract::<String>()?.as_str() {
        "float fraction" => TimeArithmetic::FloatFraction,
        "float whole" => TimeArithmetic::FloatWhole,
        _ => TimeArithmetic::Nanoseconds,
    };
    let factory = get("record_factory")?;
    let globals = Arc::new(LoggingGlobals {
        descriptions,
        record_class,
        reason: get("reason")?.extract()?,
        level_names: get("level_names")?.extract()?,
        start_time_ns: get("start_time_ns")?.extract()?,
        cpython: CpythonRules::of_records(py.version_info().minor, arithmetic),
        shows_process: is_true("shows_process")?,
        stock_reason: get("stock_reason")?.extract()?,
        record_reason: get("record_reason")?.extract()?,
        factory_reason: get("factory_reason")?.extract()?,
        record_factory: if factory.is_none() { None } else { Some(Owned::of(&factory)) },
        of_records: RecordContext {
            threads: is_true("shows_thread")?,
            processes: is_true("shows_process")?,
            process_names: is_true("shows_process_name")?,
            tasks: is_true("shows_task_name")?,
        },
        level_to_name: Owned::of(&get("level_to_name")?),
    });
    let functions: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = get("thread_functions")?.extract()?;
    call_thread::set_replaced(functions.map(|(get_ident, current_thread)| call_thread::ReplacedFunctions {
        get_ident: Owned::of(&get_ident),
        current_thread: Owned::of(&current_thread),
    }));
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(globals.clone());
    Ok(globals)
}
