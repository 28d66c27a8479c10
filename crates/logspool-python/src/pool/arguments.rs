//! Arguments whose errors name them. PyO3 puts the name of an argument into a note, which errors of Python 3.10 do not
//! have.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

const SECONDS_OR_NONE: &str = "a number of seconds or None";

/// Reads `timeout`: seconds, or None. Zero and less do not wait, as in the standard library.
pub fn timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let read: Option<f64> = value.extract().map_err(|error| named("timeout", SECONDS_OR_NONE, value, error))?;
    if read.is_some_and(f64::is_nan) {
        return Err(PyValueError::new_err(format!("timeout must be {SECONDS_OR_NONE}, not nan")));
    }
    Ok(read)
}

/// Reads `timeout` of a method that the standard library does not have: 0 or more seconds, or None.
pub fn positive_timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let read = timeout(value)?;
    if read.is_some_and(|seconds| seconds < 0.0) {
        let shown = shown(value);
        return Err(PyValueError::new_err(format!("timeout must be 0 or more seconds, or None, not {shown}")));
    }
    Ok(read)
}

/// Reads seconds under their own name.
pub fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|error| named(name, "a number of seconds", value, error))
}

/// Reads `blocking`: whatever is true, as `threading` takes it.
pub fn blocking(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_truthy()
}

/// Reads `maxsize`, a whole number.
pub fn maxsize(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error| named("maxsize", "a whole number", value, error))
}

/// Reads `n`, a whole number.
pub fn n(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error| named("n", "a whole number", value, error))
}

/// Checks what a pool is to call.
///
/// # Errors
///
/// `TypeError` for what cannot be called.
pub fn check_callable(method: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
    if function.is_callable() {
        return Ok(());
    }
    let shown = shown(function);
    Err(PyTypeError::new_err(format!(
        "{method}() needs a function, not {shown}: give it uncalled, its arguments after it"
    )))
}

/// Reads `value`: a number of permits.
pub fn value(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error| named("value", "a whole number", value, error))
}

/// The error for a value of another type than what was expected; other errors stay as they are.
pub fn named(name: &str, expected: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(value.py()) {
        return error;
    }
    PyTypeError::new_err(format!("{name} must be {expected}, not {}", shown(value)))
}

/// The value as Python shows it; its type where that fails.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let kind = || value.get_type().name().map_or_else(|_| "another type".to_owned(), |kind| kind.to_string());
    value.repr().map_or_else(|_| kind(), |text| text.to_string())
}
