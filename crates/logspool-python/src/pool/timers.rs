//! What the pools of a process do later, and the one thread that waits for it.
//!
//! The thread is one of Python's, but stays outside of the interpreter: a job that is due goes into its pool's queue
//! without it. It comes in only where a worker has to be started or the time of a job is over.

use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use logspool_pool::Timers;
use logspool_pool::jobs::Place;
use logspool_pool::timers::{Clock, Key, Next, Now};
use logspool_sys::clock;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use super::core::Shared;
use super::extra::Extra;
use super::job::Job;
use super::worker;
use crate::leaving;
use crate::object::Owned;

/// What waits for its time.
enum Entry {
    /// A job for the queue of its pool.
    Job(Arc<Shared>, Job),
    /// The end of the time that a job may run, in this turn of it.
    Limit(Arc<Shared>, Arc<Extra>, u64),
}

type All = Timers<Box<Entry>>;

/// Never freed; another one after a fork.
static TIMERS: AtomicPtr<All> = AtomicPtr::new(ptr::null_mut());

/// Starts the thread: a Python function.
static START: OnceLock<Owned> = OnceLock::new();

fn all() -> &'static All {
    // SAFETY: never freed.
    if let Some(found) = unsafe { TIMERS.load(Ordering::Acquire).as_ref() } {
        return found;
    }
    let made = Box::into_raw(Box::default());
    match TIMERS.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above.
        Ok(_) => unsafe { &*made },
        Err(found) => {
            // SAFETY: made above, seen by nobody else.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: as above.
            unsafe { &*found }
        }
    }
}

/// Remembers how the thread is started. The first call counts.
pub fn set_start(start: &Bound<'_, PyAny>) {
    let _ = START.set(Owned::of(start));
}

/// Nanoseconds of a time or a delay in seconds; what lies before the beginning is the beginning.
///
/// # Errors
///
/// `ValueError` for NaN, `OverflowError` for what no clock can count.
pub fn nanoseconds(name: &str, seconds: f64) -> PyResult<u64> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err(format!("{name} is not a number")));
    }
    let nanoseconds = seconds.max(0.0) * 1e9;
    if nanoseconds >= (u64::MAX / 2) as f64 {
        return Err(PyOverflowError::new_err(format!("{name} is too large: {seconds:e} s")));
    }
    Ok(nanoseconds as u64)
}

/// The moment of the steady clock so much later than now.
pub fn after(delay_ns: u64) -> u64 {
    clock::monotonic_ns().saturating_add(delay_ns)
}

/// A key for [`add`].
pub fn key(clock: Clock, at: u64) -> Key {
    all().key(clock, at)
}

/// Has a job wait that its queue expects. Returns whether [`start`] has to be called.
pub fn add(key: Key, shared: Arc<Shared>, job: Job) -> bool {
    all().add(key, Box::new(Entry::Job(shared, job)))
}

/// Starts the thread for a timer that was added.
///
/// # Errors
///
/// It could not be started; the timer is cancelled.
#[cold]
pub fn start(py: Python<'_>, key: Key) -> PyResult<()> {
    start_thread(py).inspect_err(|_| cancel(py, key))
}

#[cold]
fn start_thread(py: Python<'_>) -> PyResult<()> {
    let Some(start) = START.get() else { return Ok(()) };
    // SAFETY: a live function, attached.
    let started = unsafe { Owned::steal(leaving::call(start.as_ptr())) };
    started.map(drop).ok_or_else(|| {
        let error = PyErr::fetch(py);
        all().forget_thread();
        error
    })
}

/// Takes a job out before its time and cancels it; does nothing where its time has come.
pub fn cancel(_attached: Python<'_>, key: Key) {
    if let Some(entry) = all().remove(key) {
        // SAFETY: attached.
        give_up(*entry, |job| unsafe { job.cancel() });
    }
}

/// Cancels the jobs of a pool that are not due; of schedules only, unless `all_kinds`.
pub fn cancel_all(_attached: Python<'_>, shared: &Arc<Shared>, all_kinds: bool) {
    for entry in take_all(shared, all_kinds) {
        // SAFETY: attached.
        give_up(entry, |job| unsafe { job.cancel() });
    }
}

