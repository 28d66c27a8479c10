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

/// Does the same as [`Job::run`] for a job whose target is `extra`.
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
    // The job is dropped before its end is reported, unless a schedule repeats it: a thread that waits for the end may
    // expect that the arguments are freed.
    let again = extra.schedule.is_some().then_some(job);
    // False if the time limit was exceeded. The timeout has been reported already in that case.
    // Relaxed: the exchange only decides which of two threads reports the end. The promise of the future publishes the
    // result.
    let in_time = extra.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    let good = match outcome {
        _ if !in_time => {
            // The exception is dropped, with one exception: the calling thread runs the job, and the exception is no
            // `Exception`, such as `KeyboardInterrupt`.
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

/// Calls the function in the job's context. If it returns a generator, delivers the values that the generator yields.
/// Returns the return value or the exception, and whether a generator was consumed.
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
    // If there is no outcome, the context could not be entered: the function was not called, and the error is set.
    (outcome.unwrap_or_else(|| Err(job::take_exception(py))), streamed)
}

/// True if the type of the object is exactly the generator type.
#[inline]
pub fn is_generator(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object; the check reads only its type.
    unsafe { ffi::PyGen_CheckExact(object.as_ptr()) != 0 }
}

/// Takes the values of a generator until its end, or until `each` returns false. Returns the return value of the
/// generator.
///
/// # Errors
///
/// The exception that the generator raised.
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
    /// Passes a value to the callback and the results. Returns false if no receiver is left, or if a signal interrupted
    /// the calling thread.
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

    /// Ends the future. Also ends the sender of the results, unless the job is repeated.
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

    /// Reports a failure. Returns false if the job has no future for the exception.
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

    /// Reports that the run number `turn` exceeded its time limit, if this run is still in progress. The job itself
    /// cannot be stopped.
    pub fn time_is_over(&self, py: Python<'_>, shared: &Shared, turn: u64) {
        // Relaxed: see the exchange in `run`.
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

    /// Ends the job without running it: with `exception`, or as cancelled if there is none.
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

/// Calls a callback. An exception of the callback is given to `sys.unraisablehook`. Only if it is no `Exception` and
/// the calling thread runs the job, the calling thread raises it.
fn call_back(callback: Object<'_, '_>, value: Object<'_, '_>, by: &mut RunBy<'_>) {
    if leaving::call_with(callback, value).is_none() {
        by.report_unraisable(callback);
    }
}

fn error_of(py: Python<'_>, exception: &Owned) -> PyErr {
    PyErr::from_value(exception.bind(py).to_owned())
}
