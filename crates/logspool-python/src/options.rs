//! Passes the options of `install()` to the core, which checks them, and reads the timeouts of other functions.

use std::time::Duration;

use logspool::option::{FOR_EVER, OptionTable, ordered};
use logspool::pipeline::{self, Options, OptionsError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::calls::rules;
use crate::option_values::{given, refused, rows, shown};

/// Converts a timeout in seconds to a duration; negative values become zero.
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

/// Returns the rows of the options of `install()`, as dicts.
///
/// # Errors
///
/// There is not enough memory.
pub fn table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    rows(py, Options::ROWS)
}

/// Checks the options that were given, and adds the defaults of the other options.
///
/// # Errors
///
/// `TypeError` and `ValueError`; their texts say which values are allowed.
pub fn checked<'py>(values: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let options = read(values)?;
    options.validate().map_err(exception)?;
    rules::check(&options).map_err(PyValueError::new_err)?;
    let dict = PyDict::new(values.py());
    for (row, value) in Options::ROWS.iter().zip(options.values()) {
        dict.set_item(row.name, shown(values.py(), value)?)?;
    }
    Ok(dict)
}

/// Passes the options to the core.
///
/// # Errors
///
/// The core rejects a value.
pub fn configure(values: &Bound<'_, PyDict>) -> PyResult<()> {
    let options = read(values)?;
    let rules = options.clone();
    pipeline::configure(options).map_err(exception)?;
    rules::set(values.py(), &rules)
}

fn read(values: &Bound<'_, PyDict>) -> PyResult<Options> {
    let ordered = ordered("install()", Options::ROWS, given(Options::ROWS, values)?).map_err(refused)?;
    Options::from_values(&ordered).map_err(refused)
}

fn exception(error: OptionsError) -> PyErr {
    match error {
        OptionsError::Range(text) => PyValueError::new_err(text),
        OptionsError::InUse(text) => PyRuntimeError::new_err(text),
    }
}
