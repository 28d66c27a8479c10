//! The native half of `logspool.pool.Pool`: its state and what happens now and then.
//!
//! Jobs come in by [`super::intake`] and are done by [`super::worker`].

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

use logspool::pool::jobs::Place;
use logspool::pool::{Counts, Jobs};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::event_loop::EventLoop;
use super::future_type;
use super::intake::{self, Lane};
use super::job::Job;
use super::waiting::{self, Deadline};
use super::worker::Worker;
use crate::object::Owned;

/// What happens to a job when as many wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overflow {
    Block,
    Raise,
    DropOldest,
    CallerRuns,
}

impl Overflow {
    fn of(word: &str) -> PyResult<Self> {
        match word {
            "block" => Ok(Self::Block),
            "raise" => Ok(Self::Raise),
            "drop_oldest" => Ok(Self::DropOldest),
            "caller_runs" => Ok(Self::CallerRuns),
            _ => Err(PyValueError::new_err(format!(
                "overflow is {word:?}, expected 'block', 'raise', 'drop_oldest' or 'caller_runs'"
            ))),
        }
    }
}

/// What the pool object and its workers share.
pub struct Shared {
    pub jobs: Jobs<Job>,
    pub overflow: Overflow,
    pub copies_context: bool,
    pub idle_timeout: Option<Duration>,
    /// Jobs without a future that raised.
    pub failed: AtomicU64,
    /// Jobs that gave way to newer ones.
    pub dropped: AtomicU64,
}

impl Shared {
    /// The context that a job taken now runs in.
    #[inline]
    pub fn context(&self, py: Python<'_>) -> PyResult<Option<Owned>> {
        if !self.copies_context {
            return Ok(None);
        }
        // SAFETY: attached.
        unsafe { Owned::steal(ffi::PyContext_CopyCurrent()) }.map(Some).ok_or_else(|| PyErr::fetch(py))
    }
}

/// The native half of `logspool.pool.Pool`.
#[pyclass(frozen, subclass, weakref, module = "logspool._native")]
pub struct PoolCore {
    /// An `Arc` of its own; null until `_open`.
    shared: AtomicPtr<Shared>,
}

impl Drop for PoolCore {
    fn drop(&mut self) {
        let shared = self.shared.swap(ptr::null_mut(), Ordering::AcqRel);
        if !shared.is_null() {
            // SAFETY: made by `Arc::into_raw`, taken out once.
            let shared = unsafe { Arc::from_raw(shared) };
            // What was taken is done, as with the standard library's pool; then the workers leave.
            shared.jobs.close();
        }
    }
}

