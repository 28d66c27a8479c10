//! Converts option values between Python and the core's option rows.

use logspool::option::{OptionDefault, OptionError, OptionRange, OptionRow, OptionShape, OptionValue};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

/// Reads the options in a dict. The core checks the values; this function only converts their types.
///
/// # Errors
///
/// `TypeError` for a value of a type that no option accepts.
pub fn given(rows: &[OptionRow], options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, OptionValue)>> {
    let one = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let value = match rows.iter().find(|row| row.name == name) {
            Some(row) => read(row, &value)?,
            // The core rejects the unknown option by its name.
            None => OptionValue::Nothing,
        };
        Ok((name, value))
    };
    options.iter().map(one).collect()
}

fn read(row: &OptionRow, value: &Bound<'_, PyAny>) -> PyResult<OptionValue> {
    let is_bool = value.is_instance_of::<PyBool>();
    // In Python, `True` is also an `int`.
    let is_int = value.is_instance_of::<PyInt>() && !is_bool;
    let is_text = value.is_instance_of::<PyString>();
    Ok(match row.shape {
        _ if value.is_none() && row.is_optional => OptionValue::Nothing,
        OptionShape::Switch if is_bool => OptionValue::Switch(value.extract()?),
        OptionShape::Whole if is_int => match value.extract() {
            Ok(number) => OptionValue::Whole(number),
            Err(_) => return Err(PyValueError::new_err(format!("{} cannot be {}", row.name, value.repr()?))),
        },
        OptionShape::Seconds if is_int || value.is_instance_of::<PyFloat>() => OptionValue::Seconds(value.extract()?),
        OptionShape::Text | OptionShape::Choice(_) if is_text => OptionValue::Text(value.extract()?),
        OptionShape::Path if is_text => OptionValue::Path(value.extract()?),
        OptionShape::Levels if value.is_instance_of::<PyList>() => OptionValue::Levels(value.extract()?),
        OptionShape::Texts if value.is_instance_of::<PyList>() => OptionValue::Texts(value.extract()?),
        shape => {
            // Quotes a text in the same way as the core does.
            let shown = match value.extract::<String>() {
                Ok(text) => format!("{text:?}"),
                Err(_) => value.repr()?.to_string(),
            };
            return Err(match shape {
                OptionShape::Switch => PyTypeError::new_err(format!("{} must be True or False, not {shown}", row.name)),
                _ => refused(row.wrong_type(&shown)),
            });
        }
    })
}

/// Converts an option value to its Python object.
///
/// # Errors
///
/// There is not enough memory.
pub fn shown<'py>(py: Python<'py>, value: OptionValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        OptionValue::Nothing => py.None().into_bound(py),
        OptionValue::Switch(value) => PyBool::new(py, value).to_owned().into_any(),
        OptionValue::Whole(value) => value.into_pyobject(py)?.into_any(),
        OptionValue::Seconds(value) => PyFloat::new(py, value).into_any(),
        OptionValue::Text(value) => PyString::new(py, &value).into_any(),
        OptionValue::Path(value) => value.as_os_str().into_pyobject(py)?.into_any(),
        OptionValue::Levels(value) => PyList::new(py, value)?.into_any(),
        OptionValue::Texts(value) => PyList::new(py, value)?.into_any(),
    })
}

/// Makes the Python exception for an option that the core rejected.
pub fn refused(error: OptionError) -> PyErr {
    let text = error.to_string();
    match error {
        OptionError::Unknown(_) | OptionError::Missing(_) | OptionError::Type(_) => PyTypeError::new_err(text),
        OptionError::Kind(_) | OptionError::Value(_) => PyValueError::new_err(text),
    }
}

/// Converts option rows to dicts.
///
/// # Errors
///
/// There is not enough memory.
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
            OptionShape::Texts => ("texts", &[]),
            OptionShape::Choice(words) => ("choice", words),
        };
        dict.set_item("shape", shape)?;
        dict.set_item("choices", choices)?;
        dict.set_item("optional", row.is_optional)?;
        dict.set_item("required", row.default == OptionDefault::Required)?;
        dict.set_item("default", shown(py, row.default_value().unwrap_or(OptionValue::Nothing))?)?;
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

/// Joins the lines of a doc text into one line.
pub fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
