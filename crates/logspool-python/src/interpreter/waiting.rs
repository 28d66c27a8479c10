//! Waits detached from the interpreter, for a limited time, and runs signal handlers between the waits.

use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use crate::interpreter::leaving;

/// Maximum length of a single wait for queued records.
///
/// Chosen: users do not notice a delay of a tenth of a second after Ctrl-C, and ten wake-ups a second cost nothing.
pub const SHARE: Duration = Duration::from_millis(100);

/// Maximum length of a single wait. Chosen: a signal may arrive after the check for signals and before the wait. It is
/// then noticed within this time. One wake-up a second costs nothing.
const SLICE: Duration = Duration::from_secs(1);

/// The time at which a wait ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The wait has no time limit.
    None,
    /// The wait ends at this instant.
    At(Instant),
}

impl Deadline {
    /// The deadline of a `timeout` in seconds, with the meaning that it has in `threading`: `None` waits without limit,
    /// and zero or a negative value does not wait.
    ///
    /// # Errors
    ///
    /// `ValueError` for NaN, `OverflowError` for a value that no clock can represent.
    pub fn after(timeout: Option<f64>) -> PyResult<Self> {
        let Some(seconds) = timeout else { return Ok(Self::None) };
        if seconds.is_nan() {
            return Err(PyValueError::new_err("timeout is not a number"));
        }
        Duration::try_from_secs_f64(seconds.max(0.0))
            .ok()
            .and_then(|timeout| Instant::now().checked_add(timeout))
            .map(Self::At)
            .ok_or_else(|| PyOverflowError::new_err("timeout value is too large"))
    }

    /// The deadline of a timeout that begins now; `None` waits without limit.
    pub fn within(timeout: Option<Duration>) -> Self {
        timeout.and_then(|timeout| Instant::now().checked_add(timeout)).map_or(Self::None, Self::At)
    }

    /// The length of the next single wait; `None` if the deadline has passed.
    pub fn slice(self) -> Option<Duration> {
        match self {
            Self::None => Some(SLICE),
            Self::At(moment) => {
                let left = moment.saturating_duration_since(Instant::now());
                (!left.is_zero()).then(|| left.min(SLICE))
            }
        }
    }
}

/// Calls `step` with the length of a single wait, until `step` returns true or the deadline passes. Returns `Ok(false)`
/// if the deadline passed.
///
/// # Errors
///
/// The error that a signal handler raised.
pub fn wait(py: Python<'_>, deadline: Deadline, mut step: impl FnMut(Duration) -> bool + Send) -> PyResult<bool> {
    while let Some(slice) = deadline.slice() {
        if leaving::detached(py, || step(slice)) {
            return Ok(true);
        }
        if !leaving::signals_pass(py) {
            return Err(PyErr::fetch(py));
        }
    }
    Ok(false)
}
