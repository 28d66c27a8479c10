//! Passes the options of `install()` to the core, and keeps the one timeout that the bindings use.
//!
//! `python/logspool/_options.py` checks the values; here only their types change.
//!
//! Atomics outside `queue`: written at install, read by barriers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use logspool::pipeline::{self, Durability, Fallback, Options, OptionsError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest wait of a barrier, in milliseconds.
///
/// Chosen: the default of `install()`; handlers that work without `install()` use it.
static SHUTDOWN_TIMEOUT_MS: AtomicU64 = AtomicU64::new(5000);

/// Longest wait of a barrier.
pub fn shutdown_timeout() -> Duration {
    Duration::from_millis(SHUTDOWN_TIMEOUT_MS.load(Relaxed))
}

/// Largest finite timeout; `inf` becomes this.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The duration of a timeout in seconds; zero and less become zero.
///
/// # Errors
///
/// `ValueError` for NaN.
pub fn timeout(seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("timeout is not a number"));
    }
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).map_or(FOR_EVER, |timeout| timeout.min(FOR_EVER)))
}

fn named(durability: &str) -> PyResult<Durability> {
    Ok(match durability {
        "memory" => Durability::Memory,
        "process" => Durability::Process,
        "interval" => Durability::Interval,
        "checkpoint" => Durability::Checkpoint,
        "sync" => Durability::Sync,
        _ => return Err(PyValueError::new_err(format!("there is no durability {durability:?}"))),
    })
}

/// Passes the options to the core.
///
/// # Errors
///
/// The core rejects a value.
pub fn configure(values: &Bound<'_, PyDict>) -> PyResult<()> {
    let get = |name: &str| -> PyResult<Bound<'_, PyAny>> {
        values.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("option {name} is missing")))
    };
    let durability: String = get("durability")?.extract()?;
    let fallback: Option<String> = get("fallback")?.extract()?;
    let shutdown_timeout = timeout(get("shutdown_timeout")?.extract()?)?;
    let options = Options {
        durability: named(&durability)?,
        queue_bytes: get("queue_bytes")?.extract()?,
        queue_total_bytes: get("queue_total_bytes")?.extract()?,
        queue_dir: get("queue_dir")?.extract::<Option<PathBuf>>()?,
        blocking_timeout: timeout(get("blocking_timeout")?.extract()?)?,
        blocking_levels: get("blocking_levels")?.extract()?,
        overflow_bytes: None,
        spool_dir: get("spool_dir")?.extract::<Option<PathBuf>>()?,
        spool_bytes: get("spool_bytes")?.extract()?,
        shutdown_timeout,
        sync_interval: timeout(get("sync_interval")?.extract()?)?,
        checkpoint_every: get("checkpoint_every")?.extract()?,
        durability_timeout: timeout(get("durability_timeout")?.extract()?)?,
        durable_levels: get("durable_levels")?.extract()?,
        fallback: if fallback.is_some() { Fallback::Stderr } else { Fallback::None },
    };
    pipeline::configure(options).map_err(|error| match error {
        OptionsError::Range(text) => PyValueError::new_err(text),
        OptionsError::InUse(text) => PyRuntimeError::new_err(text),
    })?;
    SHUTDOWN_TIMEOUT_MS.store(u64::try_from(shutdown_timeout.as_millis()).unwrap_or(u64::MAX), Relaxed);
    Ok(())
}
