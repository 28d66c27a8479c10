//! The native half of `logspool.pool.Pool`: its state, and what others ask it.
//!
//! Jobs come in by [`super::intake`] and are done by [`super::worker`].

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use logspool_pool::{Jobs, PoolReading};
use logspool_sys::published::Published;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::job::Job;
use super::shared::Shared;
use super::wishes::Wishes;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{Object, Owned, WeakReference};
use crate::interpreter::waiting::{self, Deadline};

/// The native half of `logspool.pool.Pool`.
#[pyclass(frozen, subclass, weakref, module = "logspool._native")]
pub struct PoolCore {
    /// An `Arc` of its own; null until `_open`.
    shared: AtomicPtr<Arc<Shared>>,
    /// Callbacks for all jobs; set by `_open`.
    pub(super) wishes: OnceLock<Wishes>,
    /// Loops of several threads take turns here; each finds its own in the table of all.
    last_loop: Mutex<Option<LastLoop>>,
}

/// A weak reference to an asyncio event loop, and the way to it.
struct LastLoop(WeakReference, Owned);

impl Drop for PoolCore {
    fn drop(&mut self) {
        let shared = self.shared.exchange(ptr::null_mut());
        if !shared.is_null() {
            // SAFETY: made by `Box::into_raw`, taken out once.
            let shared = unsafe { Box::from_raw(shared) };
            // What was taken is done, as with the standard library's pool; then the workers leave.
            shared.jobs.close();
        }
    }
}

impl PoolCore {
    /// A pool that takes no jobs yet.
    pub fn unopened() -> Self {
        Self { shared: AtomicPtr::new(ptr::null_mut()), wishes: OnceLock::new(), last_loop: Mutex::new(None) }
    }

    /// What it shares with its workers.
    ///
    /// # Errors
    ///
    /// It was not opened.
    #[inline]
    pub fn shared(&self) -> PyResult<&Arc<Shared>> {
        // SAFETY: null, or what `_open` or `_after_fork` put there, which stays until the drop.
        unsafe { self.shared.observe().as_ref() }
            .ok_or_else(|| PyRuntimeError::new_err("Pool.__init__() was not called"))
    }

    /// Waits, unless it is so already, until `waited` says that it came true. False: the time was over first.
    ///
    /// # Errors
    ///
    /// What a signal's handler raised, and as for [`PoolCore::shared`].
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
    pub fn way_to(slf: Borrowed<'_, '_, Self>, asyncio_loop: Object<'_, '_>) -> PyResult<Owned> {
        let py = slf.py();
        // Never waited for: in a forked child nobody might be left to unlock it.
        let last_loop = || slf.get().last_loop.try_lock();
        if let Ok(found) = last_loop()
            && let Some(LastLoop(reference, event_loop)) = &*found
            && reference.referent() == asyncio_loop.as_ptr()
        {
            return Ok(Owned::lent(&event_loop.bind(py)));
        }
        let way = leaving::method_of_one(slf.as_any().as_borrowed(), &names().event_loop_of, asyncio_loop);
        let way = way.ok_or_else(|| PyErr::fetch(py))?;
        let reference = WeakReference::new(&asyncio_loop, None)?;
        let for_job = Owned::lent(&way.bind(py));
        let before = last_loop().ok().and_then(|mut place| place.replace(LastLoop(reference, way)));
        drop(before);
        Ok(for_job)
    }

    /// Returns what was there before, which is never freed: others may be reading it.
    pub(super) fn set_shared(&self, shared: Shared) -> Option<&'static Arc<Shared>> {
        let before = self.shared.exchange(Box::into_raw(Box::new(Arc::new(shared))));
        // SAFETY: null or made here.
        unsafe { before.as_ref() }
    }
}
