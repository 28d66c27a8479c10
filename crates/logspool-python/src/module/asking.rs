//! Answers questions: counters, metrics, recovery, and which path calls take.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::plans::{plan, table, tries};
use crate::pool::PoolCore;
use crate::report;

/// Return the system calls that do not work here, one dict each, with what is weaker because of it. `forks`: look
/// also in a forked child.
#[pyfunction]
#[pyo3(signature = (*, forks=false))]
pub fn missing_calls(py: Python<'_>, forks: bool) -> PyResult<Bound<'_, PyList>> {
    if forks {
        logspool_sys::kernel::try_wipe_on_fork();
    }
    report::missing_calls(py)
}

/// Return the core's counters, or None when nothing was logged yet.
#[pyfunction]
pub fn snapshot(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    report::snapshot(py)
}

/// Return the counters as OpenMetrics text, or None when nothing was logged yet.
#[pyfunction]
pub fn metrics_text(py: Python<'_>, python: &str, pools: Vec<(String, Bound<'_, PoolCore>)>) -> PyResult<String> {
    report::metrics_text(py, python, pools)
}

/// Return how many records of dead processes this one delivered, and how many it gave up.
#[pyfunction]
pub fn recovery_counts() -> (u64, u64) {
    report::recovery_counts()
}

/// Return the names that counters use.
#[pyfunction]
pub fn counter_names(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    report::names(py)
}

/// Deliver what dead processes left in `folder`, or, with `paths`, what they left for these files.
#[pyfunction]
#[pyo3(signature = (folder=None, paths=None))]
pub fn recover(py: Python<'_>, folder: Option<PathBuf>, paths: Option<Vec<PathBuf>>) -> PyResult<Bound<'_, PyDict>> {
    report::recover(py, folder, paths)
}

/// Return what dead processes left in `folder`, one dict each. Changes nothing.
#[pyfunction]
#[pyo3(signature = (folder=None))]
pub fn orphans(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Bound<'_, PyList>> {
    report::orphans(py, folder)
}

/// Return the sidecars of log files in `folder` that are in use or hold something unfinished, one dict each.
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

/// Return, per logger name, calls on the native path, calls on the stock path, and why the latter.
#[pyfunction]
pub fn paths() -> HashMap<String, (u64, u64, String)> {
    let read = |(name, counts): (String, &'static plan::Counts)| {
        let reason = counts.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (name, (counts.native.load(Relaxed), counts.stock.load(Relaxed), reason))
    };
    table::all_counts().into_iter().map(read).collect()
}
