//! The loop of a worker.
//!
//! A worker is a `threading.Thread` of the Python half that calls [`Worker::run`] and stays in it: with its own thread
//! state, and with the interpreter for as many jobs as there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logspool_pool::{Counts, jobs};
use logspool_sys::clock;
use pyo3::prelude::*;

use super::job::By;
use super::shared::{self, Shared};
use super::{results, timers};
use crate::interpreter::leaving;
use crate::interpreter::thread::name_thread;

/// How many jobs a worker does before it lets others have the interpreter if they ask for it.
///
/// A job in Python gives way by itself, one in C does not. Giving the interpreter away and taking it back would be worse
/// than nothing: who waits for it is woken in vain, and begins to count CPython's 5 ms anew. A call of a Python
/// function hands it over properly, and only when somebody asked.
const JOBS_PER_BREATH: u32 = 64;

/// What a worker thread runs. It is counted among the workers before its thread is started.
#[pyclass(frozen, module = "logspool._native")]
pub struct Worker {
    shared: Arc<Shared>,
    /// Whether the thread has begun, or whoever was to start it has counted it off: an interrupted start may do both.
    decided: AtomicBool,
}

impl Worker {
    /// Of a pool that has counted it.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decided: AtomicBool::new(false) }
    }
}

#[pymethods]
impl Worker {
    /// Be the thread's first call. False: it was counted off, and the thread has to leave.
    fn begin(&self) -> bool {
        !self.decided.swap(true, Ordering::Relaxed)
    }

    /// Count the worker off, unless its thread has begun. Return whether it was counted off now.
    pub fn give_back(&self) -> bool {
        let first = self.begin();
        if first {
            self.shared.jobs.forget_workers(1);
        }
        first
    }

    /// Close the pool and end all jobs that wait with an exception: this worker cannot begin.
    fn give_up(&self, exception: &Bound<'_, PyAny>) {
        let jobs = &self.shared.jobs;
        jobs.close();
        jobs.forget_workers(1);
        jobs.take_all().into_iter().for_each(|job| job.fail(exception));
        timers::fail_all(&self.shared, exception);
    }

    /// Cancel the jobs of its pool that wait, also when that one is gone.
    fn cancel(&self, py: Python<'_>) {
        shared::cancel_all(py, &self.shared);
    }

    /// Whether all jobs of its pool that run wait for room in results.
    fn waits_for_takers(&self) -> bool {
        let Counts { pending, workers, busy, .. } = self.shared.jobs.counts();
        // A worker that sleeps is about to take a job that is there.
        let none_begins = pending == 0 || (busy > 0 && busy == workers);
        none_begins && busy == self.shared.takers.waiting()
    }

    /// Have no job of its pool wait for room in results any longer.
    fn forget_takers(&self) {
        self.shared.takers.forget();
    }

    /// In a forked child: end the jobs of its pool that wait with an exception, also when that one is gone.
    fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        self.shared.fail_after_fork(exception);
    }

    /// Do jobs until none will come, in a thread with this name for the system.
    ///
    /// `breathe` is a Python function with a loop in it: there the interpreter looks whether others ask for it.
    fn run(&self, py: Python<'_>, name: &str, breathe: &Bound<'_, PyAny>) {
        name_thread(name);
        results::as_worker(&self.shared.takers, || self.do_jobs(py, breathe));
    }
}

impl Worker {
    fn do_jobs(&self, py: Python<'_>, breathe: &Bound<'_, PyAny>) {
        let (shared, idle_timeout) = (&self.shared, self.shared.options.idle_timeout);
        let times = shared.times();
        let (mut from, mut done, mut begun) = (jobs::From::Start, 0u32, 0);
        loop {
            from = match shared.jobs.next(from) {
                jobs::Next::Job(job) => {
                    if from != jobs::From::Job {
                        begun = clock::ticks();
                    }
                    let since = job.since;
                    if !job.run(py, shared, &mut By::Worker) {
                        shared.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    // The end of a job is the beginning of the next: one look at the clock for both.
                    let ended = clock::ticks();
                    times.note(since, begun, ended);
                    begun = ended;
                    done = done.wrapping_add(1);
                    if done % JOBS_PER_BREATH == 0 && leaving::call(breathe.as_borrowed()).is_none() {
                        PyErr::fetch(py).write_unraisable(py, Some(breathe));
                    }
                    jobs::From::Job
                }
                jobs::Next::Sleep(ticket) => {
                    let woken = leaving::outside(py, || shared.jobs.sleep(ticket, idle_timeout));
                    if woken || idle_timeout.is_none() { jobs::From::Sleep } else { jobs::From::LongSleep }
                }
                jobs::Next::Leave => return,
            };
        }
    }
}
