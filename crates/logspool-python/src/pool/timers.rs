//! Delayed jobs and time limits of all pools of the process, and the single thread that waits until they are due.
//!
//! The thread is a Python thread, but waits outside the interpreter. It adds a due job to the queue of its pool without
//! entering the interpreter. It enters the interpreter only if a worker must be started, or if a job has exceeded its
//! time limit.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};
use std::{mem, ptr};

use logspool_pool::Timers;
use logspool_pool::jobs::QueuePosition;
use logspool_pool::timers::{Clock, ClockReadings, TimerKey, TimerStep};
use logspool_sys::clock;
use logspool_sys::published::Published;
use pyo3::exceptions::{PyOverflowError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;

use super::extra::Extra;
use super::job::Job;
use super::run_by::RunBy;
use super::schedule::Schedule;
use super::shared::Shared;
use crate::interpreter::leaving;
use crate::interpreter::object::Owned;
use crate::interpreter::thread::name_thread;

/// An entry that waits for its due time.
enum TimerEntry {
    /// A job for the queue of its pool.
    Job(Arc<Shared>, Job),
    /// The time limit of a job, for the run with this number ([`Extra::turn`]).
    Limit(Arc<Shared>, Arc<Extra>, u64),
}

type PoolTimers = Timers<Box<TimerEntry>>;

/// The timers of the process; null until first used. They are never freed, and replaced after a fork.
static TIMERS: AtomicPtr<PoolTimers> = AtomicPtr::new(ptr::null_mut());

/// The Python function that starts the timer thread.
static START: OnceLock<Owned> = OnceLock::new();

fn pool_timers() -> &'static PoolTimers {
    // SAFETY: null, or a box that is never freed.
    if let Some(found) = unsafe { TIMERS.observe().as_ref() } {
        return found;
    }
    let made = Box::into_raw(Box::default());
    match TIMERS.publish_over(ptr::null_mut(), made) {
        // SAFETY: a box of `Box::into_raw` that is now in `TIMERS`, which is never freed.
        Ok(()) => unsafe { &*made },
        Err(found) => {
            // SAFETY: made above by `Box::into_raw`, and no other thread has seen it.
            drop(unsafe { Box::from_raw(made) });
            // SAFETY: the value of `TIMERS`, a box that is never freed.
            unsafe { &*found }
        }
    }
}

/// Sets the Python function that starts the timer thread. Only the first call has an effect.
pub fn set_start(start: &Bound<'_, PyAny>) {
    let _ = START.set(Owned::of(start));
}

/// Converts a time or a delay from seconds to nanoseconds. Negative values become 0.
///
/// # Errors
///
/// `ValueError` for NaN, `OverflowError` for a value outside the range of the clock.
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

/// The time of the steady clock after this delay, in nanoseconds.
pub fn due_after(delay_ns: u64) -> u64 {
    clock::monotonic_ns().saturating_add(delay_ns)
}

/// A new key for [`add`].
pub fn key(clock: Clock, at: u64) -> TimerKey {
    pool_timers().key(clock, at)
}

/// Adds a job that was announced to the queue of its pool. Returns true if the caller must call [`start`].
pub fn add(key: TimerKey, shared: Arc<Shared>, job: Job) -> bool {
    pool_timers().add(key, Box::new(TimerEntry::Job(shared, job)))
}

/// Starts the timer thread after a timer was added.
///
/// # Errors
///
/// The thread could not be started; the timer is cancelled.
#[cold]
pub fn start(py: Python<'_>, key: TimerKey) -> PyResult<()> {
    start_thread(py).inspect_err(|_| cancel(py, key))
}

#[cold]
fn start_thread(py: Python<'_>) -> PyResult<()> {
    let Some(start) = START.get() else { return Ok(()) };
    leaving::call(start.bind(py)).map(drop).ok_or_else(|| {
        let error = PyErr::fetch(py);
        pool_timers().forget_thread();
        error
    })
}

/// Adds the next call of a schedule, where it waits until it is due.
///
/// # Errors
///
/// The timer thread could not be started.
pub fn repeat(py: Python<'_>, schedule: &Schedule, shared: &Arc<Shared>, job: Job) -> PyResult<()> {
    let added = schedule.arm(
        |due| key(Clock::Steady, due),
        || shared.jobs.announce().is_ok(),
        |key| add(key, shared.clone(), job),
    );
    let Some((key, is_first)) = added else { return Ok(()) };
    if shared.jobs.is_closed() {
        // The pool was closed after `announce`. The closing thread may have missed this timer, so it is cancelled here.
        cancel(py, key);
    }
    if is_first { start(py, key) } else { Ok(()) }
}

/// Removes a job before its due time and cancels it. Does nothing if the job was due already.
pub fn cancel(py: Python<'_>, key: TimerKey) {
    if let Some(entry) = pool_timers().remove(key) {
        give_up(*entry, |job| job.cancel(py));
    }
}

/// Which jobs that are not due yet an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingJobs {
    /// All of them.
    All,
    /// Only those that are repeated.
    Scheduled,
}

/// Cancels jobs of a pool that are not due yet.
pub fn cancel_all(py: Python<'_>, shared: &Arc<Shared>, which: WaitingJobs) {
    for entry in take_all(shared, which) {
        give_up(entry, |job| job.cancel(py));
    }
}

