//! How jobs come in: from a call's arguments into the queue, and what happens where there is no room.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logspool_pool::jobs::{self, Place};
use logspool_pool::timers::Clock;
use logspool_sys::clock;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::core::{Overflow, PoolCore, Shared};
use super::job::{By, Job, Target};
use super::schedule::Schedule;
use super::view::{self, View, Wishes};
use super::waiting::{self, Deadline};
use super::worker::Worker;
use super::{arguments, event_loop, future, future_type, timer_type, timers};
use crate::leaving;
use crate::names::names;
use crate::object::{Call, Owned};

/// Where a call comes in: a pool, or a view of one with options of its own.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pool: Borrowed<'a, 'a, PoolCore>,
    /// Where in the queue its jobs go.
    place: Place,
    wishes: Option<&'a Wishes>,
}

impl<'a> Origin<'a> {
    /// A pool.
    #[inline]
    pub fn of_pool(pool: Borrowed<'a, 'a, PoolCore>) -> Self {
        Self { pool, place: Place::Normal, wishes: None }
    }

    /// A view.
    #[inline]
    pub fn of_view(view: Borrowed<'a, 'a, View>) -> Self {
        // SAFETY: a frozen class is only ever read, and the object is borrowed for as long.
        let found: &'a View = unsafe { &*ptr::from_ref(view.get()) };
        Self { pool: found.pool.bind_borrowed(view.py()), place: found.place, wishes: Some(&found.wishes) }
    }

    /// The same with another place.
    #[inline]
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    #[inline]
    fn target(&self, future: Option<Owned>, schedule: Option<Py<Schedule>>) -> PyResult<Target> {
        Ok(view::target(self.pool.py(), self.pool.get().wishes()?, self.wishes, future, schedule))
    }

    fn refusal(&self) -> PyErr {
        let py = self.pool.py();
        // SAFETY: a live pool and a `str`; attached. A new reference, or null with an error set.
        let why =
            unsafe { Bound::from_owned_ptr_or_err(py, leaving::method(self.pool.as_ptr(), names().refusal.as_ptr())) };
        why.map_or_else(|error| error, PyErr::from_value)
    }
}

/// An error for a call without a callable.
#[cold]
fn no_function(method: &str) -> PyErr {
    PyTypeError::new_err(format!("{method}() missing 1 required positional argument: 'fn'"))
}

/// `push(fn, ...)`
///
/// # Safety
///
/// `call` describes live objects. So for all that follow.
#[inline(always)]
pub unsafe fn push(origin: Origin<'_>, call: Call) -> PyResult<()> {
    // SAFETY: as the caller says.
    unsafe { take(&origin, "push", call, false, || origin.target(None, None)) }
}

/// `submit(fn, ...)`
#[inline(always)]
pub unsafe fn submit(origin: Origin<'_>, method: &str, call: Call) -> PyResult<Owned> {
    let py = origin.pool.py();
    let mut made = None;
    // SAFETY: as the caller says; the class is that of futures.
    unsafe {
        take(&origin, method, call, false, || {
            let class = future_type::class(py)?;
            let future = Owned::steal(future::allocate(class.as_ptr().cast())).ok_or_else(|| PyErr::fetch(py))?;
            let for_job = Owned::lent(future.as_ptr());
            made = Some(future);
            origin.target(Some(for_job), None)
        })?;
    }
    Ok(made.expect("a job that was taken has its future"))
}

/// `run(fn, ...)`
pub unsafe fn run(origin: Origin<'_>, call: Call) -> PyResult<Owned> {
    let py = origin.pool.py();
    if call.count < 1 {
        return Err(no_function("run"));
    }
    let fetched = || PyErr::fetch(py);
    // SAFETY: live objects, attached.
    unsafe {
        let asyncio_loop = Owned::steal(leaving::call(event_loop::running(py)?)).ok_or_else(fetched)?;
        let way = PoolCore::way_to(origin.pool, &asyncio_loop)?;
        let future = leaving::method(asyncio_loop.as_ptr(), names().create_future.as_ptr());
        let future = Owned::steal(future).ok_or_else(fetched)?;
        let waiting = Box::new((Owned::borrow(future.as_ptr()), way));
        take(&origin, "run", call, true, || Ok(Target::Loop(waiting)))?;
        Ok(future)
    }
}

