//! What the pools of a process do later, and the one thread that waits for it.
//!
//! The thread is one of Python's, but stays outside of the interpreter: a job that is due goes into its pool's queue
//! without it. It comes in only where a worker has to be started or the time of a job is over.

use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, OnceLock};
use std::{mem, ptr};

use logspool_pool::Timers;
use logspool_pool::jobs::Place;
use logspool_pool::timers::{Clock, Key, Next, Now};
use logspool_sys::clock;
use logspool_sys::published::Published;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use super::extra::Extra;
use super::job::Job;
use super::shared::Shared;
use crate::interpreter::leaving;
use crate::interpreter::object::Owned;
use crate::interpreter::thread::name_thread;

/// What waits for its time.
enum TimerEntry {
    /// A job for the queue of its pool.
    Job(Arc<Shared>, Job),
    /// The end of the time that a job may run, in this turn of it.
    Limit(Arc<Shared>, Arc<Extra>, u64),
}

type All = Timers<Box<TimerEntry>>;

/// Never freed; another one after a fork.
static TIMERS: AtomicPtr<All> = AtomicPtr::new(ptr::null_mut());

/// Starts the thread: a Python function.
static START: OnceLock<Owned> = OnceLock::new();

fn all() -> &'static All {
    // SAFETY: never freed.
    if let Some(found) = unsafe { TIMERS.observe().as_ref() } {
        return found;
    }
    let made = Box::into_raw(Box::default());
    match TIMERS.publish_over(ptr::null_mut(), made) {
        // SAFETY: never freed.
        Ok(()) => unsafe { &*made },
        Err(found) => {
            // SAFETY: made above, seen by nobody else.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: never freed.
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
    all().add(key, Box::new(TimerEntry::Job(shared, job)))
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
    leaving::call(start.bind(py)).map(drop).ok_or_else(|| {
        let error = PyErr::fetch(py);
        all().forget_thread();
        error
    })
}

/// Takes a job out before its time and cancels it; does nothing where its time has come.
pub fn cancel(py: Python<'_>, key: Key) {
    if let Some(entry) = all().remove(key) {
        give_up(*entry, |job| job.cancel(py));
    }
}

/// Cancels the jobs of a pool that are not due; of schedules only, unless `all_kinds`.
pub fn cancel_all(py: Python<'_>, shared: &Arc<Shared>, all_kinds: bool) {
    for entry in take_all(shared, all_kinds) {
        give_up(entry, |job| job.cancel(py));
    }
}

/// As [`cancel_all`], with an exception for those who wait.
pub fn fail_all(shared: &Arc<Shared>, exception: &Bound<'_, PyAny>) {
    for entry in take_all(shared, true) {
        give_up(entry, |job| job.fail(exception));
    }
}

fn take_all(shared: &Arc<Shared>, all_kinds: bool) -> Vec<TimerEntry> {
    let taken = all().remove_all(|entry| match &**entry {
        TimerEntry::Job(of, job) => Arc::ptr_eq(of, shared) && (all_kinds || job.is_scheduled()),
        TimerEntry::Limit(..) => false,
    });
    taken.into_iter().map(|entry| *entry).collect()
}

fn give_up(entry: TimerEntry, how: impl FnOnce(Job)) {
    if let TimerEntry::Job(shared, job) = entry {
        how(job);
        shared.jobs.forget_expected();
    }
}

/// Limits the time that a job runs from now on. Returns what [`forget_limit`] takes.
pub fn limit(py: Python<'_>, shared: &Arc<Shared>, extra: &Arc<Extra>, turn: u64, time_ns: u64) -> Key {
    let key = key(Clock::Steady, after(time_ns));
    if all().add(key, Box::new(TimerEntry::Limit(shared.clone(), extra.clone(), turn)))
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
    let before = TIMERS.exchange(ptr::null_mut());
    // SAFETY: never freed: its lock may be in any state.
    let Some(before) = (unsafe { before.as_ref() }) else { return };
    for entry in before.remove_all_after_fork(|_| true) {
        match *entry {
            TimerEntry::Job(_, job) => job.fail_after_fork(exception),
            // Kept for good, as jobs are.
            limit @ TimerEntry::Limit(..) => mem::forget(limit),
        }
    }
}

/// Why the thread comes into the interpreter.
enum WakeReason {
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
    name_thread("logspool-timers");
    // SAFETY: changes only how precisely this thread is woken, by default to 50 us.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let timers = all();
    loop {
        match leaving::outside(py, || wait(timers)) {
            WakeReason::Worker(pool) => {
                let started = pool
                    .into_pyobject(py)
                    .map(|pool| leaving::call_with(start_worker.as_borrowed(), pool.as_any().as_borrowed()));
                if !matches!(started, Ok(Some(_))) {
                    PyErr::fetch(py).write_unraisable(py, Some(start_worker));
                }
            }
            WakeReason::Over(shared, extra, turn) => extra.time_is_over(py, &shared, turn),
            WakeReason::Leave => return,
        }
    }
}

/// Waits outside of the interpreter; gives jobs that are due to their pools.
fn wait(timers: &All) -> WakeReason {
    let mut idled = false;
    loop {
        match timers.next(Now::read(), idled) {
            Next::Due(entry) => match *entry {
                TimerEntry::Job(shared, mut job) => {
                    job.since = clock::ticks();
                    if shared.jobs.push_expected(job, Place::High) {
                        return WakeReason::Worker(Arc::as_ptr(&shared) as usize);
                    }
                    // Without the interpreter, and yet no object is dropped with the last of these: the queue has a
                    // worker, which leaves only an empty one.
                }
                TimerEntry::Limit(shared, extra, turn) => return WakeReason::Over(shared, extra, turn),
            },
            Next::Sleep(ticket, time) => idled = timers.sleep(ticket, time),
            Next::Leave => return WakeReason::Leave,
        }
    }
}
