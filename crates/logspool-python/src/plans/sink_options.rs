//! Options of sinks between Python and the core's table of sinks.

use logspool::option::{OptionDefault, OptionError, OptionRange, OptionRow, OptionShape};
use logspool::sinks::{self, SinkInput, SinkRow, TABLE};
use logspool_record::definition::{Descriptor, OptionValue};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// The options in a dict.
///
/// # Errors
///
/// `TypeError` for a value that no option takes.
pub fn option_values(options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, OptionValue)>> {
    options.iter().map(|(name, value)| Ok((name.extract()?, read(&name.extract::<String>()?, &value)?))).collect()
}

fn read(name: &str, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    if value.is_none() {
        return Ok(OptionValue::Nothing);
    }
    // Checked before the numbers, because `True` is an int.
    if value.is_instance_of::<PyBool>() {
        return Ok(OptionValue::Switch(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(OptionValue::Whole(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(OptionValue::Text(value.extract()?));
    }
    Err(PyTypeError::new_err(format!("{name} cannot be {}", value.repr()?)))
}

/// The exception for options that were refused.
pub fn refused(error: OptionError) -> PyErr {
    let text = error.to_string();
    match error {
        OptionError::Unknown(_) | OptionError::Missing(_) | OptionError::Type(_) => PyTypeError::new_err(text),
        OptionError::Kind(_) | OptionError::Value(_) => PyValueError::new_err(text),
    }
}

/// Checks the options of a sink. Returns its name, as statistics show it.
///
/// # Errors
///
/// `ValueError` and `TypeError` that say what is allowed.
pub fn check(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
    let definition = sinks::define(kind, option_values(options)?, Descriptor::Open).map_err(refused)?;
    Ok(definition.name)
}

/// The table of sinks, as dicts.
///
/// # Errors
///
/// Where there is no memory.
pub fn table(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, TABLE.iter().map(|row| sink(py, row)).collect::<PyResult<Vec<_>>>()?)
}

fn sink<'py>(py: Python<'py>, row: &SinkRow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("kind", row.kind)?;
    dict.set_item("about", unwrapped(row.about))?;
    dict.set_item("takes", if row.traits.takes == SinkInput::Lines { "lines" } else { "entries" })?;
    dict.set_item("options", rows(py, row.options)?)?;
    Ok(dict)
}

/// Rows of options, as dicts.
///
/// # Errors
///
/// Where there is no memory.
pub fn rows<'py>(py: Python<'py>, rows: &[OptionRow]) -> PyResult<Bound<'py, PyList>> {
    let options = rows.iter().map(|row| {
        let dict = PyDict::new(py);
        dict.set_item("name", row.name)?;
        let (shape, choices): (_, &[&str]) = match row.shape {
            OptionShape::Text => ("text", &[]),
            OptionShape::Path => ("path", &[]),
            OptionShape::Switch => ("switch", &[]),
            OptionShape::Whole => ("whole", &[]),
            OptionShape::Seconds => ("seconds", &[]),
            OptionShape::Levels => ("levels", &[]),
            OptionShape::Choice(words) => ("choice", words),
        };
        dict.set_item("shape", shape)?;
        dict.set_item("choices", choices)?;
        dict.set_item("required", row.default == OptionDefault::Required)?;
        match row.default {
            OptionDefault::Required | OptionDefault::Nothing => dict.set_item("default", py.None())?,
            OptionDefault::Switch(value) => dict.set_item("default", value)?,
            OptionDefault::Whole(value) => dict.set_item("default", value)?,
            OptionDefault::Seconds(value) => dict.set_item("default", PyFloat::new(py, value))?,
            OptionDefault::Text(value) => dict.set_item("default", value)?,
        }
        dict.set_item("unit", row.unit)?;
        match row.range {
            OptionRange::Any => dict.set_item("range", py.None())?,
            OptionRange::Whole(least, most) => dict.set_item("range", (least, most))?,
            OptionRange::Seconds(least, most) => dict.set_item("range", (least, most))?,
        }
        dict.set_item("meaning", unwrapped(row.meaning))?;
        Ok(dict)
    });
    PyList::new(py, options.collect::<PyResult<Vec<_>>>()?)
}

/// A text of doc lines in one line.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
