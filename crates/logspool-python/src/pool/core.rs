//! The native half of `logspool.pool.Pool`: its state and what happens now and then.
//!
//! Jobs come in by [`super::intake`] and are done by [`super::worker`].

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use logspool_pool::PoolReading;
use logspool_pool::{Counts, Jobs, Times, times};
use logspool_sys::clock;
use logspool_sys::histogram::HistogramCounts;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::job::Job;
use super::results::Results;
use super::view::{self, View, Wishes};
use super::waiting::{self, Deadline};
use super::{arguments, future_type, intake, timer_type, timers};
use crate::leaving;
use crate::names::names;
use crate::object::{self, Owned};

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

/// What does not change.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub overflow: Overflow,
    pub copies_context: bool,
    pub idle_timeout: Option<Duration>,
}

/// What the pool object and its workers share. No Python objects but those of the jobs.
pub struct Shared {
    pub jobs: Jobs<Job>,
    pub options: Options,
    /// Jobs without a future that raised.
    pub failed: AtomicU64,
    /// Jobs that gave way to newer ones.
    pub dropped: AtomicU64,
    /// Jobs that ran longer than they may.
    pub timed_out: AtomicU64,
    /// Workers that wait for room in results.
    pub wait_for_takers: AtomicUsize,
    /// Whether no job waits for such room any longer: nobody is left who could take a value.
    pub without_takers: AtomicBool,
    /// One for each worker there is; those of workers that left are given to others.
    times: Mutex<Vec<Arc<Times>>>,
}

impl Shared {
    fn new(queue_size: usize, most_workers: usize, options: Options) -> Self {
        Self {
            jobs: Jobs::new(queue_size, most_workers),
            options,
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            wait_for_takers: AtomicUsize::new(0),
            without_takers: AtomicBool::new(false),
            times: Mutex::default(),
        }
    }

    /// In a forked child: ends the jobs that wait with an exception; they are the parent's.
    pub fn fail_after_fork(&self, exception: &Bound<'_, PyAny>) {
        for job in self.jobs.take_all_after_fork() {
            // SAFETY: attached.
            unsafe { job.fail_after_fork(exception) };
        }
    }

    fn all_times(&self) -> MutexGuard<'_, Vec<Arc<Times>>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a new worker counts the times of its jobs.
    pub fn times(&self) -> Arc<Times> {
        let mut times = self.all_times();
        if let Some(free) = times.iter().find(|each| Arc::strong_count(each) == 1) {
            return free.clone();
        }
        let made = Arc::new(Times::new());
        times.push(made.clone());
        made
    }

    /// Histograms of how long jobs waited and ran, in seconds.
    fn histograms(&self) -> (HistogramCounts, HistogramCounts) {
        Times::sum(self.all_times().iter().map(|each| &**each))
    }

    /// How long the oldest job has waited, in seconds.
    fn oldest_age(&self) -> f64 {
        let now = clock::ticks();
        let oldest = self.jobs.oldest(|job| job.since);
        oldest.map_or(0.0, |since| times::seconds(since, now))
    }

