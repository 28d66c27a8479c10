//! Functions that `python/logspool/pool/` needs in addition to the classes.

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

/// Run the calling thread as the timer thread of all pools. `start_worker` is called with the `_id` of a pool that
/// needs a worker.
#[pyfunction]
pub fn run_timers(start_worker: &Bound<'_, PyAny>) {
    pool::run_timers(start_worker.py(), start_worker);
}

/// In a forked child: drop all pending timers, and pass `exception` to the code that waits for them.
#[pyfunction]
pub fn timers_after_fork(exception: &Bound<'_, PyAny>) {
    pool::after_fork(exception);
}
