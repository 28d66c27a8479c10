//! The rarer parts of a job: callbacks, results, a time limit, a schedule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyTimeoutError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::future::{self, FutureHandle};
use super::job::{self, Job, RunBy};
use super::results::Sender;
use super::schedule::Schedule;
use super::shared::Shared;
use super::timers;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned};

/// The rarer parts of a job. Dropped by attached threads only.
pub struct Extra {
    /// The future, if there is one.
    pub future: Option<FutureHandle>,
    /// Called with each value of the job.
    pub done: Option<Owned>,
    /// Called with the exception of the job.
    pub failed: Option<Owned>,
    /// Receives values and exceptions.
    pub results: Option<Sender>,
    /// How long the job may run, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// The schedule that repeats the job.
    pub schedule: Option<Py<Schedule>>,
    /// Odd while a run is in progress and within its time limit, else even.
    pub turn: AtomicU64,
}

/// Runs the job, whose target is `extra`, and reports its end, as [`Job::run`].
#[cold]
pub fn run(py: Python<'_>, job: Job, extra: &Arc<Extra>, shared: &Arc<Shared>, by: &mut RunBy<'_>) -> bool {
    if extra.schedule.as_ref().is_some_and(|schedule| schedule.get().is_cancelled()) {
        return true;
    }
    if extra.future.as_ref().is_some_and(|future| !future::start(future.bind(py))) {
        return true;
    }
    let turn = extra.turn.fetch_add(1, Ordering::Relaxed) + 1;
    let limit = extra.limit_ns.map(|time| timers::limit(py, shared, extra, turn, time));
    let (outcome, streamed) = outcome(py, &job, extra, shared, turn, by);
    if let Some(limit) = limit {
        timers::forget_limit(limit);
    }
    let function = job.function(py);
    // Taken before the end is reported: a thread that waits for the end may expect that the arguments are free.
    let again = extra.schedule.is_some().then_some(job);
    // False if the time limit was exceeded; then the timeout has been reported already.
    // Relaxed: it decides between two threads and shows nothing; the promise of the future shows its result.
    let in_time = extra.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    let good = match outcome {
        _ if !in_time => {
            // The exception is dropped, unless the caller runs the job and it is no `Exception`, such as Ctrl-C.
            if let Err(exception) = outcome {
                let _ = by.keep(py, error_of(py, &exception));
            }
            true
        }
        Ok(value) => {
            drop(function);
            let kept = extra.future.is_some().then(|| value.clone_ref(py));
            if !streamed {
                extra.pass_value(py, shared, value, by);
            }
            extra.end(py, kept);
            true
        }
        Err(exception) => extra.fail(exception, function.bind(py), by),
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

/// Calls the function in the job's context and delivers the values that a generator yields. Returns the returned value
/// or the exception, and whether a generator was consumed.
fn outcome(
    py: Python<'_>,
    job: &Job,
    extra: &Extra,
    shared: &Shared,
    turn: u64,
    by: &mut RunBy<'_>,
) -> (Result<Owned, Owned>, bool) {
    let streams = extra.future.is_none() || extra.results.is_some() || extra.done.is_some();
    let (mut outcome, mut streamed) = (None, false);
    job.in_context(py, |job| {
        let mut result = job.call(py).ok_or_else(|| job::take_exception(py));
        if let Ok(generator) = &result
            && streams
            && is_generator(generator.bind(py))
        {
            result = stream(generator.bind(py), |value| {
                extra.turn.load(Ordering::Relaxed) == turn && extra.pass_value(py, shared, value, by)
            });
            streamed = true;
        }
        outcome = Some(result);
    });
    // The context could not be entered: the function was not called, and that error is set.
    (outcome.unwrap_or_else(|| Err(job::take_exception(py))), streamed)
}

/// Whether the object is a generator, not an instance of a subclass.
#[inline]
pub fn is_generator(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object; the check reads only its type.
    unsafe { ffi::PyGen_CheckExact(object.as_ptr()) != 0 }
}

/// Takes values of a generator until its end, or until `each` returns false. Returns the return value of the generator.
///
/// # Errors
///
/// The exception that it raised.
pub fn stream(generator: Object<'_, '_>, mut each: impl FnMut(Owned) -> bool) -> Result<Owned, Owned> {
    let py = generator.py();
    loop {
        match leaving::step(generator) {
            leaving::GeneratorStep::Yields(value) => {
                if each(value) {
                    continue;
                }
                return leaving::method(generator, &names().close).ok_or_else(|| job::take_exception(py));
            }
            leaving::GeneratorStep::Returns(value) => return Ok(value),
            leaving::GeneratorStep::Raises => return Err(job::take_exception(py)),
        }
    }
}

impl Extra {
    /// Passes a value to the callback and the results. False: no receiver is left, or a signal interrupted the caller.
    fn pass_value(&self, py: Python<'_>, shared: &Shared, value: Owned, by: &mut RunBy<'_>) -> bool {
        if let Some(done) = &self.done {
            call_back(done.bind(py), value.bind(py), by);
        }
        match self.results.as_ref().map(|results| results.put(py, &shared.room_waiters, value)) {
            None => true,
            Some(Ok(taken)) => taken || self.done.is_some(),
            Some(Err(error)) => {
                by.interrupted(py, error);
                false
            }
        }
    }

    /// Ends the future and, unless the job is repeated, the results.
    fn end(&self, py: Python<'_>, value: Option<Owned>) {
        if self.schedule.is_none()
            && let Some(results) = &self.results
        {
            results.finish();
        }
        if let (Some(future), Some(value)) = (&self.future, value) {
            future::finish_with(future.bind(py), value);
        }
    }

    /// Reports a failure. False: there is no future for it.
    fn fail(&self, exception: Owned, function: Object<'_, '_>, by: &mut RunBy<'_>) -> bool {
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

    /// Reports that this turn exceeded its time limit, if the turn still runs. The job itself cannot be stopped.
    pub fn time_is_over(&self, py: Python<'_>, shared: &Shared, turn: u64) {
        // Relaxed: see the end of the turn in `run`.
        if self.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        shared.timed_out.fetch_add(1, Ordering::Relaxed);
        let seconds = self.limit_ns.unwrap_or(0) as f64 / 1e9;
        let error = PyTimeoutError::new_err(format!(
            "the job ran longer than {seconds} s; it continues, but its result is ignored"
        ));
        let exception = Owned::of(error.into_value(py).bind(py).as_any());
        if !self.fail(exception, py.None().bind_borrowed(py), &mut RunBy::Worker) {
            shared.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the job without a run: as cancelled, or with an exception.
    pub fn end_without_run(&self, py: Python<'_>, exception: Option<&Bound<'_, PyAny>>) {
        if let Some(schedule) = &self.schedule {
            schedule.get().end();
        }
        if let Some(future) = &self.future {
            job::give_up(future.bind(py), exception);
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

/// Calls a callback; its exception goes to `sys.unraisablehook`, or to a caller that runs the job itself if it is no
/// `Exception`.
fn call_back(callback: Object<'_, '_>, value: Object<'_, '_>, by: &mut RunBy<'_>) {
    if leaving::call_with(callback, value).is_none() {
        by.report_unraisable(callback);
    }
}

fn error_of(py: Python<'_>, exception: &Owned) -> PyErr {
    PyErr::from_value(exception.bind(py).to_owned())
}
