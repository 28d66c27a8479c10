//! Arguments whose errors name them. PyO3 puts the name of an argument into a note, which errors of Python 3.10 do not
//! have.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::results::Results;

/// Reads `timeout`: seconds, or None.
pub fn timeout(value: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    value.extract().map_err(|error| named("timeout", "a number of seconds or None", value, error))
}

/// Reads `results`: a `Results`, or None.
pub fn results(value: &Bound<'_, PyAny>) -> PyResult<Option<Py<Results>>> {
    let read: Result<Option<Py<Results>>, _> = value.extract();
    read.map_err(|error| named("results", "a Results or None", value, error.into()))
}

/// Reads `value`: a number of permits.
pub fn value(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().map_err(|error| named("value", "a whole number", value, error))
}

/// The error for a value of another type than what was expected; other errors stay as they are.
fn named(name: &str, expected: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(value.py()) {
        return error;
    }
    let kind = value.get_type().name().map_or_else(|_| "another type".to_owned(), |kind| kind.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, not {kind}"))
}
