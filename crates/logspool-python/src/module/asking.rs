//! Python functions that report counters, metrics, recovery, and the paths that calls took.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls::keywords;
use crate::plans::{plan, table, tries};
use crate::pool::PoolCore;
use crate::report;

/// Return the system calls that do not work on this machine, one dict each, with the guarantee that is weaker as a
/// result. `forks`: also check in a forked child.
#[pyfunction]
#[pyo3(signature = (*, forks=false))]
pub fn missing_calls(py: Python<'_>, forks: bool) -> PyResult<Bound<'_, PyList>> {
    if forks {
        logspool_sys::kernel::try_wipe_on_fork();
    }
    report::missing_calls(py)
}

/// Return the core's counters, or None if nothing was logged yet.
#[pyfunction]
pub fn snapshot(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    report::snapshot(py)
}

/// Return the counters as OpenMetrics text.
#[pyfunction]
pub fn metrics_text(
    py: Python<'_>,
    python: &str,
    pools: Vec<(String, Bound<'_, PoolCore>)>,
    deferred: Vec<(String, u64)>,
) -> PyResult<String> {
    report::metrics_text(py, python, pools, &deferred)
}

/// Return how many records of dead processes this process delivered, and how many it dropped.
#[pyfunction]
pub fn recovery_counts() -> (u64, u64) {
    report::recovery_counts()
}

/// Return the names of levels, reasons and limits that the counters use.
#[pyfunction]
pub fn counter_names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    report::names(py)
}

/// Deliver the records that dead processes left in `folder`, or with `paths` only the records for these files.
#[pyfunction]
#[pyo3(signature = (folder=None, paths=None))]
pub fn recover(py: Python<'_>, folder: Option<PathBuf>, paths: Option<Vec<PathBuf>>) -> PyResult<Bound<'_, PyDict>> {
    report::recover(py, folder, paths)
}

/// Return the queues of running processes in `folder`, this process excluded, one dict each. Changes nothing.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub fn running(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
    report::running(py, folder)
}

/// Return the counters of the segment in a file, or None if the file is no segment.
#[pyfunction]
pub fn segment_counters(py: Python<'_>, path: PathBuf) -> PyResult<Option<Bound<'_, PyDict>>> {
    report::segment_counters(py, path)
}

/// Return the queues that dead processes left in `folder`, one dict each. Changes nothing.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub fn orphans(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
    report::orphans(py, folder)
}

/// Return the sidecars of log files in `folder` that are in use or hold unfinished work, one dict each.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub fn sidecars(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
    report::sidecars(py, folder)
}

/// Return how many plans were made.
#[pyfunction]
pub fn plans_made() -> u64 {
    tries::made()
}

/// Return how many texts of exceptions native code has made, and how many Python's `traceback`.
#[pyfunction]
pub fn exception_texts() -> (u64, u64) {
    keywords::exception_texts()
}

/// Return, by logger name: calls on the native path, calls that made a LogRecord natively, calls on the stock path, and
/// why calls leave the native path.
#[pyfunction]
pub fn paths() -> HashMap<String, (u64, u64, u64, String)> {
    let read = |(name, counts): (String, &'static plan::Counts)| {
        let reason = counts.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (name, (counts.native.load(Relaxed), counts.by_record.load(Relaxed), counts.stock.load(Relaxed), reason))
    };
    table::all_counts().into_iter().map(read).collect()
}
