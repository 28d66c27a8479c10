//! Functions that read arguments and whose errors name the argument. PyO3 puts the argument's name into a note of the
//! exception, but exceptions of Python 3.10 have no notes.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

const SECONDS_OR_NONE: &str = "a number of seconds or None";

/// Reads `timeout`: seconds, or None. As in the standard library, 0 and negative values mean not to wait.
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

/// Reads an argument in seconds, called `name`.
pub fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract().map_err(|error| named(name, "a number of seconds", value, error))
}

/// Reads `blocking`: the truth of any object, as in `threading`.
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

/// Checks that the function given to a pool can be called.
///
/// # Errors
///
/// `TypeError` if it cannot.
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

/// Replaces a `TypeError` about an argument by an error that names the argument. Returns other errors unchanged.
pub fn named(name: &str, expected: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(value.py()) {
        return error;
    }
    PyTypeError::new_err(format!("{name} must be {expected}, not {}", shown(value)))
}

/// The `repr` of the value, or the name of its type if `repr` fails.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let kind = || value.get_type().name().map_or_else(|_| "another type".to_owned(), |kind| kind.to_string());
    value.repr().map_or_else(|_| kind(), |text| text.to_string())
}
