//! The state that a pool and its workers share: the queue of jobs, options and counts.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logspool_pool::{Jobs, WorkerTimes, times};
use logspool_sys::clock;
use logspool_sys::histogram::HistogramCounts;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::job::Job;
use super::results::RoomWaiters;
use crate::interpreter::object::Owned;

/// What happens to a new job while the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    Block,
    Raise,
    DropOldest,
    CallerRuns,
}

impl Overflow {
    /// The policy with this name in Python.
    ///
    /// # Errors
    ///
    /// `ValueError` for another word.
    pub fn of(word: &str) -> PyResult<Self> {
        match word {
            "block" => Ok(Self::Block),
            "raise" => Ok(Self::Raise),
            "drop_oldest" => Ok(Self::DropOldest),
            "caller_runs" => Ok(Self::CallerRuns),
            _ => Err(PyValueError::new_err(format!(
                "overflow is {word:?}, expected 'block', 'raise', 'drop_oldest' or 'caller_runs'"
            ))),
        }
    }
}

/// Options of a pool that do not change after the pool is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub overflow: Overflow,
    pub copies_context: bool,
    pub idle_timeout: Option<Duration>,
}

/// The state that the pool object and its workers share. The only Python objects in it belong to jobs.
pub struct Shared {
    pub jobs: Jobs<Job>,
    pub options: Options,
    /// Number of jobs without a future that raised an exception.
    pub failed: AtomicU64,
    /// Number of jobs that were dropped to make room for newer ones.
    pub dropped: AtomicU64,
    /// Number of jobs that ran longer than their time limit.
    pub timed_out: AtomicU64,
    /// Counts the workers that wait for room in `Results`, and can end these waits permanently.
    pub room_waiters: RoomWaiters,
    /// The times of jobs, with one entry for each worker. A new worker takes over the entry of a worker that ended.
    times: Mutex<Vec<Arc<WorkerTimes>>>,
}

impl Shared {
    /// The initial state of a pool.
    pub fn new(queue_size: usize, most_workers: usize, options: Options) -> Self {
        Self {
            jobs: Jobs::new(queue_size, most_workers),
            options,
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            room_waiters: RoomWaiters::default(),
            times: Mutex::default(),
        }
    }

    /// In a forked child: ends the waiting jobs with an exception, because they belong to the parent.
    pub fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        for job in self.jobs.take_all_after_fork() {
            job.fail_after_fork(exception);
        }
    }

    fn all_times(&self) -> MutexGuard<'_, Vec<Arc<WorkerTimes>>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry in which a new worker counts the times of its jobs.
    pub fn times(&self) -> Arc<WorkerTimes> {
        let mut times = self.all_times();
        if let Some(free) = times.iter().find(|each| Arc::strong_count(each) == 1) {
            return free.clone();
        }
        let made = Arc::new(WorkerTimes::new());
        times.push(made.clone());
        made
    }

    /// Histograms of the seconds that jobs waited, and of the seconds that they ran.
    pub fn histograms(&self) -> (HistogramCounts, HistogramCounts) {
        WorkerTimes::sum(self.all_times().iter().map(|each| &**each))
    }

    /// Seconds that the oldest waiting job has waited.
    pub fn oldest_age(&self) -> f64 {
        let now = clock::ticks();
        let oldest = self.jobs.oldest(|job| job.since);
        oldest.map_or(0.0, |since| times::seconds(since, now))
    }

    /// A copy of the current context for a job that is accepted now; `None` if the pool does not copy contexts.
    #[inline]
    pub fn context(&self, py: Python<'_>) -> PyResult<Option<Owned>> {
        if !self.options.copies_context {
            return Ok(None);
        }
        // SAFETY: the token shows that the thread is attached. The result is a new reference, or null with an error
        // set.
        unsafe { Owned::steal(ffi::PyContext_CopyCurrent()) }.map(Some).ok_or_else(|| PyErr::fetch(py))
    }
}

/// Cancels the waiting jobs. Returns their number.
pub fn cancel_all(py: Python<'_>, shared: &Shared) -> usize {
    let jobs = shared.jobs.take_all();
    let count = jobs.len();
    jobs.into_iter().for_each(|job| job.cancel(py));
    count
}
