//! Facts that are the same for all loggers: level names, clock arithmetic, and a reason that keeps every call off the
//! native path.
//!
//! Pipeline stage: *capture*, its slow path (see ARCHITECTURE.md). `python/logspool/_adopt.py` determines the facts
//! again after each change of a watched module global.

use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::cpython::{CpythonRules, TimeArithmetic};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::plans::plan::ClassVersion;
use crate::plans::python_half::PythonHalf;

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
}

static KNOWN: Mutex<Option<Arc<LoggingGlobals>>> = Mutex::new(None);

/// The facts for descriptions that are made under the number `descriptions`.
///
/// # Errors
///
/// The error that Python raised.
pub fn logging_globals(half: &PythonHalf, py: Python<'_>, descriptions: u64) -> PyResult<Arc<LoggingGlobals>> {
    let record_class = ClassVersion::assigned(half.record_class.bind(py).cast::<PyType>()?);
    if let Some(known) = &*KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
        && known.descriptions == descriptions
        && known.record_class.tag() == record_class.tag()
    {
        return Ok(known.clone());
    }
    let answer = half.logging_globals.bind(py).call0()?;
    let get = |name: &str| answer.getattr(name);
    let arithmetic = match get("arithmetic")?.extract::<String>()?.as_str() {
        "float fraction" => TimeArithmetic::FloatFraction,
        "float whole" => TimeArithmetic::FloatWhole,
        _ => TimeArithmetic::Nanoseconds,
    };
    let globals = Arc::new(LoggingGlobals {
        descriptions,
        record_class,
        reason: get("reason")?.extract()?,
        level_names: get("level_names")?.extract()?,
        start_time_ns: get("start_time_ns")?.extract()?,
        cpython: CpythonRules::of_records(py.version_info().minor, arithmetic),
        shows_process: get("shows_process")?.cast::<PyBool>()?.is_true(),
    });
    *KNOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(globals.clone());
    Ok(globals)
}
