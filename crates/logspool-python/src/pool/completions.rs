//! Futures in the order in which they end, for `logspool.pool.as_completed`.
//!
//! The object is a callback of each future. Futures of the pool know it and put themselves into its queue without a
//! call; those of others call it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use logspool::pool::futex::{WaitWord, low};
use pyo3::prelude::*;

use super::waiting::{self, Deadline};

/// Ended futures that nobody has taken.
#[pyclass(frozen, module = "logspool._native")]
pub struct Completions {
    ended: Mutex<VecDeque<Py<PyAny>>>,
    /// Low half: changes with each future that ends.
    bell: WaitWord,
}

impl Completions {
    fn ended(&self) -> std::sync::MutexGuard<'_, VecDeque<Py<PyAny>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a future that has ended.
    pub fn add(&self, future: Py<PyAny>) {
        let first = {
            let mut ended = self.ended();
            ended.push_back(future);
            ended.len() == 1
        };
        self.bell.word.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // Whoever waits found none: only the first can end a wait.
        if first {
            self.bell.wake(u32::MAX);
        }
    }
}

#[pymethods]
impl Completions {
    #[new]
    fn new() -> Self {
        Self { ended: Mutex::default(), bell: WaitWord::new(0) }
    }

    fn __call__(&self, future: Py<PyAny>) {
        self.add(future);
    }

    /// Return a future that has ended, or None after `timeout` seconds without one.
    #[pyo3(signature = (timeout))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        // In a variable: the guard must not live as long as the wait.
        let found = self.ended().pop_front();
        if found.is_some() {
            return Ok(found);
        }
        waiting::wait(py, Deadline::after(timeout)?, |slice| {
            let ticket = low(self.bell.peek());
            if self.ended().is_empty() {
                self.bell.wait(ticket, Some(slice));
            }
            !self.ended().is_empty()
        })?;
        Ok(self.ended().pop_front())
    }
}
