//! How jobs enter the pool: from the arguments of a call into the queue, and the overflow policy for a full queue.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logspool_pool::jobs::{self, QueueLimit, QueuePosition};
use logspool_pool::timers::Clock;
use logspool_sys::clock;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::core::PoolCore;
use super::future::FutureHandle;
use super::job::{Job, JobTarget};
use super::job_options::{self, JobOptions};
use super::run_by::RunBy;
use super::running;
use super::schedule::{Rhythm, Schedule};
use super::shared::{Overflow, Shared};
use super::view::View;
use super::worker::Worker;
use super::{arguments, event_loop, future_type, timer_type, timers};
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::interpreter::waiting::{self, Deadline};

/// The object whose method adds the job: a pool, or a view of a pool with its own options.
#[derive(Clone, Copy)]
pub struct JobOrigin<'a> {
    pool: Borrowed<'a, 'a, PoolCore>,
    /// Where the new jobs are added in the queue.
    place: QueuePosition,
    job_options: Option<&'a JobOptions>,
}

impl<'a> JobOrigin<'a> {
    /// The origin for calls of a pool's methods.
    #[inline]
    pub fn of_pool(pool: Borrowed<'a, 'a, PoolCore>) -> Self {
        Self { pool, place: QueuePosition::Normal, job_options: None }
    }

    /// The origin for calls of a view's methods.
    #[inline]
    pub fn of_view(view: Borrowed<'a, 'a, View>) -> Self {
        // SAFETY: a frozen class is never mutated, and the object stays borrowed for `'a`.
        let found: &'a View = unsafe { &*ptr::from_ref(view.get()) };
        Self { pool: found.pool.bind_borrowed(view.py()), place: found.place, job_options: Some(&found.job_options) }
    }

    /// The same origin with another position in the queue.
    #[inline]
    pub fn at(self, place: QueuePosition) -> Self {
        Self { place, ..self }
    }

    /// The pool as an object.
    fn object(&self) -> Object<'a, 'a> {
        // SAFETY: `self` borrows the pool for `'a`.
        unsafe { Borrowed::from_ptr(self.pool.py(), self.pool.as_ptr()) }
    }

    #[inline(always)]
    fn target(&self, future: Option<FutureHandle>, schedule: Option<Py<Schedule>>) -> PyResult<JobTarget> {
        Ok(job_options::target(self.pool.py(), self.pool.get().job_options()?, self.job_options, future, schedule))
    }

    fn refusal(&self) -> PyErr {
        let py = self.pool.py();
        match leaving::method(self.object(), &names().refusal) {
            Some(why) => PyErr::from_value(why.bind(py).to_owned()),
            None => PyErr::fetch(py),
        }
    }
}

/// The error for a call whose arguments do not include a function.
#[cold]
fn no_function(method: &str) -> PyErr {
    PyTypeError::new_err(format!("{method}() missing 1 required positional argument: 'fn'"))
}

/// Implements `push(fn, ...)`.
///
/// # Errors
///
/// The function is missing or not callable; the pool is closed or full; a worker cannot be started. The same errors are
/// raised by all functions below.
#[inline(always)]
pub fn push(origin: JobOrigin<'_>, call: Call<'_, '_>) -> PyResult<()> {
    take(&origin, "push", call, false, || origin.target(None, None))
}

/// Implements `submit(fn, ...)`.
///
/// # Errors
///
/// The errors of [`push`].
#[inline(always)]
pub fn submit(origin: JobOrigin<'_>, method: &str, call: Call<'_, '_>) -> PyResult<Owned> {
    let py = origin.pool.py();
    let mut made = None;
    take(&origin, method, call, false, || {
        let future = future_type::pending(py)?;
        let for_job = future.for_other_thread(py);
        made = Some(future);
        origin.target(Some(for_job), None)
    })?;
    Ok(made.expect("a job that was taken has its future").into_object())
}

/// Implements `run(fn, ...)`.
///
/// # Errors
///
/// The errors of [`push`]. `RuntimeError` if no asyncio event loop runs.
pub fn run(origin: JobOrigin<'_>, call: Call<'_, '_>) -> PyResult<Owned> {
    let py = origin.pool.py();
    if call.positional().is_empty() {
        return Err(no_function("run"));
    }
    let fetched = || PyErr::fetch(py);
    let asyncio_loop = leaving::call(event_loop::running(py)?.bind(py)).ok_or_else(fetched)?;
    let loop_object = PoolCore::event_loop_of(origin.pool, asyncio_loop.bind(py))?;
    let future = leaving::method(asyncio_loop.bind(py), &names().create_future).ok_or_else(fetched)?;
    let waiting = Box::new((future.clone_ref(py), loop_object));
    take(&origin, "run", call, true, || Ok(JobTarget::Loop(waiting)))?;
    Ok(future)
}

