//! `logspool.pool.Schedule`: a job that is done again and again.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use logspool_pool::timers::{Clock, Key};
use logspool_sys::clock;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::job::Job;
use super::shared::Shared;
use super::timers;

/// The handle of a job that is done again and again.
#[pyclass(frozen, weakref, module = "logspool.pool")]
pub struct Schedule {
    /// Held for the threads that it starts.
    pool: Py<PyAny>,
    interval_ns: u64,
    /// Whether the interval counts from the end of a call, not from the time it was due.
    after_end: bool,
    turn: Mutex<NextCall>,
    cancelled: AtomicBool,
    runs: AtomicU64,
    missed: AtomicU64,
}

/// The next call.
struct NextCall {
    /// When it is due, in nanoseconds of the steady clock.
    due: u64,
    /// Where it waits for that.
    key: Option<Key>,
}

impl Schedule {
    /// Of a pool, first due after one interval.
    pub fn new(pool: Py<PyAny>, interval_ns: u64, after_end: bool) -> Self {
        let due = clock::monotonic_ns().saturating_add(interval_ns);
        Self {
            pool,
            interval_ns,
            after_end,
            turn: Mutex::new(NextCall { due, key: None }),
            cancelled: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, NextCall> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has ended.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// No call comes any more.
    pub fn end(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Has the job wait for its time.
    ///
    /// # Errors
    ///
    /// No thread could be started for it.
    pub fn wait(&self, py: Python<'_>, shared: &Arc<Shared>, job: Job) -> PyResult<()> {
        // Held until it waits: a `cancel` that comes now finds it.
        let mut turn = self.turn();
        let key = timers::key(Clock::Steady, turn.due);
        if self.is_cancelled() || shared.jobs.expect().is_err() {
            drop(turn);
            self.end();
            return Ok(());
        }
        turn.key = Some(key);
        let start = timers::add(key, shared.clone(), job);
        drop(turn);
        if shared.jobs.is_closed() {
            // Closed after it was asked: whoever closed it may not have seen this one.
            timers::cancel(py, key);
        }
        if start { timers::start(py, key) } else { Ok(()) }
    }

    /// Sets the time of the next call, after one has ended.
    pub fn advance(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let now = clock::monotonic_ns();
        let mut turn = self.turn();
        if self.after_end {
            turn.due = now.saturating_add(self.interval_ns);
            return;
        }
        // Multiples of the interval from the start: what a call was late by is not added up.
        let missed = now.saturating_sub(turn.due) / self.interval_ns;
        self.missed.fetch_add(missed, Ordering::Relaxed);
        turn.due = turn.due.saturating_add(self.interval_ns.saturating_mul(missed + 1));
    }
}

#[pymethods]
impl Schedule {
    /// End the schedule; a call that has begun goes on. Return False where it had ended already.
    fn cancel(&self, py: Python<'_>) -> bool {
        if self.cancelled.swap(true, Ordering::Relaxed) {
            return false;
        }
        // After the flag: whoever has the job wait sees the flag, or its key is seen here.
        let key = self.turn().key.take();
        if let Some(key) = key {
            timers::cancel(py, key);
        }
        true
    }

    /// Whether the schedule has ended.
    #[getter]
    fn cancelled(&self) -> bool {
        self.is_cancelled()
    }

    /// Calls that have ended.
    #[getter]
    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Calls left out because the one before was not done in time.
    #[getter]
    fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Seconds between two calls.
    #[getter]
    fn interval(&self) -> f64 {
        self.interval_ns as f64 / 1e9
    }

    /// When the next call is due, as `time.monotonic()` counts; None after the end.
    #[getter]
    fn when(&self) -> Option<f64> {
        (!self.is_cancelled()).then(|| self.turn().due as f64 / 1e9)
    }

    fn __repr__(&self) -> String {
        let state = if self.is_cancelled() { "ended" } else { "goes on" };
        let (interval, runs) = (self.interval(), self.runs());
        format!("<Schedule every {interval} s, {runs} runs, {state}>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)
    }
}
