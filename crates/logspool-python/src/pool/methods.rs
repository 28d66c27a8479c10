//! The methods of pools and views that are called rarely. The methods that add jobs are in [`super::verbs`].

use std::sync::Arc;
use std::time::Duration;

use logspool_pool::{JobCounts, Jobs};
use logspool_sys::histogram::HistogramCounts;
use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::core::PoolCore;
use super::job_options::JobOptions;
use super::results::{Results, results_or_none};
use super::shared::{Options, Overflow, Shared, cancel_all};
use super::timers::WaitingJobs;
use super::view::View;
use super::{arguments, future_type, intake, timer_type, timers};

#[pymethods]
impl PoolCore {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Self::unopened()
    }

    /// Open the pool, so that it accepts jobs.
    #[allow(clippy::too_many_arguments)]
    fn _open(
        &self,
        py: Python<'_>,
        most_workers: usize,
        queue_size: usize,
        overflow: &str,
        context: &str,
        idle_timeout: Option<f64>,
        done_callback: Option<Bound<'_, PyAny>>,
        failed_callback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let copies_context = match context {
            "none" => false,
            "copy" => true,
            _ => return Err(PyValueError::new_err(format!("context is {context:?}, expected 'none' or 'copy'"))),
        };
        // The caller has checked the value. A time outside the range of the clock means that threads never time out.
        let idle_timeout = idle_timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let options = Options { overflow: Overflow::of(overflow)?, copies_context, idle_timeout };
        future_type::class(py)?;
        timer_type::class(py)?;
        // A pool that is opened again keeps its callbacks.
        let _ = self.job_options.set(JobOptions::of_pool(done_callback, failed_callback)?);
        if let Some(before) = self.set_shared(Shared::new(queue_size, most_workers, options)) {
            before.jobs.close();
        }
        Ok(())
    }

    /// Return a number that is unique among the pools of the process.
    fn _id(&self) -> PyResult<usize> {
        Ok(Arc::as_ptr(self.shared()?) as usize)
    }

    /// Push a call of `fn` for each item of the iterables, as `map` would call it. Return the number of calls.
    #[pyo3(signature = (r#fn, /, *iterables))]
    fn push_many(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
        intake::push_many(&intake::JobOrigin::of_pool(slf.as_borrowed()), r#fn, iterables)
    }

    /// Return a view of the pool with other options for its jobs.
    #[pyo3(signature = (*, priority="normal", timeout=None, done_callback=None, failed_callback=None, results=None))]
    fn options(
        slf: &Bound<'_, Self>,
        priority: &str,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        done_callback: Option<Bound<'_, PyAny>>,
        failed_callback: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = results_or_none)] results: Option<Py<Results>>,
    ) -> PyResult<View> {
        View::new(slf, priority, timeout, done_callback, failed_callback, results)
    }

    /// Start a worker that the pool has already counted.
    fn _add_worker(slf: &Bound<'_, Self>) -> PyResult<()> {
        intake::start_workers(&intake::JobOrigin::of_pool(slf.as_borrowed()), slf.get().shared()?, 1)
    }

    /// Refuse jobs from now on and end schedules; with `cancel`, also cancel the waiting jobs.
    fn _close(&self, py: Python<'_>, cancel: bool) -> PyResult<()> {
        let shared = self.shared()?;
        shared.jobs.close();
        timers::cancel_all(py, shared, if cancel { WaitingJobs::All } else { WaitingJobs::Scheduled });
        if cancel {
            cancel_all(py, shared);
        }
        Ok(())
    }

    /// Cancel the jobs that wait for a worker. Return their number.
    fn cancel(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(cancel_all(py, self.shared()?))
    }

    /// Cancel all schedules and the jobs that are not due yet.
    fn _cancel_timers(&self, py: Python<'_>) -> PyResult<()> {
        timers::cancel_all(py, self.shared()?, WaitingJobs::All);
        Ok(())
    }

    /// Wait for the end of all accepted jobs, including jobs that are not due yet.
    fn _wait_for_end(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.wait_for(py, timeout, Jobs::wait_for_end)
    }

    /// Wait until no job waits and no job runs.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::positive_timeout)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        let shared = slf.get().shared()?;
        // Some jobs may wait although there is no worker, because no worker could be started earlier.
        intake::start_workers(
            &intake::JobOrigin::of_pool(slf.as_borrowed()),
            shared,
            shared.jobs.start_missing_workers(),
        )?;
        slf.get().wait_for(slf.py(), timeout, Jobs::wait_for_rest)
    }

    /// Set the maximum number of workers, and start workers for waiting jobs.
    fn _resize(slf: &Bound<'_, Self>, most_workers: usize) -> PyResult<()> {
        let shared = slf.get().shared()?;
        let count = shared.jobs.resize(most_workers);
        intake::start_workers(&intake::JobOrigin::of_pool(slf.as_borrowed()), shared, count)
    }

    /// Return the fields of `PoolStats`.
    fn _counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reading = self.reading(String::new())?;
        let JobCounts { pending, bound: _, expected, workers, busy, taken, wakes } = reading.counts;
        let found = PyDict::new(py);
        found.set_item("depth", pending)?;
        found.set_item("oldest_age", reading.oldest_age)?;
        found.set_item("delayed", expected)?;
        found.set_item("workers", workers)?;
        found.set_item("busy", busy)?;
        found.set_item("submitted", taken)?;
        found.set_item("failed", reading.failed)?;
        found.set_item("dropped", reading.dropped)?;
        found.set_item("timed_out", reading.timed_out)?;
        found.set_item("wakes", wakes)?;
        let histograms = [("wait_seconds", reading.wait_seconds), ("run_seconds", reading.run_seconds)];
        for (name, HistogramCounts { cumulative, count, sum }) in histograms {
            found.set_item(name, (count, sum, cumulative))?;
        }
        Ok(found)
    }

    /// In a forked child: reset the pool, because workers and jobs belong to the parent.
    fn _after_fork(&self, exception: &Bound<'_, PyAny>, most_workers: usize, queue_size: usize) -> PyResult<()> {
        let shared = self.shared()?;
        let fresh = Shared::new(queue_size, most_workers, shared.options);
        if shared.jobs.is_closed_after_fork() {
            fresh.jobs.close();
        }
        // The previous state is never freed: threads of the parent may have been changing its lock and its atomics.
        if let Some(before) = self.set_shared(fresh) {
            before.fail_after_fork(exception);
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.job_options.get().map_or(Ok(()), |job_options| job_options.visit(&visit))
    }
}

#[pymethods]
impl View {
    /// The same as `Pool.push_many`.
    #[pyo3(signature = (r#fn, /, *iterables))]
    fn push_many(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
        intake::push_many(&intake::JobOrigin::of_view(slf.as_borrowed()), r#fn, iterables)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        self.job_options.visit(&visit)
    }
}