/// Makes a job from the arguments of a call and adds it to the queue. With `never_waits`, a full queue with the policy
/// `"block"` accepts the job although it exceeds the queue's size.
#[inline(always)]
fn take(
    origin: &JobOrigin<'_>,
    method: &str,
    call: Call<'_, '_>,
    never_waits: bool,
    target: impl FnOnce() -> PyResult<JobTarget>,
) -> PyResult<()> {
    let shared = origin.pool.get().shared()?;
    let Some((function, values)) = call.split_first() else { return Err(no_function(method)) };
    check_callable(method, function)?;
    let context = shared.context(origin.pool.py())?;
    let job = Job::new(function, values, context, target()?, clock::ticks());
    let limit =
        if never_waits && shared.options.overflow == Overflow::Block { QueueLimit::Ignored } else { QueueLimit::Kept };
    match shared.jobs.push(job, origin.place, limit) {
        Ok(false) => Ok(()),
        Ok(true) => start_worker(origin, shared),
        Err((job, why)) => refused(origin, shared, job, why),
    }
}

/// Checks that an object can be called.
#[inline(always)]
fn check_callable(method: &str, function: Object<'_, '_>) -> PyResult<()> {
    if function.is_callable() { Ok(()) } else { arguments::check_callable(method, &function) }
}

/// Lets the Python half start a worker that is already counted. If the start fails, removes the worker from the count.
///
/// # Errors
///
/// An exception that is no `Exception`, such as `KeyboardInterrupt`. An `Exception` is returned only if the pool has no
/// worker left.
#[cold]
fn start_worker(origin: &JobOrigin<'_>, shared: &Arc<Shared>) -> PyResult<()> {
    let py = origin.pool.py();
    let worker = Bound::new(py, Worker::new(shared.clone())).inspect_err(|_| shared.jobs.forget_workers(1))?;
    let started = leaving::method_of_one(origin.object(), &names().start_worker, worker.as_any().as_borrowed());
    if started.is_some() {
        return Ok(());
    }
    let error = PyErr::fetch(py);
    worker.get().give_back();
    let others = shared.jobs.counts().workers > 0;
    if others && error.is_instance_of::<PyException>(py) { Ok(()) } else { Err(error) }
}

/// Starts `count` workers that are already counted.
///
/// # Errors
///
/// The errors of [`start_worker`]. After an error the remaining workers are not started and are removed from the count.
pub fn start_workers(origin: &JobOrigin<'_>, shared: &Arc<Shared>, count: usize) -> PyResult<()> {
    (0..count).try_for_each(|begun| {
        start_worker(origin, shared).inspect_err(|_| shared.jobs.forget_workers(count - begun - 1))
    })
}

/// Applies the pool's overflow policy to a job that the full queue has refused.
#[cold]
fn refused(origin: &JobOrigin<'_>, shared: &Arc<Shared>, mut job: Job, mut why: jobs::JobRefused) -> PyResult<()> {
    let py = origin.pool.py();
    loop {
        if why == jobs::JobRefused::Closed {
            return Err(origin.refusal());
        }
        match shared.options.overflow {
            Overflow::Block => {
                waiting::wait(py, Deadline::None, |slice| shared.jobs.wait_for_room(slice))?;
            }
            Overflow::Raise => {
                let full = py.import("queue")?.getattr("Full")?.call1(("as many jobs wait as the pool takes",))?;
                return Err(PyErr::from_value(full));
            }
            Overflow::DropOldest => {
                if let Some(oldest) = shared.jobs.take_oldest() {
                    shared.dropped.fetch_add(1, Ordering::Relaxed);
                    oldest.cancel(py);
                }
            }
            Overflow::CallerRuns => return run_here(py, shared, job),
        }
        match shared.jobs.push(job, origin.place, QueueLimit::Kept) {
            Ok(false) => return Ok(()),
            Ok(true) => return start_worker(origin, shared),
            Err(refused) => (job, why) = refused,
        }
    }
}

/// Runs a job in the calling thread.
///
/// # Errors
///
/// The exception of the job or of a callback, if it is no `Exception` and no future receives it. The exception of a
/// signal handler that ran while the job waited for room in its `Results`.
fn run_here(py: Python<'_>, shared: &Arc<Shared>, job: Job) -> PyResult<()> {
    let mut raised = None;
    if !running::run(job, py, shared, &mut RunBy::Caller(&mut raised)) {
        shared.failed.fetch_add(1, Ordering::Relaxed);
    }
    raised.map_or(Ok(()), Err)
}

/// How a due time is given.
#[derive(Clone, Copy)]
pub enum Due {
    /// As a delay from now, in seconds.
    Later,
    /// As a time of the wall clock, in seconds since 1970.
    At,
}

impl Due {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Later => ("submit_later", "delay"),
            Self::At => ("submit_at", "when"),
        }
    }

    fn time(self, value: &Bound<'_, PyAny>) -> PyResult<(Clock, u64)> {
        let name = self.names().1;
        let Self::At = self else {
            return Ok((
                Clock::Steady,
                timers::due_after(timers::nanoseconds(name, arguments::seconds(name, value)?)?),
            ));
        };
        let seconds = match value.extract::<f64>() {
            Ok(seconds) => seconds,
            Err(error) => {
                let Ok(timestamp) = value.getattr("timestamp") else {
                    return Err(arguments::named(name, "seconds since the epoch or a datetime", value, error));
                };
                if value.getattr("tzinfo").is_ok_and(|zone| zone.is_none()) {
                    return Err(PyValueError::new_err(
                        "when has no time zone; give it one, as datetime.now(timezone.utc) has",
                    ));
                }
                timestamp.call0()?.extract()?
            }
        };
        Ok((Clock::Wall, timers::nanoseconds(name, seconds)?))
    }
}

