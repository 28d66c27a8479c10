//! The rarer parts of a job: callbacks, results, a time limit, a schedule.

use std::sync::atomic::AtomicU64;

use pyo3::prelude::*;

use super::future::{self, FutureHandle};
use super::results::{RoomWaiters, Sender};
use super::run_by::{RunBy, error_of};
use super::schedule::Schedule;
use crate::interpreter::leaving;
use crate::interpreter::object::{Object, Owned};

/// The rarer parts of a job. Only threads attached to the interpreter drop it.
pub struct Extra {
    /// The future, if there is one.
    pub future: Option<FutureHandle>,
    /// The callback that is called with each value of the job.
    pub done: Option<Owned>,
    /// The callback that is called with the exception of the job.
    pub failed: Option<Owned>,
    /// The `Results` that receive the values and exceptions.
    pub results: Option<Sender>,
    /// Time limit of the job, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// The schedule that repeats the job.
    pub schedule: Option<Py<Schedule>>,
    /// A counter that is odd while a run is in progress and within its time limit, and even otherwise.
    pub turn: AtomicU64,
}

impl Extra {
    /// Passes a value to the callback and the results. Returns false if no receiver is left, or if a signal interrupted
    /// the calling thread.
    pub fn pass_value(&self, py: Python<'_>, room_waiters: &RoomWaiters, value: Owned, by: &mut RunBy<'_>) -> bool {
        if let Some(done) = &self.done {
            call_back(done.bind(py), value.bind(py), by);
        }
        match self.results.as_ref().map(|results| results.put(py, room_waiters, value)) {
            None => true,
            Some(Ok(taken)) => taken || self.done.is_some(),
            Some(Err(error)) => {
                by.interrupted(py, error);
                false
            }
        }
    }

    /// Ends the future. Also ends the sender of the results, unless the job is repeated.
    pub fn end(&self, py: Python<'_>, value: Option<Owned>) {
        if self.schedule.is_none()
            && let Some(results) = &self.results
        {
            results.finish();
        }
        if let (Some(future), Some(value)) = (&self.future, value) {
            future::finish_with(future.bind(py), value);
        }
    }

    /// Reports a failure. Returns false if the job has no future for the exception.
    pub fn fail(&self, exception: Owned, function: Object<'_, '_>, by: &mut RunBy<'_>) -> bool {
        let py = function.py();
        if let Some(failed) = &self.failed {
            call_back(failed.bind(py), exception.bind(py), by);
        }
        if let Some(results) = &self.results {
            if self.future.is_none() && self.failed.is_none() {
                results.put_exception(exception.clone_ref(py));
            }
            if self.schedule.is_none() {
                results.finish();
            }
        } else if self.future.is_none() && self.failed.is_none() {
            error_of(py, &exception).restore(py);
            by.report_unraisable(function);
        }
        match &self.future {
            Some(future) => future::fail_with(future.bind(py), exception),
            None => return false,
        }
        true
    }

    /// Ends the job without running it: with `exception`, or as cancelled if there is none.
    pub fn end_without_run(&self, py: Python<'_>, exception: Option<&Bound<'_, PyAny>>) {
        if let Some(schedule) = &self.schedule {
            schedule.get().end();
        }
        if let Some(future) = &self.future {
            future::give_up(future.bind(py), exception);
        }
        if let Some(results) = &self.results {
            results.finish();
        }
    }

    /// Ends the job in a forked child with an exception, without notifying any callback or waiter.
    pub fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        if let Some(schedule) = &self.schedule {
            schedule.get().end();
        }
        if let Some(future) = &self.future {
            future::fail_after_fork(future.bind(exception.py()), Owned::of(exception));
        }
        if let Some(results) = &self.results {
            results.finish_after_fork();
        }
    }
}

/// Calls a callback. An exception of the callback is given to `sys.unraisablehook`. Only if it is no `Exception` and
/// the calling thread runs the job, the calling thread raises it.
fn call_back(callback: Object<'_, '_>, value: Object<'_, '_>, by: &mut RunBy<'_>) {
    if leaving::call_with(callback, value).is_none() {
        by.report_unraisable(callback);
    }
}