impl PoolCore {
    #[inline]
    pub fn shared(&self) -> PyResult<&Shared> {
        // SAFETY: null, or what `_open` or `_after_fork` put there, which stays until the drop.
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
            .ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    fn shared_by_count(&self) -> PyResult<Arc<Shared>> {
        let shared: *const Shared = self.shared()?;
        // SAFETY: made by `Arc::into_raw`; one count more.
        unsafe {
            Arc::increment_strong_count(shared);
            Ok(Arc::from_raw(shared))
        }
    }

    fn set_shared(&self, shared: Shared) -> *mut Shared {
        self.shared.swap(Arc::into_raw(Arc::new(shared)).cast_mut(), Ordering::AcqRel)
    }
}

#[pymethods]
impl PoolCore {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Self { shared: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Begin to take jobs.
    fn _open(
        &self,
        py: Python<'_>,
        most_workers: usize,
        queue_size: usize,
        overflow: &str,
        context: &str,
        idle_timeout: Option<f64>,
    ) -> PyResult<()> {
        let copies_context = match context {
            "none" => false,
            "copy" => true,
            _ => return Err(PyValueError::new_err(format!("context is {context:?}, expected 'none' or 'copy'"))),
        };
        let idle_timeout = idle_timeout.map(Duration::try_from_secs_f64).transpose();
        let idle_timeout = idle_timeout.map_err(|error| PyValueError::new_err(format!("idle_timeout: {error}")))?;
        future_type::class(py)?;
        let before = self.set_shared(Shared {
            jobs: Jobs::new(queue_size, most_workers),
            overflow: Overflow::of(overflow)?,
            copies_context,
            idle_timeout,
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        if !before.is_null() {
            // SAFETY: as in the drop.
            unsafe { Arc::from_raw(before) }.jobs.close();
        }
        Ok(())
    }

    /// Call `fn(*args, **kwargs)` in a worker and return its future.
    #[pyo3(signature = (r#fn, /, *args, **kwargs))]
    fn submit(&self, r#fn: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) {
        unreachable!("replaced by `submit` below: {:?}", (r#fn, args, kwargs));
    }

    /// Call `fn(*args, **kwargs)` in a worker. What it raises goes to `sys.unraisablehook`.
    #[pyo3(signature = (r#fn, /, *args, **kwargs))]
    fn push(&self, r#fn: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) {
        unreachable!("replaced by `push` below: {:?}", (r#fn, args, kwargs));
    }

    /// As `submit`, before all jobs that wait.
    #[pyo3(signature = (r#fn, /, *args, **kwargs))]
    fn submit_first(&self, r#fn: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) {
        unreachable!("replaced by `submit_first` below: {:?}", (r#fn, args, kwargs));
    }

    /// Push a call of `fn` for each item of the iterables, as `map` would call it. Return how many.
    #[pyo3(signature = (r#fn, /, *iterables))]
    fn push_many(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
        intake::push_many(slf, r#fn, iterables)
    }

    /// Return a view of the pool whose jobs go before others (`high`) or after them.
    fn _lane(slf: &Bound<'_, Self>, high: bool) -> Lane {
        Lane::new(slf, if high { Place::High } else { Place::Low })
    }

    /// Call `fn(*args, **kwargs)` in a worker and end an asyncio future with what comes of it.
    #[pyo3(signature = (event_loop, future, r#fn, /, *args, **kwargs))]
    fn _push_for(
        &self,
        event_loop: &Bound<'_, EventLoop>,
        future: &Bound<'_, PyAny>,
        r#fn: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) {
        unreachable!("replaced by `push_for` below: {:?}", (event_loop, future, r#fn, args, kwargs));
    }

    /// Return what a new worker thread runs.
    fn _worker(&self) -> PyResult<Worker> {
        Ok(Worker::new(self.shared_by_count()?))
    }

    /// Count a worker off that could not be started.
    fn _forget_worker(&self) -> PyResult<()> {
        self.shared()?.jobs.forget_worker();
        Ok(())
    }

    /// Take no more jobs; with `cancel`, also cancel those that wait.
    fn _close(&self, py: Python<'_>, cancel: bool) -> PyResult<()> {
        let shared = self.shared()?;
        shared.jobs.close();
        if cancel {
            cancel_all(py, shared);
        }
        Ok(())
    }

    /// Wait until no job waits and none runs.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let shared = self.shared()?;
        let deadline = Deadline::after(timeout)?;
        Ok(shared.jobs.wait_for_rest(Duration::ZERO)
            || waiting::wait(py, deadline, |slice| shared.jobs.wait_for_rest(slice))?)
    }

    /// Set how many workers there may be. Return how many have to be started.
    fn _resize(&self, most_workers: usize) -> PyResult<usize> {
        Ok(self.shared()?.jobs.resize(most_workers))
    }

    /// Return the fields of `PoolStats`.
    fn _counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shared = self.shared()?;
        let Counts { pending, workers, busy, taken, wakes } = shared.jobs.counts();
        let now = coarse_milliseconds();
        // The clock wraps: the oldest job is the one with the greatest age.
        let age = shared.jobs.oldest(|job| std::cmp::Reverse(now.wrapping_sub(job.since)));
        let found = PyDict::new(py);
        found.set_item("depth", pending)?;
        found.set_item("oldest_age", age.map_or(0.0, |age| f64::from(age.0) / 1000.0))?;
        found.set_item("workers", workers)?;
        found.set_item("busy", busy)?;
        found.set_item("submitted", taken)?;
        found.set_item("failed", shared.failed.load(Ordering::Relaxed))?;
        found.set_item("dropped", shared.dropped.load(Ordering::Relaxed))?;
        found.set_item("wakes", wakes)?;
        Ok(found)
    }

    /// In a forked child: begin anew, without the workers and the jobs of the parent.
    fn _after_fork(&self, exception: &Bound<'_, PyAny>, most_workers: usize, queue_size: usize) -> PyResult<()> {
        let shared = self.shared()?;
        let fresh = Shared {
            jobs: Jobs::new(queue_size, most_workers),
            overflow: shared.overflow,
            copies_context: shared.copies_context,
            idle_timeout: shared.idle_timeout,
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        };
        if shared.jobs.is_closed() {
            fresh.jobs.close();
        }
        // Kept for good: its lock and its words may be in any state.
        let before = self.set_shared(fresh);
        // SAFETY: never freed.
        for job in unsafe { &*before }.jobs.take_all() {
            // SAFETY: attached.
            unsafe { job.fail(exception) };
        }
        Ok(())
    }
}

fn cancel_all(_attached: Python<'_>, shared: &Shared) {
    // SAFETY: attached.
    shared.jobs.take_all().into_iter().for_each(|job| unsafe { job.cancel() });
}

/// The kernel's clock of a few milliseconds' resolution: a fifth of the cost of the exact one.
#[inline]
pub fn coarse_milliseconds() -> u32 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000) as u32
}