    /// The context that a job taken now runs in.
    #[inline]
    pub fn context(&self, py: Python<'_>) -> PyResult<Option<Owned>> {
        if !self.options.copies_context {
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
    shared: AtomicPtr<Arc<Shared>>,
    /// Callbacks for all jobs; set by `_open`.
    wishes: OnceLock<Wishes>,
    /// Loops of several threads take turns here; each finds its own in the table of all.
    last_loop: Mutex<Option<LastLoop>>,
}

/// A weak reference to an asyncio event loop, and the way to it.
struct LastLoop(Owned, Owned);

impl Drop for PoolCore {
    fn drop(&mut self) {
        let shared = self.shared.swap(ptr::null_mut(), Ordering::AcqRel);
        if !shared.is_null() {
            // SAFETY: made by `Box::into_raw`, taken out once.
            let shared = unsafe { Box::from_raw(shared) };
            // What was taken is done, as with the standard library's pool; then the workers leave.
            shared.jobs.close();
        }
    }
}

impl PoolCore {
    /// What it shares with its workers.
    ///
    /// # Errors
    ///
    /// It was not opened.
    #[inline]
    pub fn shared(&self) -> PyResult<&Arc<Shared>> {
        // SAFETY: null, or what `_open` or `_after_fork` put there, which stays until the drop.
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
            .ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    /// Waits, unless it is so already, until `waited` says that it came true. False: the time was over first.
    fn wait_for(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        waited: impl Fn(&Jobs<Job>, Duration) -> bool + Sync,
    ) -> PyResult<bool> {
        let jobs = &self.shared()?.jobs;
        let deadline = Deadline::after(timeout)?;
        Ok(waited(jobs, Duration::ZERO) || waiting::wait(py, deadline, |slice| waited(jobs, slice))?)
    }

    /// What an operator watches, under this name.
    ///
    /// # Errors
    ///
    /// As for [`PoolCore::shared`].
    pub fn reading(&self, name: String) -> PyResult<PoolReading> {
        let shared = self.shared()?;
        let (wait_seconds, run_seconds) = shared.histograms();
        Ok(PoolReading {
            name,
            counts: shared.jobs.counts(),
            oldest_age: shared.oldest_age(),
            failed: shared.failed.load(Ordering::Relaxed),
            dropped: shared.dropped.load(Ordering::Relaxed),
            timed_out: shared.timed_out.load(Ordering::Relaxed),
            wait_seconds,
            run_seconds,
        })
    }

    /// What is wished for all jobs.
    ///
    /// # Errors
    ///
    /// As for [`PoolCore::shared`].
    #[inline]
    pub fn wishes(&self) -> PyResult<&Wishes> {
        self.wishes.get().ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    /// The way to an asyncio event loop, for a worker to drop.
    ///
    /// # Errors
    ///
    /// What the Python half raises.
    pub fn way_to(slf: Borrowed<'_, '_, Self>, asyncio_loop: &Owned) -> PyResult<Owned> {
        let fetched = || PyErr::fetch(slf.py());
        // Never waited for: in a forked child nobody might be left to unlock it.
        let last_loop = || slf.get().last_loop.try_lock();
        // SAFETY: live objects, attached.
        unsafe {
            if let Ok(found) = last_loop()
                && let Some(LastLoop(reference, event_loop)) = &*found
                && object::referent(reference) == asyncio_loop.as_ptr()
            {
                return Ok(Owned::lent(event_loop.as_ptr()));
            }
            let way = leaving::method_of_one(slf.as_ptr(), names().event_loop_of.as_ptr(), asyncio_loop.as_ptr());
            let way = Owned::steal(way).ok_or_else(fetched)?;
            let reference = ffi::PyWeakref_NewRef(asyncio_loop.as_ptr(), ptr::null_mut());
            let reference = Owned::steal(reference).ok_or_else(fetched)?;
            let for_job = Owned::lent(way.as_ptr());
            let before = last_loop().ok().and_then(|mut place| place.replace(LastLoop(reference, way)));
            drop(before);
            Ok(for_job)
        }
    }

    /// Returns what was there before, which is never freed: others may be reading it.
    fn set_shared(&self, shared: Shared) -> Option<&'static Arc<Shared>> {
        let before = self.shared.swap(Box::into_raw(Box::new(Arc::new(shared))), Ordering::AcqRel);
        // SAFETY: null or made here.
        unsafe { before.as_ref() }
    }
}

#[pymethods]
impl PoolCore {
    #[new]
    #[pyo3(signature = (*_arguments, **_keywords))]
    fn new(_arguments: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        Self { shared: AtomicPtr::new(ptr::null_mut()), wishes: OnceLock::new(), last_loop: Mutex::new(None) }
    }

    /// Begin to take jobs.
    #[allow(clippy::too_many_arguments)]
    fn _open(
        &self,
        py: Python<'_>,
        most_workers: usize,
        queue_size: usize,
        overflow: &str,
        context: &str,
        idle_timeout: Option<f64>,
        done_callback: Option<Bound<'_, PyAny>>,
        failed_callback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let copies_context = match context {
            "none" => false,
            "copy" => true,
            _ => return Err(PyValueError::new_err(format!("context is {context:?}, expected 'none' or 'copy'"))),
        };
        // Checked by the caller; what no clock can count is as good as never.
        let idle_timeout = idle_timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let options = Options { overflow: Overflow::of(overflow)?, copies_context, idle_timeout };
        future_type::class(py)?;
        timer_type::class(py)?;
        // Opened again, it keeps its callbacks.
        let _ = self.wishes.set(Wishes::of_pool(done_callback, failed_callback)?);
        if let Some(before) = self.set_shared(Shared::new(queue_size, most_workers, options)) {
            before.jobs.close();
        }
        Ok(())
    }

    /// Return a number that names the pool among those of the process.
    fn _id(&self) -> PyResult<usize> {
        Ok(Arc::as_ptr(self.shared()?) as usize)
    }

    /// Push a call of `fn` for each item of the iterables, as `map` would call it. Return how many.
    #[pyo3(signature = (r#fn, /, *iterables))]
    fn push_many(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>, iterables: &Bound<'_, PyTuple>) -> PyResult<usize> {
        intake::push_many(&intake::Origin::of_pool(slf.as_borrowed()), r#fn, iterables)
    }

    /// Return a view of the pool with other options for the jobs that are given to it.
    #[pyo3(signature = (*, priority="normal", timeout=None, done_callback=None, failed_callback=None, results=None))]
    fn options(
        slf: &Bound<'_, Self>,
        priority: &str,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<f64>,
        done_callback: Option<Bound<'_, PyAny>>,
        failed_callback: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = arguments::results)] results: Option<Py<Results>>,
    ) -> PyResult<View> {
        View::new(slf, priority, timeout, done_callback, failed_callback, results)
    }

    /// Start a worker that is counted already.
    fn _add_worker(slf: &Bound<'_, Self>) -> PyResult<()> {
        intake::start_workers(&intake::Origin::of_pool(slf.as_borrowed()), slf.get().shared()?, 1)
    }

    /// Take no more jobs and end schedules; with `cancel`, also cancel the jobs that wait.
    fn _close(&self, py: Python<'_>, cancel: bool) -> PyResult<()> {
        let shared = self.shared()?;
        shared.jobs.close();
        timers::cancel_all(py, shared, cancel);
        if cancel {
            cancel_all(py, shared);
        }
        Ok(())
    }

    /// Cancel the jobs that wait. Return how many.
    fn cancel(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(cancel_all(py, self.shared()?))
    }

    /// Cancel the jobs that are not due, and schedules.
    fn _cancel_timers(&self, py: Python<'_>) -> PyResult<()> {
        timers::cancel_all(py, self.shared()?, true);
        Ok(())
    }

    /// Wait for the jobs that were taken, those included that are not due.
    fn _wait_for_end(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.wait_for(py, timeout, Jobs::wait_for_end)
    }

    /// Wait until no job waits and none runs.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = arguments::positive_timeout)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        let shared = slf.get().shared()?;
        // For jobs whose worker could not be started.
        intake::start_workers(&intake::Origin::of_pool(slf.as_borrowed()), shared, shared.jobs.revive())?;
        slf.get().wait_for(slf.py(), timeout, Jobs::wait_for_rest)
    }

    /// Set how many workers there may be, and start those that have something to do.
    fn _resize(slf: &Bound<'_, Self>, most_workers: usize) -> PyResult<()> {
        let shared = slf.get().shared()?;
        let count = shared.jobs.resize(most_workers);
        intake::start_workers(&intake::Origin::of_pool(slf.as_borrowed()), shared, count)
    }

    /// Return the fields of `PoolStats`.
    fn _counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reading = self.reading(String::new())?;
        let Counts { pending, bound: _, expected, workers, busy, taken, wakes } = reading.counts;
        let found = PyDict::new(py);
        found.set_item("depth", pending)?;
        found.set_item("oldest_age", reading.oldest_age)?;
        found.set_item("delayed", expected)?;
        found.set_item("workers", workers)?;
        found.set_item("busy", busy)?;
        found.set_item("submitted", taken)?;
        found.set_item("failed", reading.failed)?;
        found.set_item("dropped", reading.dropped)?;
        found.set_item("timed_out", reading.timed_out)?;
        found.set_item("wakes", wakes)?;
        let histograms = [("wait_seconds", reading.wait_seconds), ("run_seconds", reading.run_seconds)];
        for (name, HistogramCounts { cumulative, count, sum }) in histograms {
            found.set_item(name, (count, sum, cumulative))?;
        }
        Ok(found)
    }

    /// In a forked child: begin anew, without the workers and the jobs of the parent.
    fn _after_fork(&self, exception: &Bound<'_, PyAny>, most_workers: usize, queue_size: usize) -> PyResult<()> {
        let shared = self.shared()?;
        let fresh = Shared::new(queue_size, most_workers, shared.options);
        if shared.jobs.is_closed_after_fork() {
            fresh.jobs.close();
        }
        // Kept for good: its lock and its words may be in any state.
        if let Some(before) = self.set_shared(fresh) {
            before.fail_after_fork(exception);
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.wishes.get().map_or(Ok(()), |wishes| view::visit(wishes, &visit))
    }
}

/// Cancels the jobs that wait. Returns how many.
pub fn cancel_all(_attached: Python<'_>, shared: &Shared) -> usize {
    let jobs = shared.jobs.take_all();
    let count = jobs.len();
    // SAFETY: attached.
    jobs.into_iter().for_each(|job| unsafe { job.cancel() });
    count
}
