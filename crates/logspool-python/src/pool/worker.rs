//! The loop of a worker.
//!
//! A worker is a `threading.Thread` of the Python half that calls [`Worker::run`] and stays in it: with its own thread
//! state, and with the interpreter for as many jobs as there are.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use logspool::pool::jobs;
use pyo3::prelude::*;

use super::core::Shared;
use crate::leaving::Detached;

/// How many jobs a worker does before it looks at the clock, and how long it may keep the interpreter then. Chosen:
/// CPython's own interval; a Python function gives way by itself, one in C does not.
const JOBS_PER_LOOK: u32 = 64;
const TURN: Duration = Duration::from_millis(5);

/// What a worker thread runs.
#[pyclass(frozen, module = "logspool._native")]
pub struct Worker(Arc<Shared>);

impl Worker {
    /// Of a pool.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

#[pymethods]
impl Worker {
    /// Close the pool and end all jobs that wait with an exception: this worker cannot begin.
    fn give_up(&self, exception: &Bound<'_, PyAny>) {
        let jobs = &self.0.jobs;
        jobs.close();
        jobs.forget_worker();
        // SAFETY: attached.
        jobs.take_all().into_iter().for_each(|job| unsafe { job.fail(exception) });
    }

    /// Do jobs until none will come, in a thread with this name for the system.
    fn run(&self, _py: Python<'_>, name: &str) {
        name_thread(name);
        let shared = &*self.0;
        let (mut from, mut done, mut turn) = (jobs::From::Start, 0u32, Instant::now());
        loop {
            from = match shared.jobs.next(from) {
                jobs::Next::Job(job) => {
                    // SAFETY: attached.
                    if !unsafe { job.run() } {
                        shared.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    done = done.wrapping_add(1);
                    if done % JOBS_PER_LOOK == 0 && turn.elapsed() > TURN {
                        // SAFETY: attached; nothing of Python is touched.
                        drop(unsafe { Detached::new() });
                        turn = Instant::now();
                    }
                    jobs::From::Job
                }
                jobs::Next::Sleep(ticket) => {
                    let woken = {
                        // SAFETY: as above.
                        let _detached = unsafe { Detached::new() };
                        shared.jobs.sleep(ticket, shared.idle_timeout)
                    };
                    turn = Instant::now();
                    if woken || shared.idle_timeout.is_none() { jobs::From::Sleep } else { jobs::From::LongSleep }
                }
                jobs::Next::Leave => return,
            };
        }
    }
}

/// Gives the calling thread a name that `top` and debuggers show; the kernel keeps 15 bytes.
fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; longer ones are cut.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}
