//! Facts that hold for all loggers: level names, clock arithmetic, and the reason why no call may take the native path.
//!
//! Stop on the line: *capture*, its slow path. Read again from `python/logspool/_adopt.py` after each change of a
//! watched module global.

use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::cpython::{CpythonRules, TimeArithmetic};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::plans::plan::ClassVersion;
use crate::plans::python_half::PythonHalf;

/// Facts that hold for all loggers.
pub struct LoggingGlobals {
    /// [`crate::plans::environment::descriptions`], read before these facts were.
    descriptions: u64,
    /// `LogRecord`, with its version tag at that time.
    pub record_class: ClassVersion,
    /// Why no call may take the native path; empty if some may.
    pub reason: String,
    /// `logging._levelToName`.
    pub level_names: Vec<(u16, String)>,
    /// `logging._startTime`.
    pub start_time_ns: i64,
    /// The rules of this Python's `logging`.
    pub cpython: CpythonRules,
    /// `logging.logProcesses`.
    pub shows_process: bool,
}

static KNOWN: Mutex<Option<Arc<LoggingGlobals>>> = Mutex::new(None);

/// The facts for descriptions made under the number `descriptions`.
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
