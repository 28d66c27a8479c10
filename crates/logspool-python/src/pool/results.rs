//! `logspool.pool.Results`: values on their way from jobs to whoever iterates over them.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use logspool_pool::Channel;
use logspool_pool::channel::{Refused, Taken};
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::arguments;
use crate::interpreter::object::Owned;
use crate::interpreter::waiting::{self, Deadline};

/// What a job gives.
enum Value {
    /// A result, or one of those that a generator yields.
    Result(Owned),
    /// What it raised.
    Exception(Owned),
}

/// Values that jobs put in and somebody takes, as they come.
///
/// With `maxsize` workers wait while so many values are there. Raises `ValueError` below 0.
#[pyclass(frozen, weakref, module = "logspool.pool")]
pub struct Results {
    channel: Arc<Channel<Value>>,
}

impl Drop for Results {
    fn drop(&mut self) {
        // No worker waits for somebody who is gone.
        drop(self.channel.close());
    }
}

/// A job's end of [`Results`]; they end when all of these are done.
pub struct Sender {
    channel: Arc<Channel<Value>>,
    done: AtomicBool,
}

impl Sender {
    /// Puts in a result of a job of the pool with these takers; waits for room. False: nobody takes it any more.
    ///
    /// # Errors
    ///
    /// What a signal's handler raised meanwhile.
    pub fn put(&self, py: Python<'_>, takers: &Takers, result: Owned) -> PyResult<bool> {
        // A job that its caller does is no worker's of the job's pool; the caller may be a worker of its own pool.
        with_own(|own| self.put_as(py, own, takers, result))
    }

    fn put_as(&self, py: Python<'_>, own: Option<&Takers>, takers: &Takers, result: Owned) -> PyResult<bool> {
        let mut value = Value::Result(result);
        let no_takers = || own.unwrap_or(takers).are_gone();
        loop {
            match self.channel.put(value, false) {
                Ok(()) => return Ok(true),
                Err((_, Refused::Closed)) => return Ok(false),
                Err((back, Refused::Full)) => value = back,
            }
            if no_takers() {
                self.break_off(py);
                return Ok(false);
            }
            if let Some(own) = own {
                own.waiting.fetch_add(1, Ordering::Relaxed);
            }
            let waited = waiting::wait(py, Deadline::None, |slice| self.channel.wait_for_room(slice) || no_takers());
            if let Some(own) = own {
                own.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            waited?;
        }
    }

    /// Ends, once, with an exception: whoever takes values after all must not think that they are complete.
    #[cold]
    fn break_off(&self, py: Python<'_>) {
        if !self.done.load(Ordering::Relaxed) {
            let error = PyRuntimeError::new_err(
                "the interpreter ended while more values came; take them all before, or close() the results",
            );
            self.put_exception(Owned::of(error.value(py).as_any()));
            self.finish();
        }
    }

    /// Puts an exception in, without waiting for room: there is at most one for a job.
    pub fn put_exception(&self, exception: Owned) {
        // Refused where nobody takes it any more.
        let _ = self.channel.put(Value::Exception(exception), true);
    }

    /// Nothing more will come.
    pub fn finish(&self) {
        if !self.done.swap(true, Ordering::Relaxed) {
            self.channel.remove_sender();
        }
    }

    /// As [`Sender::finish`] in a forked child, where nobody may be left to unlock the channel.
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
    /// One end more for a job.
    pub fn sender(&self) -> Sender {
        self.channel.add_sender();
        Sender { channel: self.channel.clone(), done: AtomicBool::new(false) }
    }

    /// The next value; `None` at the end.
    fn next(&self, py: Python<'_>, deadline: Deadline) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match self.channel.take() {
                Taken::Value(Value::Result(value)) => return Ok(Some(value.bind(py).to_owned().unbind())),
                Taken::Value(Value::Exception(error)) => return Err(PyErr::from_value(error.bind(py).to_owned())),
                Taken::End => return Ok(None),
                Taken::Nothing => {}
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
            // It would look like the end, as in a generator, which does the same.
            let told = PyRuntimeError::new_err("a job raised StopIteration");
            told.set_cause(py, Some(error));
            told
        })
    }

    /// Return the next value, or raise what a job raised; wait for it, at most `timeout` seconds.
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

    /// Take nothing more: jobs end at their next value, values that wait are dropped.
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

/// Who takes the values that the jobs of a pool put into results.
#[derive(Default)]
pub struct Takers {
    /// Workers of the pool that wait for room in results.
    waiting: AtomicUsize,
    /// Whether no job waits for such room any longer: nobody is left who could take a value.
    gone: AtomicBool,
}

impl Takers {
    /// Workers that wait for room in results.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Has no job wait for room any longer.
    pub fn forget(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }

    fn are_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

thread_local! {
    /// The pool whose worker the thread is; null for other threads.
    static OWN: Cell<*const Takers> = const { Cell::new(ptr::null()) };
}

/// Runs `act` with the takers of the pool whose worker the calling thread is; with `None` in other threads.
fn with_own<T>(act: impl FnOnce(Option<&Takers>) -> T) -> T {
    // SAFETY: set by `as_worker`, which borrows them for longer than any job that runs inside of it.
    act(unsafe { OWN.get().as_ref() })
}

/// Runs the loop of a worker of the pool that has these takers.
pub fn as_worker(takers: &Takers, work: impl FnOnce()) {
    /// Also where `work` panics.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            OWN.set(ptr::null());
        }
    }
    OWN.set(takers);
    let _reset = Reset;
    work();
}
