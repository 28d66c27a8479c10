//! How jobs come in: the methods of a pool and of its lanes, and what happens where there is no room.
//!
//! The methods are raw functions: parsing arguments into a tuple and a dict would cost more than the job.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::Ordering;

use logspool::pool::jobs::{self, Place};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::core::{Overflow, PoolCore, Shared, coarse_milliseconds};
use super::event_loop::EventLoop;
use super::job::{Job, Target};
use super::waiting::{self, Deadline};
use super::{fast, future, future_type};
use crate::object::Owned;

/// A view of a pool whose jobs go before others or after them.
#[pyclass(frozen, module = "logspool._native")]
pub struct Lane {
    pool: Py<PoolCore>,
    place: Place,
}

impl Lane {
    /// Of a pool.
    pub fn new(pool: &Bound<'_, PoolCore>, place: Place) -> Self {
        Self { pool: pool.clone().unbind(), place }
    }
}

#[pymethods]
impl Lane {
    /// As `Pool.submit`.
    #[pyo3(signature = (r#fn, /, *args, **kwargs))]
    fn submit(&self, r#fn: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) {
        unreachable!("replaced by `submit_in_lane` below: {:?}", (r#fn, args, kwargs));
    }

    /// As `Pool.push`.
    #[pyo3(signature = (r#fn, /, *args, **kwargs))]
    fn push(&self, r#fn: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) {
        unreachable!("replaced by `push_in_lane` below: {:?}", (r#fn, args, kwargs));
    }
}

/// Takes the place of PyO3's methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<PoolCore>();
    fast::replace(&class, c"submit", submit)?;
    fast::replace(&class, c"push", push)?;
    fast::replace(&class, c"submit_first", submit_first)?;
    fast::replace(&class, c"_push_for", push_for)?;
    let lane: Bound<'_, PyType> = py.get_type::<Lane>();
    fast::replace(&lane, c"submit", submit_in_lane)?;
    fast::replace(&lane, c"push", push_in_lane)?;
    Ok(())
}

/// The pool of an object that the descriptor has checked.
///
/// # Safety
///
/// `object` is a live `PoolCore`, attached for `'a`.
unsafe fn pool<'a>(object: *mut PyObject) -> &'a PoolCore {
    // SAFETY: the caller says what it is; a frozen class is only ever read.
    unsafe {
        let borrowed = Borrowed::from_ptr(Python::assume_attached(), object);
        &*ptr::from_ref(borrowed.cast_unchecked::<PoolCore>().get())
    }
}

unsafe extern "C" fn push(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe { push_to(object, "push", Place::Normal, arguments, count, keywords) }
}

/// `push`, to a place in the queue.
#[inline(always)]
unsafe fn push_to(
    object: *mut PyObject,
    method: &str,
    place: Place,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as the caller's caller says.
    unsafe {
        let to = To { method, place, never_waits: false };
        let taken = take(object, to, arguments, count, keywords, || Ok(Target::Nobody));
        fast::give_none(Python::assume_attached(), taken)
    }
}

unsafe extern "C" fn submit(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe { submit_to(object, "submit", Place::Normal, arguments, count, keywords) }
}

/// `submit_first(fn, ...)`
unsafe extern "C" fn submit_first(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above.
    unsafe { submit_to(object, "submit_first", Place::First, arguments, count, keywords) }
}

/// `submit`, to a place in the queue.
#[inline(always)]
unsafe fn submit_to(
    object: *mut PyObject,
    method: &str,
    place: Place,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as the caller's caller says.
    unsafe {
        let py = Python::assume_attached();
        let mut made = None;
        let to = To { method, place, never_waits: false };
        let taken = take(object, to, arguments, count, keywords, || {
            let class = future_type::class(py)?;
            let future = Owned::steal(future::allocate(class.as_ptr().cast())).ok_or_else(|| PyErr::fetch(py))?;
            // One reference for the job, one for the caller.
            made = Some(Owned::borrow(future.as_ptr()));
            Ok(Target::Future(future))
        });
        fast::give(py, taken.map(|()| made.expect("a job that was taken has its future")))
    }
}

/// The pool and the place of a lane that the descriptor has checked.
///
/// # Safety
///
/// As for [`pool`].
unsafe fn lane(object: *mut PyObject) -> (*mut PyObject, Place) {
    // SAFETY: as for `pool`.
    unsafe {
        let borrowed = Borrowed::from_ptr(Python::assume_attached(), object);
        let lane = borrowed.cast_unchecked::<Lane>();
        (lane.get().pool.as_ptr(), lane.get().place)
    }
}

unsafe extern "C" fn submit_in_lane(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe {
        let (pool, place) = lane(object);
        submit_to(pool, "submit", place, arguments, count, keywords)
    }
}

unsafe extern "C" fn push_in_lane(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as above.
    unsafe {
        let (pool, place) = lane(object);
        push_to(pool, "push", place, arguments, count, keywords)
    }
}

/// `_push_for(event_loop, future, fn, ...)`
unsafe extern "C" fn push_for(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe {
        let py = Python::assume_attached();
        let is_loop = |value| Borrowed::from_ptr(py, value).cast_exact::<EventLoop>().is_ok();
        let taken = if count < 3 || !is_loop(*arguments) {
            Err(PyTypeError::new_err("run() missing 1 required positional argument: 'fn'"))
        } else {
            let waiting = Box::new((Owned::borrow(*arguments.add(1)), Owned::borrow(*arguments)));
            let target = || Ok(Target::Loop(waiting));
            let to = To { method: "run", place: Place::Normal, never_waits: true };
            take(object, to, arguments.add(2), count - 2, keywords, target)
        };
        fast::give_none(py, taken)
    }
}

/// How a job comes in.
#[derive(Clone, Copy)]
struct To<'a> {
    /// The method, for messages.
    method: &'a str,
    place: Place,
    /// The caller must not wait for room.
    never_waits: bool,
}

/// Makes a job of a call's arguments and puts it into the queue.
#[inline(always)]
unsafe fn take(
    object: *mut PyObject,
    to: To<'_>,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
    target: impl FnOnce() -> PyResult<Target>,
) -> PyResult<()> {
    // SAFETY: as the caller's caller says.
    unsafe {
        let shared = pool(object).shared()?;
        if count < 1 {
            let method = to.method;
            return Err(PyTypeError::new_err(format!("{method}() missing 1 required positional argument: 'fn'")));
        }
        let context = shared.context(Python::assume_attached())?;
        let job = Job::new(arguments, count as usize, keywords, context, target()?, coarse_milliseconds());
        let beyond = to.never_waits && shared.overflow == Overflow::Block;
        match shared.jobs.push(job, to.place, beyond) {
            Ok(false) => Ok(()),
            Ok(true) => start_worker(object),
            Err((job, why)) => refused(object, shared, job, why, to.place),
        }
    }
}

/// Has the Python half start a worker.
#[cold]
unsafe fn start_worker(object: *mut PyObject) -> PyResult<()> {
    // SAFETY: a live pool, attached.
    unsafe {
        Bound::from_borrowed_ptr(Python::assume_attached(), object).call_method0("_start_worker")?;
    }
    Ok(())
}

/// Does with a job that was refused what the pool's policy says.
#[cold]
unsafe fn refused(
    object: *mut PyObject,
    shared: &Shared,
    mut job: Job,
    mut why: jobs::Refused,
    place: Place,
) -> PyResult<()> {
    // SAFETY: a live pool, attached.
    let py = unsafe { Python::assume_attached() };
    loop {
        if why == jobs::Refused::Closed {
            // SAFETY: as above.
            let object = unsafe { Bound::from_borrowed_ptr(py, object) };
            return Err(PyErr::from_value(object.call_method0("_refusal")?));
        }
        match shared.overflow {
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
            Overflow::CallerRuns => {
                // SAFETY: attached.
                if !unsafe { job.run() } {
                    shared.failed.fetch_add(1, Ordering::Relaxed);
                }
                return Ok(());
            }
        }
        match shared.jobs.push(job, place, false) {
            Ok(false) => return Ok(()),
            // SAFETY: a live pool, attached.
            Ok(true) => return unsafe { start_worker(object) },
            Err(refused) => (job, why) = refused,
        }
    }
}

/// Jobs that are pushed together, so that the lock is taken and workers are woken once for all of them.
const TOGETHER: usize = 1024;

/// `Pool.push_many`
pub fn push_many(
    pool: &Bound<'_, PoolCore>,
    function: &Bound<'_, PyAny>,
    iterables: &Bound<'_, PyTuple>,
) -> PyResult<usize> {
    let py = pool.py();
    let shared = pool.get().shared()?;
    let rows = py.import("builtins")?.getattr("zip")?.call1(iterables)?;
    let (mut count, mut jobs) = (0, VecDeque::new());
    for row in rows.try_iter()? {
        let row = match row {
            Ok(row) => row.cast_into::<PyTuple>()?,
            Err(error) => {
                // Items before the one that failed are done, as with single calls.
                push_all(pool, shared, &mut jobs)?;
                return Err(error);
            }
        };
        let mut values = vec![function.as_ptr()];
        values.extend(row.iter_borrowed().map(|each| each.as_ptr()));
        let (context, since) = (shared.context(py)?, coarse_milliseconds());
        // SAFETY: live objects, held by the caller and the row; attached.
        jobs.push_back(unsafe {
            Job::new(values.as_ptr(), values.len(), ptr::null_mut(), context, Target::Nobody, since)
        });
        count += 1;
        if jobs.len() == TOGETHER {
            push_all(pool, shared, &mut jobs)?;
        }
    }
    push_all(pool, shared, &mut jobs)?;
    Ok(count)
}

/// Pushes all of `jobs`; what finds no room goes the way of a single one.
fn push_all(pool: &Bound<'_, PoolCore>, shared: &Shared, jobs: &mut VecDeque<Job>) -> PyResult<()> {
    while !jobs.is_empty() {
        let found = shared.jobs.push_many(jobs, Place::Normal);
        for _ in 0..found.unwrap_or(0) {
            // SAFETY: a live pool, attached.
            unsafe { start_worker(pool.as_ptr())? };
        }
        if let Some(job) = jobs.pop_front() {
            let why = found.err().unwrap_or(jobs::Refused::Full);
            // SAFETY: as above.
            unsafe { refused(pool.as_ptr(), shared, job, why, Place::Normal)? };
        }
    }
    Ok(())
}
