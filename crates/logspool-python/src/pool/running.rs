//! Runs a job and reports its end: its result, the values of a generator, its exception.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::ffi;
use pyo3::prelude::*;

use super::event_loop::{self, JobEnd};
use super::extra::Extra;
use super::future;
use super::job::{Job, JobTarget};
use super::run_by::{RunBy, error_of, take_exception};
use super::shared::Shared;
use super::timers;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned};

/// Runs the job and reports its end to the target. Returns false if the job failed and no future receives the
/// exception.
#[inline]
pub fn run(job: Job, py: Python<'_>, shared: &Arc<Shared>, by: &mut RunBy<'_>) -> bool {
    let wanted = match &job.target {
        JobTarget::Nobody => true,
        JobTarget::Future(future) => future::start(future.bind(py)),
        JobTarget::Loop(waiting) => !event_loop::is_cancelled(py, &waiting.0),
        JobTarget::Extra(extra) => {
            let extra = extra.clone();
            return run_with_extra(py, job, &extra, shared, by);
        }
    };
    if !wanted {
        return true;
    }
    let mut result = None;
    job.in_context(py, |job| {
        result = job.call(py);
        if let (JobTarget::Nobody, Some(generator)) = (&job.target, &result)
            && is_generator(generator.bind(py))
        {
            result = run_through(generator.bind(py));
        }
    });
    let Job { function, values, keywords, context, target, since: _ } = job;
    // The arguments are dropped before the end is reported: a thread that waits for the end may expect that they
    // are freed.
    drop((values, keywords, context));
    match (target, result) {
        (JobTarget::Nobody | JobTarget::Extra(_), Some(_)) => true,
        (JobTarget::Nobody | JobTarget::Extra(_), None) => {
            by.report_unraisable(function.bind(py));
            false
        }
        (JobTarget::Future(future), Some(result)) => {
            drop(function);
            future::finish_with(future.bind(py), result.into_other_thread(py));
            true
        }
        (JobTarget::Future(future), None) => {
            let exception = take_exception(py);
            drop(function);
            future::fail_with(future.bind(py), exception);
            true
        }
        (JobTarget::Loop(waiting), result) => {
            let how = result.map_or_else(
                || JobEnd::Exception(take_exception(py)),
                |result| JobEnd::Result(result.into_other_thread(py)),
            );
            let (future, event_loop) = *waiting;
            event_loop::deliver(py, &event_loop, future, how);
            true
        }
    }
}

/// Consumes a generator whose values have no receiver. Returns `None` if the generator raised; the error is set then.
#[cold]
fn run_through(generator: Object<'_, '_>) -> Option<Owned> {
    let py = generator.py();
    let end = stream(generator, |_| true);
    end.inspect_err(|error| PyErr::from_value(error.bind(py).to_owned()).restore(py)).ok()
}

/// Does the same as [`run`] for a job whose target is `extra`.
#[cold]
fn run_with_extra(py: Python<'_>, job: Job, extra: &Arc<Extra>, shared: &Arc<Shared>, by: &mut RunBy<'_>) -> bool {
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
                extra.pass_value(py, &shared.room_waiters, value, by);
            }
            extra.end(py, kept);
            true
        }
        Err(exception) => extra.fail(exception, function.bind(py), by),
    };
    if let (Some(schedule), Some(job)) = (&extra.schedule, again) {
        let schedule = schedule.get();
        schedule.advance();
        if let Err(error) = timers::repeat(py, schedule, shared, job) {
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
        let mut result = job.call(py).ok_or_else(|| take_exception(py));
        if let Ok(generator) = &result
            && streams
            && is_generator(generator.bind(py))
        {
            result = stream(generator.bind(py), |value| {
                extra.turn.load(Ordering::Relaxed) == turn && extra.pass_value(py, &shared.room_waiters, value, by)
            });
            streamed = true;
        }
        outcome = Some(result);
    });
    // If there is no outcome, the context could not be entered: the function was not called, and the error is set.
    (outcome.unwrap_or_else(|| Err(take_exception(py))), streamed)
}

/// True if the type of the object is exactly the generator type.
#[inline]
fn is_generator(object: Object<'_, '_>) -> bool {
    // SAFETY: a live object; the check reads only its type.
    unsafe { ffi::PyGen_CheckExact(object.as_ptr()) != 0 }
}

/// Takes the values of a generator until its end, or until `each` returns false. Returns the return value of the
/// generator.
///
/// # Errors
///
/// The exception that the generator raised.
fn stream(generator: Object<'_, '_>, mut each: impl FnMut(Owned) -> bool) -> Result<Owned, Owned> {
    let py = generator.py();
    loop {
        match leaving::step(generator) {
            leaving::GeneratorStep::Yields(value) => {
                if each(value) {
                    continue;
                }
                return leaving::method(generator, &names().close).ok_or_else(|| take_exception(py));
            }
            leaving::GeneratorStep::Returns(value) => return Ok(value),
            leaving::GeneratorStep::Raises => return Err(take_exception(py)),
        }
    }
}
