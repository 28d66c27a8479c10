//! The loop of a worker.
//!
//! A worker is a `threading.Thread` of the Python half that calls [`Worker::run`] and returns from it only at its end.
//! It keeps its thread state all the time, and stays attached to the interpreter while the queue has jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logspool_pool::{JobCounts, jobs};
use logspool_sys::clock;
use pyo3::prelude::*;

use super::run_by::RunBy;
use super::shared::{self, Shared};
use super::{results, running, timers};
use crate::interpreter::leaving;
use crate::interpreter::thread::name_thread;

/// Number of jobs that a worker runs before it gives waiting threads a chance to get the interpreter.
///
/// A job in Python code releases the interpreter on request, a job in C does not. Releasing the interpreter and taking
/// it back at once would make things worse: the waiting thread wakes in vain and starts CPython's 5 ms interval again.
/// A call of a Python function hands the interpreter over properly, and only if another thread has requested it.
const JOBS_PER_BREATH: u32 = 64;

/// The native part of a worker thread. It is counted among the workers before its thread is started.
#[pyclass(frozen, module = "logspool._native")]
pub struct Worker {
    shared: Arc<Shared>,
    /// True if the thread has begun, or if its starter has removed it from the count. Only one of the two may happen,
    /// but an interrupted start may try both.
    decided: AtomicBool,
}

impl Worker {
    /// A worker of a pool. The pool must have counted the worker already.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, decided: AtomicBool::new(false) }
    }
}

#[pymethods]
impl Worker {
    /// Note that the thread has begun. False: it was removed from the count, and the thread must leave.
    fn begin(&self) -> bool {
        !self.decided.swap(true, Ordering::Relaxed)
    }

    /// Remove the worker from the count, unless its thread has begun. Return whether this call removed it.
    pub fn give_back(&self) -> bool {
        let first = self.begin();
        if first {
            self.shared.jobs.forget_workers(1);
        }
        first
    }

    /// Close the pool and end all waiting jobs with an exception, because this worker cannot begin.
    fn give_up(&self, exception: &Bound<'_, PyAny>) {
        let jobs = &self.shared.jobs;
        jobs.close();
        jobs.forget_workers(1);
        jobs.take_all().into_iter().for_each(|job| job.fail(exception));
        timers::fail_all(&self.shared, exception);
    }

    /// Cancel the waiting jobs of its pool, even if the pool object is gone.
    fn cancel(&self, py: Python<'_>) {
        shared::cancel_all(py, &self.shared);
    }

    /// Return whether all running jobs of its pool wait for room in results.
    fn waits_for_takers(&self) -> bool {
        let JobCounts { pending, workers, busy, .. } = self.shared.jobs.counts();
        // If a worker sleeps while a job waits, the worker is about to take the job.
        let none_begins = pending == 0 || (busy > 0 && busy == workers);
        none_begins && busy == self.shared.room_waiters.waiting()
    }

    /// End the wait of this pool's jobs for room in results, now and for all later values.
    fn forget_takers(&self) {
        self.shared.room_waiters.forget();
    }

    /// In a forked child: end the waiting jobs of its pool with an exception, even if the pool object is gone.
    fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        self.shared.fail_after_fork(exception);
    }

    /// Run jobs until no more can come. The thread gets this name in the system.
    ///
    /// `breathe` is a Python function with a loop, in which the interpreter checks for requests of other threads.
    fn run(&self, py: Python<'_>, name: &str, breathe: &Bound<'_, PyAny>) {
        name_thread(name);
        results::as_worker(&self.shared.room_waiters, || self.do_jobs(py, breathe));
    }
}

impl Worker {
    fn do_jobs(&self, py: Python<'_>, breathe: &Bound<'_, PyAny>) {
        let (shared, idle_timeout) = (&self.shared, self.shared.options.idle_timeout);
        let times = shared.times();
        let (mut from, mut done, mut begun) = (jobs::WorkerEvent::Start, 0u32, 0);
        loop {
            from = match shared.jobs.next(from) {
                jobs::WorkerStep::Job(job) => {
                    if from != jobs::WorkerEvent::Job {
                        begun = clock::ticks();
                    }
                    let since = job.since;
                    if !running::run(job, py, shared, &mut RunBy::Worker) {
                        shared.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    // The clock is read once per job: the end of a job is also the beginning of the next job.
                    let ended = clock::ticks();
                    times.note(since, begun, ended);
                    begun = ended;
                    done = done.wrapping_add(1);
                    if done % JOBS_PER_BREATH == 0 && leaving::call(breathe.as_borrowed()).is_none() {
                        PyErr::fetch(py).write_unraisable(py, Some(breathe));
                    }
                    jobs::WorkerEvent::Job
                }
                jobs::WorkerStep::Sleep(ticket) => {
                    let woken = leaving::detached(py, || shared.jobs.sleep(ticket, idle_timeout));
                    if woken || idle_timeout.is_none() {
                        jobs::WorkerEvent::Sleep
                    } else {
                        jobs::WorkerEvent::LongSleep
                    }
                }
                jobs::WorkerStep::Leave => return,
            };
        }
    }
}
