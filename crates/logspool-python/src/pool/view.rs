//! The result of `Pool.options(...)`: a view of a pool with other options for some of its jobs.

use logspool_pool::jobs::QueuePosition;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::core::PoolCore;
use super::job_options::JobOptions;
use super::results::Results;
use super::timers;

/// A pool with other options for the jobs that are given to it.
#[pyclass(frozen, weakref, module = "logspool._native")]
pub struct View {
    /// The pool that runs the jobs.
    pub pool: Py<PoolCore>,
    /// Where the jobs of this view are added in the queue.
    pub place: QueuePosition,
    /// The other options of the view's jobs.
    pub job_options: JobOptions,
}

impl View {
    /// A view with the options of `Pool.options`.
    ///
    /// # Errors
    ///
    /// `ValueError` and `TypeError` for options that are not valid.
    pub fn new(
        pool: &Bound<'_, PoolCore>,
        priority: &str,
        timeout: Option<f64>,
        done: Option<Bound<'_, PyAny>>,
        failed: Option<Bound<'_, PyAny>>,
        results: Option<Py<Results>>,
    ) -> PyResult<Self> {
        let place = match priority {
            "first" => QueuePosition::First,
            "high" => QueuePosition::High,
            "normal" => QueuePosition::Normal,
            "low" => QueuePosition::Low,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "priority is {priority:?}, expected 'first', 'high', 'normal' or 'low'"
                )));
            }
        };
        if timeout.is_some_and(|seconds| seconds <= 0.0) {
            let seconds = timeout.unwrap_or_default();
            return Err(PyValueError::new_err(format!("timeout must be greater than 0, or None, not {seconds}")));
        }
        let limit_ns = timeout.map(|seconds| timers::nanoseconds("timeout", seconds)).transpose()?;
        let callbacks = JobOptions::of_pool(done, failed)?;
        Ok(Self { pool: pool.clone().unbind(), place, job_options: JobOptions { limit_ns, results, ..callbacks } })
    }
}
