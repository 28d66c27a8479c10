//! Gives Python access to the core's table of sinks.

use logspool::option::OptionValue;
use logspool::sinks::{self, SinkInput, SinkRow, TABLE};
use logspool_record::definition::Descriptor;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::option_values::{self, refused, rows, unwrapped};

/// Reads the options of a sink from a dict.
///
/// # Errors
///
/// `ValueError` if there is no such sink, `TypeError` for a value that no option takes.
pub fn given(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Vec<(String, OptionValue)>> {
    option_values::given(sinks::row(kind).map_err(refused)?.options, options)
}

/// Checks the options of a sink. Returns the sink's name as statistics show it.
///
/// # Errors
///
/// `ValueError` and `TypeError` with a message that names the allowed values; `OSError` if the sink cannot work here.
pub fn check(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<String> {
    let definition = sinks::define(kind, given(kind, options)?, Descriptor::Open).map_err(refused)?;
    sinks::check(&definition)?;
    Ok(definition.name)
}

/// The table of sinks, as a list of dicts.
///
/// # Errors
///
/// `MemoryError` if there is no memory.
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
