//! `logspool.pool.Results`: a queue of values from jobs to a thread that iterates over the values.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use logspool_pool::Channel;
use logspool_pool::channel::{TakeOutcome, ValueRefused};
use logspool_pool::jobs::QueueLimit;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::arguments;
use crate::interpreter::object::Owned;
use crate::interpreter::waiting::{self, Deadline};

/// One value of a job.
enum ResultItem {
    /// The return value, or a value that a generator yields.
    Result(Owned),
    /// The exception that the job raised.
    Exception(Owned),
}

/// A queue of values: jobs put them in, an iterator takes them in order of arrival.
///
/// With `maxsize`, workers wait while `maxsize` values are in the queue. Raises `ValueError` below 0.
#[pyclass(frozen, weakref, module = "logspool.pool")]
pub struct Results {
    channel: Arc<Channel<ResultItem>>,
}

impl Drop for Results {
    fn drop(&mut self) {
        // The channel is closed, so that no worker waits for room.
        drop(self.channel.close());
    }
}

/// The sender through which a job puts values into [`Results`]. The results end when all senders are done.
pub struct Sender {
    channel: Arc<Channel<ResultItem>>,
    done: AtomicBool,
}

impl Sender {
    /// Sends a result of a job. Waits for room if necessary. Returns false if the results are closed, or if the wait
    /// for room was ended permanently. `room_waiters` belongs to the pool of the job.
    ///
    /// # Errors
    ///
    /// The exception of a signal handler that ran during the wait.
    pub fn put(&self, py: Python<'_>, room_waiters: &RoomWaiters, result: Owned) -> PyResult<bool> {
        // A job can run in its caller, which may be a worker of another pool. The wait is then counted for the other
        // pool.
        with_own(|own| self.put_as(py, own, room_waiters, result))
    }

