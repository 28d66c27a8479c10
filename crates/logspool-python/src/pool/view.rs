//! `Pool.options(...)`: a pool with other options for single jobs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use logspool_pool::jobs::Place;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::arguments;
use super::core::PoolCore;
use super::extra::Extra;
use super::intake;
use super::job::Target;
use super::results::Results;
use super::schedule::Schedule;
use super::timers;
use crate::object::Owned;

/// What those want who give jobs to a pool.
#[derive(Default)]
pub struct Wishes {
    limit_ns: Option<u64>,
    done: Option<Py<PyAny>>,
    failed: Option<Py<PyAny>>,
    results: Option<Py<Results>>,
}

impl Wishes {
    /// Of a pool: callbacks.
    ///
    /// # Errors
    ///
    /// `TypeError` for what cannot be called.
    pub fn of_pool(done: Option<Bound<'_, PyAny>>, failed: Option<Bound<'_, PyAny>>) -> PyResult<Self> {
        let (done, failed) = (callable("done_callback", done)?, callable("failed_callback", failed)?);
        Ok(Self { done, failed, ..Self::default() })
    }

    fn is_empty(&self) -> bool {
        self.limit_ns.is_none() && self.done.is_none() && self.failed.is_none() && self.results.is_none()
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
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

/// Who is told of a job: what its caller and its pool wish.
#[inline]
pub fn target(
    py: Python<'_>,
    pool: &Wishes,
    own: Option<&Wishes>,
    future: Option<Owned>,
    schedule: Option<Py<Schedule>>,
) -> Target {
    let own = own.filter(|wishes| !wishes.is_empty());
    if own.is_none() && schedule.is_none() {
        match future {
            Some(future) => return Target::Future(future),
            None if pool.is_empty() => return Target::Nobody,
            None => {}
        }
    }
    extra(py, pool, own, future, schedule)
}

#[cold]
fn extra(
    py: Python<'_>,
    pool: &Wishes,
    own: Option<&Wishes>,
    future: Option<Owned>,
    schedule: Option<Py<Schedule>>,
) -> Target {
    let nobody = Wishes::default();
    let own = own.unwrap_or(&nobody);
    // Those of the pool are for jobs that nobody else asks about.
    let pool = if future.is_some() || own.results.is_some() { &nobody } else { pool };
    let kept = |callback: Option<&Py<PyAny>>| callback.map(|callback| Owned::of(callback.bind(py)));
    Target::Extra(Arc::new(Extra {
        done: kept(own.done.as_ref().or(pool.done.as_ref())),
        failed: kept(own.failed.as_ref().or(pool.failed.as_ref())),
        results: own.results.as_ref().map(|results| results.get().sender()),
        limit_ns: own.limit_ns,
        schedule,
        future,
        turn: AtomicU64::new(0),
    }))
}

/// A pool with other options for the jobs that are given to it.
#[pyclass(frozen, weakref, module = "logspool._native")]
pub struct View {
    /// The pool.
    pub pool: Py<PoolCore>,
    /// Where in its queue the jobs go.
    pub place: Place,
    /// What else they have.
    pub wishes: Wishes,
}

impl View {
    /// See `Pool.options`.
    ///
    /// # Errors
    ///
    /// `ValueError` and `TypeError` for options that do not fit.
    pub fn new(
        pool: &Bound<'_, PoolCore>,
        priority: &str,
        timeout: Option<f64>,
        done: Option<Bound<'_, PyAny>>,
        failed: Option<Bound<'_, PyAny>>,
        results: Option<Py<Results>>,
    ) -> PyResult<Self> {
        let place = match priority {
            "first" => Place::First,
            "high" => Place::High,
            "normal" => Place::Normal,
            "low" => Place::Low,
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
        let callbacks = Wishes::of_pool(done, failed)?;
        Ok(Self { pool: pool.clone().unbind(), place, wishes: Wishes { limit_ns, results, ..callbacks } })
    }
}

#[pymethods]
impl View {
    /// As `Pool.push_many`.
    #[pyo3(signature = (r#fn, /, *iterables))]
    fn push_many(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
        intake::push_many(&intake::Origin::of_view(slf.as_borrowed()), r#fn, iterables)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        self.wishes.visit(&visit)
    }
}

/// For the pool's own.
pub fn visit(wishes: &Wishes, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
    wishes.visit(visit)
}