/// As [`cancel_all`], with an exception for those who wait.
pub fn fail_all(shared: &Arc<Shared>, exception: &Bound<'_, PyAny>) {
    for entry in take_all(shared, true) {
        // SAFETY: attached.
        give_up(entry, |job| unsafe { job.fail(exception) });
    }
}

fn take_all(shared: &Arc<Shared>, all_kinds: bool) -> Vec<Entry> {
    let taken = all().remove_all(|entry| match &**entry {
        Entry::Job(of, job) => Arc::ptr_eq(of, shared) && (all_kinds || job.is_scheduled()),
        Entry::Limit(..) => false,
    });
    taken.into_iter().map(|entry| *entry).collect()
}

fn give_up(entry: Entry, how: impl FnOnce(Job)) {
    if let Entry::Job(shared, job) = entry {
        how(job);
        shared.jobs.forget_expected();
    }
}

/// Limits the time that a job runs from now on. Returns what [`forget_limit`] takes.
pub fn limit(py: Python<'_>, shared: &Arc<Shared>, extra: &Arc<Extra>, turn: u64, time_ns: u64) -> Key {
    let key = key(Clock::Steady, after(time_ns));
    if all().add(key, Box::new(Entry::Limit(shared.clone(), extra.clone(), turn)))
        && let Err(error) = start_thread(py)
    {
        error.write_unraisable(py, None);
    }
    key
}

/// The job has ended.
pub fn forget_limit(key: Key) {
    drop(all().remove(key));
}

/// In a forked child: begin anew, with an exception for those who wait.
pub fn after_fork(exception: &Bound<'_, PyAny>) {
    let before = TIMERS.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: never freed: its lock may be in any state.
    let Some(before) = (unsafe { before.as_ref() }) else { return };
    for entry in before.remove_all_after_fork(|_| true) {
        match *entry {
            // SAFETY: attached.
            Entry::Job(_, job) => unsafe { job.fail_after_fork(exception) },
            // Kept for good, as jobs are.
            limit @ Entry::Limit(..) => mem::forget(limit),
        }
    }
}

/// Why the thread comes into the interpreter.
enum Call {
    /// The pool with this [`Shared`] has to start a worker.
    Worker(usize),
    /// The time of a job is over.
    Over(Arc<Shared>, Arc<Extra>, u64),
    /// Nothing waits.
    Leave,
}

/// Be the thread that waits, until nothing has waited for a while.
///
/// `start_worker` gets the number of a pool, its `_id`.
pub fn run(py: Python<'_>, start_worker: &Bound<'_, PyAny>) {
    worker::name_thread("logspool-timers");
    // SAFETY: changes only how precisely this thread is woken, by default to 50 us.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let timers = all();
    loop {
        match leaving::outside(py, || wait(timers)) {
            Call::Worker(pool) => {
                let started = pool.into_pyobject(py).map(|pool| {
                    // SAFETY: live objects, attached.
                    unsafe { Owned::steal(leaving::call_with(start_worker.as_ptr(), pool.as_ptr())) }
                });
                if !matches!(started, Ok(Some(_))) {
                    PyErr::fetch(py).write_unraisable(py, Some(start_worker));
                }
            }
            // SAFETY: attached.
            Call::Over(shared, extra, turn) => unsafe { extra.time_is_over(py, &shared, turn) },
            Call::Leave => return,
        }
    }
}

/// Waits outside of the interpreter; gives jobs that are due to their pools.
fn wait(timers: &All) -> Call {
    let mut idled = false;
    loop {
        match timers.next(Now::read(), idled) {
            Next::Due(entry) => match *entry {
                Entry::Job(shared, mut job) => {
                    job.since = clock::ticks();
                    if shared.jobs.push_expected(job, Place::High) {
                        return Call::Worker(Arc::as_ptr(&shared) as usize);
                    }
                    // Without the interpreter, and yet no object is dropped with the last of these: the queue has a
                    // worker, which leaves only an empty one.
                }
                Entry::Limit(shared, extra, turn) => return Call::Over(shared, extra, turn),
            },
            Next::Sleep(ticket, time) => idled = timers.sleep(ticket, time),
            Next::Leave => return Call::Leave,
        }
    }
}
