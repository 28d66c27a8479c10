//! Futures in the order in which they end, for `logspool.pool.as_completed`.
//!
//! The object is a callback of each future. Futures of the pool know it and put themselves into its queue without a
//! call; those of others call it.

use logspool_pool::Channel;
use logspool_pool::channel::Taken;
use pyo3::prelude::*;

use crate::interpreter::waiting::{self, Deadline};

/// Ended futures that nobody has taken.
#[pyclass(frozen, module = "logspool._native")]
pub struct Completions(Channel<Py<PyAny>>);

impl Completions {
    /// Takes a future that has ended.
    pub fn add(&self, future: Py<PyAny>) {
        // Neither bounded nor ever closed.
        let _ = self.0.put(future, false);
    }
}

#[pymethods]
impl Completions {
    #[new]
    fn new() -> Self {
        let channel = Channel::new(0);
        // No end: whoever waits knows how many come.
        channel.add_sender();
        Self(channel)
    }

    fn __call__(&self, future: Py<PyAny>) {
        self.add(future);
    }

    /// Return a future that has ended, or None after `timeout` seconds without one.
    #[pyo3(signature = (timeout))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let mut deadline = None;
        loop {
            if let Taken::Value(future) = self.0.take() {
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