    fn put_as(
        &self,
        py: Python<'_>,
        own: Option<&RoomWaiters>,
        room_waiters: &RoomWaiters,
        result: Owned,
    ) -> PyResult<bool> {
        let mut value = ResultItem::Result(result);
        let no_reader = || own.unwrap_or(room_waiters).has_ended();
        loop {
            match self.channel.put(value, QueueLimit::Kept) {
                Ok(()) => return Ok(true),
                Err((_, ValueRefused::Closed)) => return Ok(false),
                Err((back, ValueRefused::Full)) => value = back,
            }
            if no_reader() {
                self.end_incomplete(py);
                return Ok(false);
            }
            if let Some(own) = own {
                own.waiting.fetch_add(1, Ordering::Relaxed);
            }
            let waited = waiting::wait(py, Deadline::None, |slice| self.channel.wait_for_room(slice) || no_reader());
            if let Some(own) = own {
                own.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            waited?;
        }
    }

    /// Ends this sender with an exception, once, so that a late reader does not believe that the values are complete.
    #[cold]
    fn end_incomplete(&self, py: Python<'_>) {
        if !self.done.load(Ordering::Relaxed) {
            let error = PyRuntimeError::new_err(
                "the interpreter ended while more values came; take them all before, or close() the results",
            );
            self.put_exception(Owned::of(error.value(py).as_any()));
            self.finish();
        }
    }

    /// Sends an exception without waiting for room: each job sends at most one.
    pub fn put_exception(&self, exception: Owned) {
        // The channel refuses the exception if the results are closed. The exception is dropped then.
        let _ = self.channel.put(ResultItem::Exception(exception), QueueLimit::Ignored);
    }

    /// Ends this sender.
    pub fn finish(&self) {
        if !self.done.swap(true, Ordering::Relaxed) {
            self.channel.remove_sender();
        }
    }

    /// The same as [`Sender::finish`], for a forked child: the thread that holds the channel's lock may not exist
    /// there.
    pub fn finish_after_fork(&self) {
        if !self.done.swap(true, Ordering::Relaxed) {
            self.channel.remove_sender_after_fork();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Results {
    /// A new sender, for one job.
    pub fn sender(&self) -> Sender {
        self.channel.add_sender();
        Sender { channel: self.channel.clone(), done: AtomicBool::new(false) }
    }

    /// Waits for the next value. Returns `None` at the end.
    fn next(&self, py: Python<'_>, deadline: Deadline) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match self.channel.take() {
                TakeOutcome::Value(ResultItem::Result(value)) => return Ok(Some(value.bind(py).to_owned().unbind())),
                TakeOutcome::Value(ResultItem::Exception(error)) => {
                    return Err(PyErr::from_value(error.bind(py).to_owned()));
                }
                TakeOutcome::End => return Ok(None),
                TakeOutcome::Nothing => {}
            }
            if !waiting::wait(py, deadline, |slice| self.channel.wait_for_value(slice))? {
                return Err(empty(py, "no value came in time"));
            }
        }
    }
}

fn empty(py: Python<'_>, why: &str) -> PyErr {
    let made = py.import("queue").and_then(|queue| queue.getattr("Empty")).and_then(|class| class.call1((why,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

#[pymethods]
impl Results {
    #[new]
    #[pyo3(signature = (maxsize=0))]
    fn new(#[pyo3(from_py_with = arguments::maxsize)] maxsize: i64) -> PyResult<Self> {
        let bound = usize::try_from(maxsize)
            .map_err(|_| PyValueError::new_err(format!("maxsize is {maxsize}, expected 0 (no limit) or more")))?;
        Ok(Self { channel: Arc::new(Channel::new(bound)) })
    }

    #[classmethod]
    fn __class_getitem__(class: &Bound<'_, PyType>, _item: &Bound<'_, PyAny>) -> Py<PyType> {
        class.clone().unbind()
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next(py, Deadline::None).map_err(|error| {
            if !error.is_instance_of::<PyStopIteration>(py) {
                return error;
            }
            // An unchanged `StopIteration` would end the caller's loop. A generator raises `RuntimeError` in this case,
            // too.
            let runtime_error = PyRuntimeError::new_err("a job raised StopIteration");
            runtime_error.set_cause(py, Some(error));
            runtime_error
        })
    }

    /// Return the next value, or raise the exception of a job; wait for at most `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn get(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::positive_timeout)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        self.next(py, Deadline::after(timeout)?)?.ok_or_else(|| empty(py, "all jobs have ended"))
    }

    fn __len__(&self) -> usize {
        self.channel.len()
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Accept no more values: jobs end at their next value, waiting values are dropped.
    fn close(&self) {
        drop(self.channel.close());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }
}

/// Reads `results`: a `Results`, or None.
pub fn results_or_none(value: &Bound<'_, PyAny>) -> PyResult<Option<Py<Results>>> {
    let read: Result<Option<Py<Results>>, _> = value.extract();
    read.map_err(|error| arguments::named("results", "a Results or None", value, error.into()))
}

/// The workers of a pool that wait for room in results.
#[derive(Default)]
pub struct RoomWaiters {
    /// Number of these workers.
    waiting: AtomicUsize,
    /// True if workers must not wait for room any more, because no thread is left that could take a value.
    gone: AtomicBool,
}

impl RoomWaiters {
    /// Number of workers that wait for room in results.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Ends all waits for room. Later values do not wait either.
    pub fn forget(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// The room waiters of the pool whose worker this thread is; null for other threads.
    static CURRENT_WAITERS: Cell<*const RoomWaiters> = const { Cell::new(ptr::null()) };
}

/// Runs `act` with the room waiters of the pool whose worker the calling thread is, or with `None` in other threads.
fn with_own<T>(act: impl FnOnce(Option<&RoomWaiters>) -> T) -> T {
    // SAFETY: null, or set by `as_worker`, which borrows the room waiters until its `work` has returned.
    act(unsafe { CURRENT_WAITERS.get().as_ref() })
}

/// Runs `work`, the loop of a worker of the pool with these room waiters.
pub fn as_worker(room_waiters: &RoomWaiters, work: impl FnOnce()) {
    /// Resets the thread's room waiters even if `work` panics.
    struct ResetOnDrop;
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            CURRENT_WAITERS.set(ptr::null());
        }
    }
    CURRENT_WAITERS.set(room_waiters);
    let _reset = ResetOnDrop;
    work();
}