/// Makes a job of a call's arguments and puts it into the queue.
#[inline(always)]
unsafe fn take(
    origin: &Origin<'_>,
    method: &str,
    call: Call,
    never_waits: bool,
    target: impl FnOnce() -> PyResult<Target>,
) -> PyResult<()> {
    let shared = origin.pool.get().shared()?;
    if call.count < 1 {
        return Err(no_function(method));
    }
    // SAFETY: a live object, as the caller says; attached.
    unsafe { check_callable(origin.pool.py(), method, *call.arguments)? };
    let context = shared.context(origin.pool.py())?;
    // SAFETY: as the caller says.
    let job = unsafe { Job::new(call, context, target()?, clock::ticks()) };
    let beyond = never_waits && shared.options.overflow == Overflow::Block;
    match shared.jobs.push(job, origin.place, beyond) {
        Ok(false) => Ok(()),
        Ok(true) => start_worker(origin, shared),
        Err((job, why)) => refused(origin, shared, job, why),
    }
}

/// Checks what is to be called.
///
/// # Safety
///
/// A live object; attached.
#[inline(always)]
unsafe fn check_callable(py: Python<'_>, method: &str, function: *mut PyObject) -> PyResult<()> {
    // SAFETY: as the caller says.
    unsafe {
        if ffi::PyCallable_Check(function) != 0 {
            return Ok(());
        }
        arguments::check_callable(method, &Bound::from_borrowed_ptr(py, function))
    }
}

/// Has the Python half start a worker that is counted already; counts it off where that fails.
///
/// # Errors
///
/// Whatever is no `Exception`, such as `KeyboardInterrupt`; others only where no worker is left for the jobs.
#[cold]
fn start_worker(origin: &Origin<'_>, shared: &Arc<Shared>) -> PyResult<()> {
    let py = origin.pool.py();
    let worker = Bound::new(py, Worker::new(shared.clone())).inspect_err(|_| shared.jobs.forget_workers(1))?;
    // SAFETY: a live pool, a `str` and a live object; attached.
    let started = unsafe {
        let method = names().start_worker.as_ptr();
        Owned::steal(leaving::method_of_one(origin.pool.as_ptr(), method, worker.as_ptr()))
    };
    if started.is_some() {
        return Ok(());
    }
    let error = PyErr::fetch(py);
    worker.get().give_back();
    let others = shared.jobs.counts().workers > 0;
    if others && error.is_instance_of::<PyException>(py) { Ok(()) } else { Err(error) }
}

/// As [`start_worker`], for so many.
///
/// # Errors
///
/// As for one; those behind it are counted off, too.
pub fn start_workers(origin: &Origin<'_>, shared: &Arc<Shared>, count: usize) -> PyResult<()> {
    (0..count).try_for_each(|begun| {
        start_worker(origin, shared).inspect_err(|_| shared.jobs.forget_workers(count - begun - 1))
    })
}

/// Does with a job that was refused what the pool's policy says.
#[cold]
fn refused(origin: &Origin<'_>, shared: &Arc<Shared>, mut job: Job, mut why: jobs::Refused) -> PyResult<()> {
    let py = origin.pool.py();
    loop {
        if why == jobs::Refused::Closed {
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
                    // SAFETY: attached.
                    unsafe { oldest.cancel() };
                }
            }
            Overflow::CallerRuns => return run_here(shared, job),
        }
        match shared.jobs.push(job, origin.place, false) {
            Ok(false) => return Ok(()),
            Ok(true) => return start_worker(origin, shared),
            Err(refused) => (job, why) = refused,
        }
    }
}

/// Does a job in the thread that gave it.
///
/// # Errors
///
/// What it raised, where nobody is told of that and it is no `Exception`, and what a signal's handler raised while it
/// waited: Ctrl-C is this thread's.
fn run_here(shared: &Arc<Shared>, job: Job) -> PyResult<()> {
    let mut raised = None;
    // SAFETY: attached.
    if !unsafe { job.run(shared, &mut By::Caller(&mut raised)) } {
        shared.failed.fetch_add(1, Ordering::Relaxed);
    }
    raised.map_or(Ok(()), Err)
}

