//! Options of jobs that a pool or a view sets: callbacks, results, a time limit.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::arguments;
use super::extra::Extra;
use super::future::FutureHandle;
use super::job::JobTarget;
use super::results::Results;
use super::schedule::Schedule;
use crate::interpreter::object::Owned;

/// Options of jobs that a pool or a view sets.
#[derive(Default)]
pub struct JobOptions {
    /// Time limit of a job, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// The callback that is called with each value of a job.
    pub done: Option<Py<PyAny>>,
    /// The callback that is called with the exception of a job.
    pub failed: Option<Py<PyAny>>,
    /// The `Results` that receive values and exceptions.
    pub results: Option<Py<Results>>,
}

impl JobOptions {
    /// The options that a pool sets for its jobs: only callbacks.
    ///
    /// # Errors
    ///
    /// `TypeError` for a callback that cannot be called.
    pub fn of_pool(done: Option<Bound<'_, PyAny>>, failed: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let (done, failed) = (callable("done_callback", done)?, callable("failed_callback", failed)?);
        Ok(Self { done, failed, ..Self::default() })
    }

    fn is_empty(&self) -> bool {
        self.limit_ns.is_none() && self.done.is_none() && self.failed.is_none() && self.results.is_none()
    }

    /// Visits the objects, for the garbage collector.
    ///
    /// # Errors
    ///
    /// The error of `visit`.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.done)?;
        visit.call(&self.failed)?;
        visit.call(&self.results)
    }
}

fn callable(name: &str, value: Option<Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    match value {
        Some(value) if !value.is_callable() => {
            Err(arguments::named(name, "a callable", &value, PyTypeError::new_err(())))
        }
        value => Ok(value.map(Bound::unbind)),
    }
}

/// The target of a job, from the options of its view (`own`) and of its pool.
#[inline(always)]
pub fn target(
    py: Python<'_>,
    pool: &JobOptions,
    own: Option<&JobOptions>,
    future: Option<FutureHandle>,
    schedule: Option<Py<Schedule>>,
) -> JobTarget {
    let own = own.filter(|options| !options.is_empty());
    if own.is_none() && schedule.is_none() {
        match future {
            Some(future) => return JobTarget::Future(future),
            None if pool.is_empty() => return JobTarget::Nobody,
            None => {}
        }
    }
    extra(py, pool, own, future, schedule)
}

#[cold]
fn extra(
    py: Python<'_>,
    pool: &JobOptions,
    own: Option<&JobOptions>,
    future: Option<FutureHandle>,
    schedule: Option<Py<Schedule>>,
) -> JobTarget {
    let nobody = JobOptions::default();
    let own = own.unwrap_or(&nobody);
    // The callbacks of the pool are called only for jobs without another receiver.
    let pool = if future.is_some() || own.results.is_some() { &nobody } else { pool };
    let kept = |callback: Option<&Py<PyAny>>| callback.map(|callback| Owned::of(callback.bind(py)));
    JobTarget::Extra(Arc::new(Extra {
        done: kept(own.done.as_ref().or(pool.done.as_ref())),
        failed: kept(own.failed.as_ref().or(pool.failed.as_ref())),
        results: own.results.as_ref().map(|results| results.get().sender()),
        limit_ns: own.limit_ns,
        schedule,
        future,
        turn: AtomicU64::new(0),
    }))
}
