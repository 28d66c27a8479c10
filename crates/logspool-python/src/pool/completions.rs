//! Futures in the order in which they end, for `logspool.pool.as_completed`.
//!
//! A `Completions` object is registered as a callback of each future. Futures of the pool recognise the object and add
//! themselves to its queue without a Python call. Other futures call the object.

use logspool_pool::Channel;
use logspool_pool::channel::TakeOutcome;
use logspool_pool::jobs::QueueLimit;
use pyo3::prelude::*;

use crate::interpreter::waiting::{self, Deadline};

/// A queue of ended futures that the consumer has not taken yet.
#[pyclass(frozen, module = "logspool._native")]
pub struct Completions(Channel<Py<PyAny>>);

impl Completions {
    /// Adds a future that has ended.
    pub fn add(&self, future: Py<PyAny>) {
        // The result is always `Ok`: the channel has no bound and is never closed.
        let _ = self.0.put(future, QueueLimit::Kept);
    }
}

#[pymethods]
impl Completions {
    #[new]
    fn new() -> Self {
        let channel = Channel::new(0);
        // This sender is never removed, so the channel never ends. The caller knows how many futures will come.
        channel.add_sender();
        Self(channel)
    }

    fn __call__(&self, future: Py<PyAny>) {
        self.add(future);
    }

    /// Return a future that has ended, or None if no future ends within `timeout` seconds.
    #[pyo3(signature = (timeout))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let mut deadline = None;
        loop {
            if let TakeOutcome::Value(future) = self.0.take() {
                return Ok(Some(future));
            }
            let deadline = match deadline {
                Some(known) => known,
                None => *deadline.insert(Deadline::after(timeout)?),
            };
            if !waiting::wait(py, deadline, |slice| self.0.wait_for_value(slice))? {
                return Ok(None);
            }
        }
    }
}