/// The same as [`cancel_all`] for all jobs, but ends the futures with an exception.
pub fn fail_all(shared: &Arc<Shared>, exception: &Bound<'_, PyAny>) {
    for entry in take_all(shared, WaitingJobs::All) {
        give_up(entry, |job| job.fail(exception));
    }
}

fn take_all(shared: &Arc<Shared>, which: WaitingJobs) -> Vec<TimerEntry> {
    let taken = pool_timers().remove_all(|entry| match &**entry {
        TimerEntry::Job(of, job) => Arc::ptr_eq(of, shared) && (which == WaitingJobs::All || job.is_scheduled()),
        TimerEntry::Limit(..) => false,
    });
    taken.into_iter().map(|entry| *entry).collect()
}

fn give_up(entry: TimerEntry, how: impl FnOnce(Job)) {
    if let TimerEntry::Job(shared, job) = entry {
        how(job);
        shared.jobs.withdraw_announced();
    }
}

/// Starts the time limit of a job that runs from now on. Returns the key for [`forget_limit`].
pub fn limit(py: Python<'_>, shared: &Arc<Shared>, extra: &Arc<Extra>, turn: u64, time_ns: u64) -> TimerKey {
    let key = key(Clock::Steady, due_after(time_ns));
    if pool_timers().add(key, Box::new(TimerEntry::Limit(shared.clone(), extra.clone(), turn)))
        && let Err(error) = start_thread(py)
    {
        error.write_unraisable(py, None);
    }
    key
}

/// Reports that the run number `turn` exceeded its time limit, if this run is still in progress. The job itself
/// cannot be stopped.
fn report_timeout(py: Python<'_>, shared: &Shared, extra: &Extra, turn: u64) {
    // Relaxed: see the exchange in `running.rs`.
    if extra.turn.compare_exchange(turn, turn + 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    shared.timed_out.fetch_add(1, Ordering::Relaxed);
    let seconds = extra.limit_ns.unwrap_or(0) as f64 / 1e9;
    let error = PyTimeoutError::new_err(format!(
        "the job ran longer than {seconds} s; it continues, but its result is ignored"
    ));
    let exception = Owned::of(error.into_value(py).bind(py).as_any());
    if !extra.fail(exception, py.None().bind_borrowed(py), &mut RunBy::Worker) {
        shared.failed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Removes the time limit of a job that has ended.
pub fn forget_limit(key: TimerKey) {
    drop(pool_timers().remove(key));
}

/// In a forked child: starts without timers, and ends the futures of the parent's jobs with an exception.
pub fn after_fork(exception: &Bound<'_, PyAny>) {
    let before = TIMERS.exchange(ptr::null_mut());
    // SAFETY: null, or a box that is never freed, because its lock may be in any state.
    let Some(before) = (unsafe { before.as_ref() }) else { return };
    for entry in before.remove_all_after_fork(|_| true) {
        match *entry {
            TimerEntry::Job(_, job) => job.fail_after_fork(exception),
            // Not dropped, for the same reason as in `Job::fail_after_fork`.
            limit @ TimerEntry::Limit(..) => mem::forget(limit),
        }
    }
}

/// Why the timer thread enters the interpreter.
enum WakeReason {
    /// The pool whose [`Shared`] has this address must start a worker.
    Worker(usize),
    /// A job exceeded its time limit in the run with this number.
    Over(Arc<Shared>, Arc<Extra>, u64),
    /// No timer waits: the thread ends.
    Leave,
}

/// Runs the timer thread until no timer has waited for a while.
///
/// `start_worker` is called with the `_id` of a pool.
pub fn run(py: Python<'_>, start_worker: &Bound<'_, PyAny>) {
    name_thread("logspool-timers");
    // SAFETY: affects only this thread's timer slack: 1 ns instead of the default 50 us.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let timers = pool_timers();
    loop {
        match leaving::detached(py, || wait(timers)) {
            WakeReason::Worker(pool) => {
                let started = pool
                    .into_pyobject(py)
                    .map(|pool| leaving::call_with(start_worker.as_borrowed(), pool.as_any().as_borrowed()));
                if !matches!(started, Ok(Some(_))) {
                    PyErr::fetch(py).write_unraisable(py, Some(start_worker));
                }
            }
            WakeReason::Over(shared, extra, turn) => report_timeout(py, &shared, &extra, turn),
            WakeReason::Leave => return,
        }
    }
}

/// Waits outside the interpreter, and adds due jobs to the queues of their pools. Returns why the thread must enter the
/// interpreter.
fn wait(timers: &PoolTimers) -> WakeReason {
    let mut idled = false;
    loop {
        match timers.next(ClockReadings::read(), idled) {
            TimerStep::Due(entry) => match *entry {
                TimerEntry::Job(shared, mut job) => {
                    job.since = clock::ticks();
                    if shared.jobs.push_announced(job, QueuePosition::High) {
                        return WakeReason::Worker(Arc::as_ptr(&shared) as usize);
                    }
                    // The last reference to the pool's state may be dropped here, outside the interpreter. No Python
                    // object is dropped with it: the queue has a worker, and that leaves only an empty queue.
                }
                TimerEntry::Limit(shared, extra, turn) => return WakeReason::Over(shared, extra, turn),
            },
            TimerStep::Sleep(ticket, time) => idled = timers.sleep(ticket, time),
            TimerStep::Leave => return WakeReason::Leave,
        }
    }
}