/// When a job is due.
#[derive(Clone, Copy)]
pub enum Due {
    /// So many seconds from now.
    Later,
    /// At this time of the wall clock.
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
            return Ok((Clock::Steady, timers::after(timers::nanoseconds(name, arguments::seconds(name, value)?)?)));
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

/// `submit_later(delay, fn, ...)` and `submit_at(when, fn, ...)`
pub unsafe fn submit_due(origin: Origin<'_>, due: Due, call: Call) -> PyResult<Owned> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    if call.count < 2 {
        return Err(no_function(due.names().0));
    }
    // SAFETY: live objects, as the caller says; attached.
    unsafe {
        let (clock, at) = due.time(&Bound::from_borrowed_ptr(py, *call.arguments))?;
        check_callable(py, due.names().0, *call.rest().arguments)?;
        let key = timers::key(clock, at);
        let timer = timer_type::new(py, origin.pool.as_ptr(), key)?;
        let target = origin.target(Some(Owned::borrow(timer.as_ptr())), None)?;
        let job = Job::new(call.rest(), shared.context(py)?, target, 0);
        if shared.jobs.expect().is_err() {
            return Err(origin.refusal());
        }
        if timers::add(key, shared.clone(), job) {
            timers::start(py, key)?;
        }
        if shared.jobs.is_closed() {
            // Closed after it was asked: whoever closed it may not have seen this one.
            timers::cancel(py, key);
        }
        Ok(timer)
    }
}

/// `schedule(interval, fn, ...)` and `schedule_with_delay(delay, fn, ...)`
pub unsafe fn schedule(origin: Origin<'_>, after_end: bool, call: Call) -> PyResult<Owned> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    let (method, name) = if after_end { ("schedule_with_delay", "delay") } else { ("schedule", "interval") };
    if call.count < 2 {
        return Err(no_function(method));
    }
    // SAFETY: live objects, as the caller says; attached.
    unsafe {
        let seconds = arguments::seconds(name, &Bound::from_borrowed_ptr(py, *call.arguments))?;
        check_callable(py, method, *call.rest().arguments)?;
        let interval_ns = timers::nanoseconds(name, seconds)?;
        if interval_ns == 0 {
            return Err(PyValueError::new_err(format!("{name} must be greater than 0, not {seconds}")));
        }
        if shared.jobs.is_closed() {
            return Err(origin.refusal());
        }
        let made = Bound::new(py, Schedule::new(origin.pool.to_owned().unbind(), interval_ns, after_end))?;
        let target = origin.target(None, Some(made.clone().unbind()))?;
        let job = Job::new(call.rest(), shared.context(py)?, target, 0);
        made.get().wait(py, shared, job)?;
        Ok(Owned::of(made.as_any()))
    }
}

/// Jobs that are pushed together, so that the lock is taken and workers are woken once for all of them.
const TOGETHER: usize = 1024;

/// `push_many(fn, *iterables)`
///
/// # Errors
///
/// What an iterable raises, and as `push`.
pub fn push_many(origin: &Origin<'_>, function: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
    let py = origin.pool.py();
    let shared = origin.pool.get().shared()?;
    arguments::check_callable("push_many", function)?;
    let rows = py.import("builtins")?.getattr("zip")?.call1(iterables)?;
    let (mut count, mut jobs) = (0, VecDeque::new());
    for row in rows.try_iter()? {
        let row = match row {
            Ok(row) => row.cast_into::<PyTuple>()?,
            Err(error) => {
                // Items before the one that failed are done, as with single calls.
                push_all(origin, shared, &mut jobs)?;
                return Err(error);
            }
        };
        let mut values: Vec<*mut PyObject> = vec![function.as_ptr()];
        values.extend(row.iter_borrowed().map(|each| each.as_ptr()));
        let call = Call { arguments: values.as_ptr(), count: values.len(), keywords: ptr::null_mut() };
        let (context, target) = (shared.context(py)?, origin.target(None, None)?);
        // SAFETY: live objects, held by the caller and the row; attached.
        jobs.push_back(unsafe { Job::new(call, context, target, clock::ticks()) });
        count += 1;
        if jobs.len() == TOGETHER {
            push_all(origin, shared, &mut jobs)?;
        }
    }
    push_all(origin, shared, &mut jobs)?;
    Ok(count)
}

/// Pushes all of `jobs`; what finds no room goes the way of a single one.
fn push_all(origin: &Origin<'_>, shared: &Arc<Shared>, jobs: &mut VecDeque<Job>) -> PyResult<()> {
    while !jobs.is_empty() {
        let found = shared.jobs.push_many(jobs, origin.place);
        start_workers(origin, shared, found.unwrap_or(0))?;
        if let Some(job) = jobs.pop_front() {
            refused(origin, shared, job, found.err().unwrap_or(jobs::Refused::Full))?;
        }
    }
    Ok(())
}
