//! The values of a logging call from which the thread of deferred formatters makes the record.
//!
//! Pipeline stage: between *capture* and *queue* (see ARCHITECTURE.md). A call keeps its values in less than half of the
//! time in which it makes a record. A queued record then also takes less memory.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::calls::log_record::{self, CallMoment, RecordValues};
use crate::calls::record_template::RecordTemplate;
use crate::calls::site::Site;
use crate::interpreter::failure::Failure;
use crate::interpreter::object::Owned;
use crate::plans::callbacks::record_class;
use crate::plans::logging_globals::LoggingGlobals;

/// A record that is not made yet: the values of its call, none of which the program can change. The call has neither
/// exception nor stack nor fields of its own.
#[pyclass(frozen, module = "logspool._native")]
pub struct UnmadeRecord {
    template: Arc<RecordTemplate>,
    moment: CallMoment,
    name: Owned,
    levelno: Owned,
    msg: Owned,
    args: Owned,
}

impl UnmadeRecord {
    /// Keeps the values of the running call.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if only stock logging can make the record.
    pub fn of(
        py: Python<'_>,
        class: &Py<PyAny>,
        site: &Site,
        globals: &LoggingGlobals,
        values: &RecordValues<'_, '_>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            template: log_record::template_of(py, class, site)?.clone(),
            moment: CallMoment::now(py, globals, values.levelno)?,
            name: Owned::of(&values.name),
            levelno: Owned::of(&values.levelno),
            msg: Owned::of(&values.msg),
            args: log_record::arguments(py, values.args)?,
        })
    }

    fn record(&self, py: Python<'_>) -> Result<Owned, Failure> {
        let values = RecordValues {
            name: self.name.bind(py),
            levelno: self.levelno.bind(py),
            msg: self.msg.bind(py),
            args: &[],
            exc_info: None,
            stack_info: None,
            extra: None,
        };
        let (attributes, _) = self.moment.attributes(py, &self.template, &values, self.args.bind(py))?;
        log_record::with_attributes(record_class().ok_or(Failure::Stock)?, &attributes)
    }
}

#[pymethods]
impl UnmadeRecord {
    /// The level.
    #[getter]
    fn levelno(&self, py: Python<'_>) -> Py<PyAny> {
        self.levelno.bind(py).to_owned().unbind()
    }

    /// Make the record, as the call would have made it.
    fn make(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.record(py) {
            Ok(record) => Ok(record.bind(py).to_owned().unbind()),
            Err(_) => Err(PyErr::take(py).unwrap_or_else(|| pyo3::exceptions::PyMemoryError::new_err(()))),
        }
    }
}
