//! The native half of `logspool.pool.Pool`: taking jobs, and the loop of a worker.
//!
//! A worker is a `threading.Thread` of the Python half that calls [`Worker::run`] and stays in it: with its own thread
//! state, and with the interpreter for as many jobs as there are.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use logspool::pool::{Counts, Jobs, jobs};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::event_loop::EventLoop;
use super::job::{Job, Target};
use super::waiting::{self, Deadline};
use super::{fast, future, future_type};
use crate::leaving::Detached;
use crate::object::{self, Owned};

/// How many jobs a worker does before it looks at the clock, and how long it may keep the interpreter then. Chosen:
/// CPython's own interval; a Python function gives way by itself, one in C does not.
const JOBS_PER_LOOK: u32 = 64;
const TURN: Duration = Duration::from_millis(5);

/// What happens to a job when as many wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
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
struct Shared {
    jobs: Jobs<Job>,
    overflow: Overflow,
    copies_context: bool,
    idle_timeout: Option<Duration>,
    /// Jobs without a future that raised.
    failed: AtomicU64,
    /// Jobs that gave way to newer ones.
    dropped: AtomicU64,
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
    fn shared(&self) -> PyResult<&Shared> {
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
        Ok(Worker(self.shared_by_count()?))
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

/// What a worker thread runs.
#[pyclass(frozen, module = "logspool._native")]
pub struct Worker(Arc<Shared>);

#[pymethods]
impl Worker {
    /// Close the pool and end all jobs that wait with an exception: this worker cannot begin.
    fn give_up(&self, exception: &Bound<'_, PyAny>) {
        let jobs = &self.0.jobs;
        jobs.close();
        jobs.forget_worker();
        // SAFETY: attached.
        jobs.take_all().into_iter().for_each(|job| unsafe { job.fail(exception) });
    }

    /// Do jobs until none will come, in a thread with this name for the system.
    fn run(&self, _py: Python<'_>, name: &str) {
        name_thread(name);
        let shared = &*self.0;
        let (mut from, mut done, mut turn) = (jobs::From::Start, 0u32, Instant::now());
        loop {
            from = match shared.jobs.next(from) {
                jobs::Next::Job(job) => {
                    // SAFETY: attached.
                    if !unsafe { job.run() } {
                        shared.failed.fetch_add(1, Ordering::Relaxed);
                    }
                    done = done.wrapping_add(1);
                    if done % JOBS_PER_LOOK == 0 && turn.elapsed() > TURN {
                        // SAFETY: attached; nothing of Python is touched.
                        drop(unsafe { Detached::new() });
                        turn = Instant::now();
                    }
                    jobs::From::Job
                }
                jobs::Next::Sleep(ticket) => {
                    let woken = {
                        // SAFETY: as above.
                        let _detached = unsafe { Detached::new() };
                        shared.jobs.sleep(ticket, shared.idle_timeout)
                    };
                    turn = Instant::now();
                    if woken || shared.idle_timeout.is_none() { jobs::From::Sleep } else { jobs::From::LongSleep }
                }
                jobs::Next::Leave => return,
            };
        }
    }
}

/// Gives the calling thread a name that `top` and debuggers show; the kernel keeps 15 bytes.
fn name_thread(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        // SAFETY: a C string; longer ones are cut.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
}

/// Takes the place of PyO3's methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    let class: Bound<'_, PyType> = py.get_type::<PoolCore>();
    fast::replace(&class, c"submit", submit)?;
    fast::replace(&class, c"push", push)?;
    fast::replace(&class, c"_push_for", push_for)?;
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
    unsafe {
        let taken = take(object, "push", arguments, count, keywords, false, || Ok(Target::Nobody));
        match taken {
            Ok(()) => object::none(),
            Err(error) => {
                error.restore(Python::assume_attached());
                ptr::null_mut()
            }
        }
    }
}

unsafe extern "C" fn submit(
    object: *mut PyObject,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as CPython calls it; the descriptor checked the type.
    unsafe {
        let py = Python::assume_attached();
        let mut made = ptr::null_mut();
        let taken = take(object, "submit", arguments, count, keywords, false, || {
            let class = future_type::class(py)?;
            let future = Owned::steal(future::allocate(class.as_ptr().cast())).ok_or_else(|| PyErr::fetch(py))?;
            made = future.as_ptr();
            // One reference for the job, one for the caller.
            ffi::Py_INCREF(made);
            Ok(Target::Future(future))
        });
        match taken {
            Ok(()) => made,
            Err(error) => {
                ffi::Py_XDECREF(made);
                error.restore(py);
                ptr::null_mut()
            }
        }
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
            take(object, "run", arguments.add(2), count - 2, keywords, true, target)
        };
        match taken {
            Ok(()) => object::none(),
            Err(error) => {
                error.restore(py);
                ptr::null_mut()
            }
        }
    }
}

/// Makes a job of a call's arguments and puts it into the queue.
#[inline(always)]
unsafe fn take(
    object: *mut PyObject,
    method: &str,
    arguments: *const *mut PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut PyObject,
    never_waits: bool,
    target: impl FnOnce() -> PyResult<Target>,
) -> PyResult<()> {
    // SAFETY: as the caller's caller says.
    unsafe {
        let shared = pool(object).shared()?;
        if count < 1 {
            return Err(PyTypeError::new_err(format!("{method}() missing 1 required positional argument: 'fn'")));
        }
        let context = if shared.copies_context {
            let py = Python::assume_attached();
            Some(Owned::steal(ffi::PyContext_CopyCurrent()).ok_or_else(|| PyErr::fetch(py))?)
        } else {
            None
        };
        let job = Job::new(arguments, count as usize, keywords, context, target()?, coarse_milliseconds());
        let beyond = never_waits && shared.overflow == Overflow::Block;
        match shared.jobs.push(job, jobs::Place::Normal, beyond) {
            Ok(false) => Ok(()),
            Ok(true) => start_worker(object),
            Err((job, why)) => refused(object, shared, job, why),
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
unsafe fn refused(object: *mut PyObject, shared: &Shared, mut job: Job, mut why: jobs::Refused) -> PyResult<()> {
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
        match shared.jobs.push(job, jobs::Place::Normal, false) {
            Ok(false) => return Ok(()),
            // SAFETY: a live pool, attached.
            Ok(true) => return unsafe { start_worker(object) },
            Err(refused) => (job, why) = refused,
        }
    }
}

/// The kernel's clock of a few milliseconds' resolution: a fifth of the cost of the exact one.
#[inline]
fn coarse_milliseconds() -> u32 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &mut time) };
    (time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000) as u32
}
