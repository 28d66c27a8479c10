//! `logspool.pool.Schedule`: the handle of a job that is repeated.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use logspool_pool::timers::TimerKey;
use logspool_sys::clock;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

/// From which time on the interval before the next call is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rhythm {
    /// From the time at which the call was due.
    FromDue,
    /// From the end of the call.
    FromEnd,
}

/// The handle of a job that runs repeatedly.
#[pyclass(frozen, weakref, module = "logspool.pool")]
pub struct Schedule {
    /// Keeps the pool alive, because the pool must start a worker for the job.
    pool: Py<PyAny>,
    /// Removes a timer before its due time, and cancels its job.
    cancel_timer: fn(Python<'_>, TimerKey),
    interval_ns: u64,
    rhythm: Rhythm,
    turn: Mutex<NextCall>,
    cancelled: AtomicBool,
    runs: AtomicU64,
    missed: AtomicU64,
}

/// The next call of the scheduled job.
struct NextCall {
    /// The due time of the call, in nanoseconds of the steady clock.
    due: u64,
    /// The timer of the call.
    key: Option<TimerKey>,
}

impl Schedule {
    /// A schedule for a job of `pool`. The first call is due after one interval.
    pub fn new(pool: Py<PyAny>, cancel_timer: fn(Python<'_>, TimerKey), interval_ns: u64, rhythm: Rhythm) -> Self {
        let due = clock::monotonic_ns().saturating_add(interval_ns);
        Self {
            pool,
            cancel_timer,
            interval_ns,
            rhythm,
            turn: Mutex::new(NextCall { due, key: None }),
            cancelled: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }

    fn next_call(&self) -> std::sync::MutexGuard<'_, NextCall> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the schedule has ended.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Ends the schedule. No more calls are added.
    pub fn end(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Prepares the next call: `add` adds it to the timers, with a key that `key` makes for its due time. Does nothing
    /// after the end, and ends the schedule if `is_accepted` refuses the call. Returns what `add` returned.
    pub fn arm<T>(
        &self,
        key: impl FnOnce(u64) -> TimerKey,
        is_accepted: impl FnOnce() -> bool,
        add: impl FnOnce(TimerKey) -> T,
    ) -> Option<(TimerKey, T)> {
        // The lock is held until the timer is added, so that a concurrent `cancel` finds the timer's key.
        let mut turn = self.next_call();
        let key = key(turn.due);
        if self.is_cancelled() || !is_accepted() {
            drop(turn);
            self.end();
            return None;
        }
        turn.key = Some(key);
        Some((key, add(key)))
    }

    /// Sets the due time of the next call. Called after a call has ended.
    pub fn advance(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let now = clock::monotonic_ns();
        let mut turn = self.next_call();
        if self.rhythm == Rhythm::FromEnd {
            turn.due = now.saturating_add(self.interval_ns);
            return;
        }
        // Due times are whole multiples of the interval after the start, so that delays do not add up.
        let missed = now.saturating_sub(turn.due) / self.interval_ns;
        self.missed.fetch_add(missed, Ordering::Relaxed);
        turn.due = turn.due.saturating_add(self.interval_ns.saturating_mul(missed + 1));
    }
}

#[pymethods]
impl Schedule {
    /// End the schedule; a running call continues. Return False if the schedule had ended already.
    fn cancel(&self, py: Python<'_>) -> bool {
        if self.cancelled.swap(true, Ordering::Relaxed) {
            return false;
        }
        // The flag is set before the key is read: either `arm` sees the flag, or its key is seen here.
        let key = self.next_call().key.take();
        if let Some(key) = key {
            (self.cancel_timer)(py, key);
        }
        true
    }

    /// Whether the schedule has ended.
    #[getter]
    fn cancelled(&self) -> bool {
        self.is_cancelled()
    }

    /// Number of calls that have ended.
    #[getter]
    fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Number of calls skipped because the previous call took too long.
    #[getter]
    fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Seconds between two calls.
    #[getter]
    fn interval(&self) -> f64 {
        self.interval_ns as f64 / 1e9
    }

    /// Time of the next call on the clock of `time.monotonic()`; None after the end.
    #[getter]
    fn when(&self) -> Option<f64> {
        (!self.is_cancelled()).then(|| self.next_call().due as f64 / 1e9)
    }

    fn __repr__(&self) -> String {
        let state = if self.is_cancelled() { "ended" } else { "active" };
        let (interval, runs) = (self.interval(), self.runs());
        format!("<Schedule every {interval} s, {runs} runs, {state}>")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)
    }
}
