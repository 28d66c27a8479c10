//! What `python/logspool/pool/` needs beside the classes.

use pyo3::prelude::*;

use crate::pool;

/// Return the types of the pool's futures and timers, made on first use: they need `concurrent.futures`.
///
/// `start` starts a thread that calls `run_timers`.
#[pyfunction]
pub fn pool_futures<'py>(start: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    pool::set_start(start);
    pool::future_classes(start.py())
}

/// Be the thread that waits for all that pools do later; `start_worker` gets the `_id` of a pool that needs one.
#[pyfunction]
pub fn run_timers(start_worker: &Bound<'_, PyAny>) {
    pool::run_timers(start_worker.py(), start_worker);
}

/// In a forked child: forget what waits for its time, with an exception for those who wait for it.
#[pyfunction]
pub fn timers_after_fork(exception: &Bound<'_, PyAny>) {
    pool::after_fork(exception);
}
