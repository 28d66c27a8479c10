//! What a job may have beside its callable and a future: callbacks, results, a limit of time, a schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyTimeoutError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use super::job::{self, By, Job};
use super::results::Sender;
use super::schedule::Schedule;
use super::shared::Shared;
use super::{future, timers};
use crate::interpreter::leaving;
use crate::interpreter::object::Owned;

/// See the module. Dropped by attached threads only.
pub struct Extra {
    /// The future, if there is one.
    pub future: Option<Owned>,
    /// Called with what the job gives.
    pub done: Option<Owned>,
    /// Called with what it raises.
    pub failed: Option<Owned>,
    /// Gets both.
    pub results: Option<Sender>,
    /// How long it may run, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// When it is done again.
    pub schedule: Option<Py<Schedule>>,
    /// Even: the job does not run, or its time was over. Odd: it runs.
    pub turn: AtomicU64,
}

/// Does the job and tells who wants to know, as [`Job::run`].
///
/// # Safety
///
/// Attached; the job's target is `extra`.
#[cold]
pub unsafe fn run(job: Job, extra: &Arc<Extra>, shared: &Arc<Shared>, by: &mut By<'_>) -> bool {
    // SAFETY: as the caller says; all objects are owned.
    unsafe {
        let py = Python::assume_attached();
        if extra.schedule.as_ref().is_some_and(|schedule| schedule.get().is_cancelled()) {
            return true;
        }
        if extra.future.as_ref().is_some_and(|future| !future::start(future.as_ptr())) {
            return true;
        }
        let turn = extra.turn.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = extra.limit_ns.map(|time| timers::limit(py, shared, extra, turn, time));
        let (outcome, streamed) = outcome(&job, extra, shared, turn, by);
        if let Some(limit) = limit {
            timers::forget_limit(limit);
        }
        let function = job.function();
        // Before the end is told: who waits for it may expect the arguments to be free.
        let again = extra.schedule.is_some().then_some(job);
        // Else the time was over, and all were told.
        let in_time = extra.turn.compare_exchange(turn, turn + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let good = match outcome {
            _ if !in_time => {
                // Dropped, unless it is Ctrl-C of the caller.
                if let Err(exception) = outcome {
                    let _ = by.keep(py, error_of(py, &exception));
                }
                true
            }
            Ok(value) => {
                drop(function);
                let kept = extra.future.is_some().then(|| Owned::borrow(value.as_ptr()));
                if !streamed {
                    extra.give(py, shared, value, by);
                }
                extra.end(kept);
                true
            }
            Err(exception) => extra.fail(py, exception, function.as_ptr(), by),
        };
        if let (Some(schedule), Some(job)) = (&extra.schedule, again) {
            let schedule = schedule.get();
            schedule.advance();
            if let Err(error) = schedule.wait(py, shared, job) {
                error.write_unraisable(py, None);
            }
        }
        good
    }
}

/// Calls the function in the job's context, and takes what a generator yields. Gives what it returned or raised, and
/// whether it was a generator.
unsafe fn outcome(
    job: &Job,
    extra: &Extra,
    shared: &Shared,
    turn: u64,
    by: &mut By<'_>,
) -> (Result<Owned, Owned>, bool) {
    let streams = extra.future.is_none() || extra.results.is_some() || extra.done.is_some();
    let (mut outcome, mut streamed) = (None, false);
    // SAFETY: attached, as the caller of `run` says; all objects are owned.
    unsafe {
        let py = Python::assume_attached();
        job.in_context(|job| {
            let mut result = Owned::steal(job.call()).ok_or_else(|| job::caught());
            if let Ok(generator) = &result
                && streams
                && is_generator(generator.as_ptr())
            {
                result = stream(generator.as_ptr(), |value| {
                    extra.turn.load(Ordering::Relaxed) == turn && extra.give(py, shared, value, by)
                });
                streamed = true;
            }
            outcome = Some(result);
        });
        // Nothing was called where the context could not be entered.
        (outcome.unwrap_or_else(|| Err(job::caught())), streamed)
    }
}

/// Whether the exact type is that of generators.
///
/// # Safety
///
/// A live object.
#[inline]
pub unsafe fn is_generator(object: *mut PyObject) -> bool {
    // SAFETY: as the caller says.
    unsafe { ffi::PyGen_CheckExact(object) != 0 }
}

/// Takes value after value of a generator until its end, or until `each` returns false. Gives what it returns.
///
/// # Safety
///
/// A live generator; attached.
pub unsafe fn stream(generator: *mut PyObject, mut each: impl FnMut(Owned) -> bool) -> Result<Owned, Owned> {
    // SAFETY: as the caller says.
    unsafe {
        loop {
            match leaving::step(generator) {
                leaving::GeneratorStep::Yields(value) => {
                    let value = Owned::steal(value).ok_or_else(|| job::caught())?;
                    if each(value) {
                        continue;
                    }
                    let close = pyo3::intern!(Python::assume_attached(), "close");
                    return Owned::steal(leaving::method(generator, close.as_ptr())).ok_or_else(|| job::caught());
                }
                leaving::GeneratorStep::Returns(value) => return Owned::steal(value).ok_or_else(|| job::caught()),
                leaving::GeneratorStep::Raises => return Err(job::caught()),
            }
        }
    }
}

impl Extra {
    /// Gives a value to all who take one. False: there was somebody, but nobody is left, or the caller was interrupted.
    unsafe fn give(&self, py: Python<'_>, shared: &Shared, value: Owned, by: &mut By<'_>) -> bool {
        // SAFETY: live objects, attached.
        unsafe {
            if let Some(done) = &self.done {
                call_back(py, done, &value, by);
            }
            match self.results.as_ref().map(|results| results.put(py, &shared.takers, value)) {
                None => true,
                Some(Ok(taken)) => taken || self.done.is_some(),
                Some(Err(error)) => {
                    by.interrupted(py, error);
                    false
                }
            }
        }
    }

    /// Ends the future and the results.
    unsafe fn end(&self, value: Option<Owned>) {
        if self.schedule.is_none()
            && let Some(results) = &self.results
        {
            results.finish();
        }
        if let (Some(future), Some(value)) = (&self.future, value) {
            // SAFETY: a live future, attached.
            unsafe { future::finish_with(future.as_ptr(), value) };
        }
    }

    /// Tells of a failure. False: there is no future for it.
    unsafe fn fail(&self, py: Python<'_>, exception: Owned, function: *mut PyObject, by: &mut By<'_>) -> bool {
        // SAFETY: live objects, attached.
        unsafe {
            if let Some(failed) = &self.failed {
                call_back(py, failed, &exception, by);
            }
            if let Some(results) = &self.results {
                if self.future.is_none() && self.failed.is_none() {
                    results.put_exception(Owned::borrow(exception.as_ptr()));
                }
                if self.schedule.is_none() {
                    results.finish();
                }
            } else if self.future.is_none() && self.failed.is_none() {
                error_of(py, &exception).restore(py);
                by.unheard(py, function);
            }
            match &self.future {
                Some(future) => future::fail_with(future.as_ptr(), exception),
                None => return false,
            }
            true
        }
    }

    /// The time of a turn is over: tells so, if the job still runs. It cannot be stopped.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn time_is_over(&self, py: Python<'_>, shared: &Shared, turn: u64) {
        if self.turn.compare_exchange(turn, turn + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        shared.timed_out.fetch_add(1, Ordering::Relaxed);
        let seconds = self.limit_ns.unwrap_or(0) as f64 / 1e9;
        let error = PyTimeoutError::new_err(format!("the job ran longer than {seconds} s; it goes on, unheard"));
        // SAFETY: live objects, attached.
        unsafe {
            let exception = Owned::borrow(error.into_value(py).as_ptr());
            if !self.fail(py, exception, ffi::Py_None(), &mut By::Worker) {
                shared.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Ends it without a run: as cancelled, or with an exception.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn give_up(&self, exception: Option<&Bound<'_, PyAny>>) {
        if let Some(schedule) = &self.schedule {
            schedule.get().end();
        }
        // SAFETY: live objects, attached.
        unsafe {
            if let Some(future) = &self.future {
                job::give_up(future, exception);
            }
        }
        if let Some(results) = &self.results {
            results.finish();
        }
    }

    /// Ends it in a forked child with an exception, without telling anybody.
    ///
    /// # Safety
    ///
    /// Attached.
    pub unsafe fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        if let Some(schedule) = &self.schedule {
            schedule.get().end();
        }
        if let Some(future) = &self.future {
            // SAFETY: a live future, attached.
            unsafe { future::fail_after_fork(future.as_ptr(), Owned::of(exception)) };
        }
        if let Some(results) = &self.results {
            results.finish_after_fork();
        }
    }
}

/// Calls a callback; nobody is told of what it raises.
unsafe fn call_back(py: Python<'_>, callback: &Owned, value: &Owned, by: &mut By<'_>) {
    // SAFETY: live objects; attached.
    unsafe {
        if Owned::steal(leaving::call_with(callback.as_ptr(), value.as_ptr())).is_none() {
            by.unheard(py, callback.as_ptr());
        }
    }
}

fn error_of(py: Python<'_>, exception: &Owned) -> PyErr {
    // SAFETY: a live exception; attached.
    PyErr::from_value(unsafe { Bound::from_borrowed_ptr(py, exception.as_ptr()) })
}