/// Implements `submit_later(delay, fn, ...)` and `submit_at(when, fn, ...)`.
///
/// # Errors
///
/// The errors of [`push`], and an error for a time outside the range of the clock.
pub fn submit_due(origin: JobOrigin<'_>, due: Due, call: Call<'_, '_>) -> PyResult<Owned> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    let (method, _) = due.names();
    let Some((time, rest)) = call.split_first() else { return Err(no_function(method)) };
    let Some((function, values)) = rest.split_first() else { return Err(no_function(method)) };
    let (clock, at) = due.time(&time)?;
    check_callable(method, function)?;
    let key = timers::key(clock, at);
    let timer = timer_type::new(&origin.object(), key)?;
    let target = origin.target(Some(timer.clone_ref(py)), None)?;
    let job = Job::new(function, values, shared.context(py)?, target, 0);
    if shared.jobs.announce().is_err() {
        return Err(origin.refusal());
    }
    if timers::add(key, shared.clone(), job) {
        timers::start(py, key)?;
    }
    if shared.jobs.is_closed() {
        // The pool was closed after `announce`. The closing thread may have missed this timer, so it is cancelled here.
        timers::cancel(py, key);
    }
    Ok(timer.into_object())
}

/// Implements `schedule(interval, fn, ...)` and `schedule_with_delay(delay, fn, ...)`.
///
/// # Errors
///
/// The errors of [`push`], and an error for an interval that is 0 or outside the range of the clock.
pub fn schedule(origin: JobOrigin<'_>, rhythm: Rhythm, call: Call<'_, '_>) -> PyResult<Owned> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    let (method, name) = match rhythm {
        Rhythm::FromDue => ("schedule", "interval"),
        Rhythm::FromEnd => ("schedule_with_delay", "delay"),
    };
    let Some((interval, rest)) = call.split_first() else { return Err(no_function(method)) };
    let Some((function, values)) = rest.split_first() else { return Err(no_function(method)) };
    let seconds = arguments::seconds(name, &interval)?;
    check_callable(method, function)?;
    let interval_ns = timers::nanoseconds(name, seconds)?;
    if interval_ns == 0 {
        return Err(PyValueError::new_err(format!("{name} must be greater than 0, not {seconds}")));
    }
    if shared.jobs.is_closed() {
        return Err(origin.refusal());
    }
    let made =
        Bound::new(py, Schedule::new(origin.pool.to_owned().into_any().unbind(), timers::cancel, interval_ns, rhythm))?;
    let target = origin.target(None, Some(made.clone().unbind()))?;
    let job = Job::new(function, values, shared.context(py)?, target, 0);
    timers::repeat(py, made.get(), shared, job)?;
    Ok(Owned::of(made.as_any()))
}

/// Maximum number of jobs that `push_many` adds at once. It locks the queue and wakes workers once for each batch.
const MAX_BATCH: usize = 1024;

/// Implements `push_many(fn, *iterables)`.
///
/// # Errors
///
/// The exception of an iterable, and the errors of [`push`].
pub fn push_many(
    origin: &JobOrigin<'_>,
    function: &Bound<'_, PyAny>,
    iterables: &Bound<'_, PyTuple>,
) -> PyResult<usize> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    arguments::check_callable("push_many", function)?;
    let rows = py.import("builtins")?.getattr("zip")?.call1(iterables)?;
    let (mut count, mut jobs) = (0, VecDeque::new());
    for row in rows.try_iter()? {
        let row = match row {
            Ok(row) => row.cast_into::<PyTuple>()?,
            Err(error) => {
                // The items before a failure are pushed, as if each item were pushed by its own call.
                push_all(origin, shared, &mut jobs)?;
                return Err(error);
            }
        };
        let row = row.as_any().as_borrowed();
        let values = Call::positional_only(py, object::tuple_items(row).unwrap_or(&[]));
        let (context, target) = (shared.context(py)?, origin.target(None, None)?);
        jobs.push_back(Job::new(function.as_borrowed(), values, context, target, clock::ticks()));
        count += 1;
        if jobs.len() == MAX_BATCH {
            push_all(origin, shared, &mut jobs)?;
        }
    }
    push_all(origin, shared, &mut jobs)?;
    Ok(count)
}

/// Pushes all of `jobs`. The overflow policy is applied to each job for which the queue has no room.
fn push_all(origin: &JobOrigin<'_>, shared: &Arc<Shared>, jobs: &mut VecDeque<Job>) -> PyResult<()> {
    while !jobs.is_empty() {
        let found = shared.jobs.push_many(jobs, origin.place);
        start_workers(origin, shared, found.unwrap_or(0))?;
        if let Some(job) = jobs.pop_front() {
            refused(origin, shared, job, found.err().unwrap_or(jobs::JobRefused::Full))?;
        }
    }
    Ok(())
}
