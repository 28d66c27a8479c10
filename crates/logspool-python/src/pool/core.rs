//! The native half of `logspool.pool.Pool`: its state, and the queries about it.
//!
//! [`super::intake`] adds jobs, [`super::worker`] runs them.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use logspool_pool::{Jobs, PoolReading};
use logspool_sys::published::Published;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::job::Job;
use super::job_options::JobOptions;
use super::shared::Shared;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned, WeakReference};
use crate::interpreter::waiting::{self, Deadline};

/// The native base class of `logspool.pool.Pool`.
#[pyclass(frozen, subclass, weakref, module = "logspool._native")]
pub struct PoolCore {
    /// The state that the pool shares with its workers: a pointer to a box with the `Arc`, null until `_open`.
    shared: AtomicPtr<Arc<Shared>>,
    /// The callbacks for all jobs of the pool; set by `_open`.
    pub(super) job_options: OnceLock<JobOptions>,
    /// The event loop that used the pool last. If several event loops use the pool in turn, this cache misses and the
    /// Python half is called, which has a table of all event loops.
    last_loop: Mutex<Option<LastLoop>>,
}

/// A weak reference to an asyncio event loop, and its [`EventLoop`](super::EventLoop).
struct LastLoop(WeakReference, Owned);

impl Drop for PoolCore {
    fn drop(&mut self) {
        let shared = self.shared.exchange(ptr::null_mut());
        if !shared.is_null() {
            // SAFETY: made by `Box::into_raw` in `set_shared`; the swap above takes it out once.
            let shared = unsafe { Box::from_raw(shared) };
            // As with the standard library's pool, the accepted jobs still run. Then the workers end.
            shared.jobs.close();
        }
    }
}

impl PoolCore {
    /// A pool that accepts no jobs until it is opened.
    pub fn unopened() -> Self {
        Self { shared: AtomicPtr::new(ptr::null_mut()), job_options: OnceLock::new(), last_loop: Mutex::new(None) }
    }

    /// The state that the pool shares with its workers.
    ///
    /// # Errors
    ///
    /// The pool was not opened.
    #[inline]
    pub fn shared(&self) -> PyResult<&Arc<Shared>> {
        // SAFETY: null, or a box made by `set_shared`, which stays allocated until the pool is dropped.
        unsafe { self.shared.observe().as_ref() }
            .ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    /// Waits until `waited` returns true. Returns false if the timeout passes first. Does not wait if `waited` returns
    /// true at once.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler that ran during the wait, and the errors of [`PoolCore::shared`].
    pub fn wait_for(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        waited: impl Fn(&Jobs<Job>, Duration) -> bool + Sync,
    ) -> PyResult<bool> {
        let jobs = &self.shared()?.jobs;
        let deadline = Deadline::after(timeout)?;
        Ok(waited(jobs, Duration::ZERO) || waiting::wait(py, deadline, |slice| waited(jobs, slice))?)
    }

    /// The figures of this pool for metrics, with `name` as the pool's name.
    ///
    /// # Errors
    ///
    /// The errors of [`PoolCore::shared`].
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

    /// The callbacks of all jobs of this pool.
    ///
    /// # Errors
    ///
    /// The errors of [`PoolCore::shared`].
    #[inline]
    pub fn job_options(&self) -> PyResult<&JobOptions> {
        self.job_options.get().ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    /// The [`EventLoop`](super::EventLoop) that delivers results to an asyncio event loop. A worker drops the returned
    /// reference.
    ///
    /// # Errors
    ///
    /// The exception of the Python half.
    pub fn event_loop_of(slf: Borrowed<'_, '_, Self>, asyncio_loop: Object<'_, '_>) -> PyResult<Owned> {
        let py = slf.py();
        // `try_lock`, because in a forked child the thread that holds the lock may not exist.
        let last_loop = || slf.get().last_loop.try_lock();
        if let Ok(found) = last_loop()
            && let Some(LastLoop(reference, event_loop)) = &*found
            && reference.referent() == asyncio_loop.as_ptr()
        {
            return Ok(Owned::for_other_thread(&event_loop.bind(py)));
        }
        let event_loop = leaving::method_of_one(slf.as_any().as_borrowed(), &names().event_loop_of, asyncio_loop);
        let event_loop = event_loop.ok_or_else(|| PyErr::fetch(py))?;
        let reference = WeakReference::new(&asyncio_loop, None)?;
        let for_job = Owned::for_other_thread(&event_loop.bind(py));
        let before = last_loop().ok().and_then(|mut place| place.replace(LastLoop(reference, event_loop)));
        drop(before);
        Ok(for_job)
    }

    /// Replaces the shared state. Returns the previous state, which is never freed, because other threads may be
    /// reading it.
    pub(super) fn set_shared(&self, shared: Shared) -> Option<&'static Arc<Shared>> {
        let before = self.shared.exchange(Box::into_raw(Box::new(Arc::new(shared))));
        // SAFETY: null, or a box that an earlier call made and that only the pool's drop frees.
        unsafe { before.as_ref() }
    }
}
