//! What holds for all loggers: level names, clock arithmetic, and why no call may go the native way.
//!
//! Stop on the line: *capture*, its slow part. Asked of `python/logspool/_adopt.py` whenever a watched module global changed.

use std::sync::{Arc, Mutex, PoisonError};

use logspool_record::format::TimeArithmetic;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::plan;
use crate::planning::Adopt;

/// What holds for all loggers.
pub struct World {
    /// [`crate::environment::descriptions`] as it was before.
    descriptions: u64,
    /// Version tag of `LogRecord`.
    pub record_tag: u32,
    /// Why no call may go the native way; empty when some may.
    pub reason: String,
    /// `logging._levelToName`.
    pub level_names: Vec<(u16, String)>,
    /// `logging._startTime`.
    pub start_time_ns: i64,
    /// How this Python's LogRecord makes `msecs`.
    pub arithmetic: TimeArithmetic,
    /// Minor version of this Python.
    pub python_minor: u8,
    /// `logging.logProcesses`.
    pub shows_process: bool,
}

static WORLD: Mutex<Option<Arc<World>>> = Mutex::new(None);

/// The world that holds for descriptions made under `descriptions`.
///
/// # Errors
///
/// What Python raised.
pub fn world(adopt: &Adopt, py: Python<'_>, descriptions: u64) -> PyResult<Arc<World>> {
    // SAFETY: a live type, attached.
    let record_tag = unsafe { plan::assigned_tag(adopt.record_class.as_ptr()) };
    if let Some(world) = &*WORLD.lock().unwrap_or_else(PoisonError::into_inner)
        && world.descriptions == descriptions
        && world.record_tag == record_tag
    {
        return Ok(world.clone());
    }
    let answer = adopt.world.bind(py).call0()?;
    let get = |name: &str| answer.getattr(name);
    let arithmetic: String = get("arithmetic")?.extract()?;
    let world = Arc::new(World {
        descriptions,
        record_tag,
        reason: get("reason")?.extract()?,
        level_names: get("level_names")?.extract()?,
        start_time_ns: get("start_time_ns")?.extract()?,
        arithmetic: match arithmetic.as_str() {
            "float fraction" => TimeArithmetic::FloatFraction,
            "float whole" => TimeArithmetic::FloatWhole,
            _ => TimeArithmetic::Nanoseconds,
        },
        python_minor: py.version_info().minor,
        shows_process: get("shows_process")?.cast::<PyBool>()?.is_true(),
    });
    *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = Some(world.clone());
    Ok(world)
}
