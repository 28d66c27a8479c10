//! The fields of the current span, as a record factory of a tracing library sets them.

use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Owned};
use crate::interpreter::{context_variable, dict};

/// Where the current span is found, and how its fields are read.
pub struct SpanFields {
    /// The context variable whose value is a dict.
    variable: Owned,
    /// The key of the span in this dict.
    key: Owned,
    /// A tuple of the values in a context without a span.
    without: Owned,
    /// A function that returns the tuple of a span's values, which never change; or None if they could.
    of_span: Owned,
    /// The span that was read last, with its values.
    last: Mutex<Option<(Owned, Owned)>>,
}

impl SpanFields {
    /// Reads the items 1 to 4 of a description: context variable, key, values without a span, function.
    ///
    /// # Errors
    ///
    /// The error that Python raised.
    pub fn read(described: &Bound<'_, PyAny>) -> PyResult<Self> {
        let item = |index: usize| PyResult::Ok(Owned::of(&described.get_item(index)?));
        Ok(Self { variable: item(1)?, key: item(2)?, without: item(3)?, of_span: item(4)?, last: Mutex::new(None) })
    }

    /// True if both read the same context variable for the same factory.
    pub fn is_same(&self, other: &Self) -> bool {
        let parts = |fields: &Self| [&fields.variable, &fields.key].map(Owned::as_ptr);
        parts(self) == parts(other) && self.of_span.as_ptr() == other.of_span.as_ptr()
    }

    /// The value with this index in the current context.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if the values cannot be read.
    pub fn value(&self, py: Python<'_>, index: usize) -> Result<Owned, Failure> {
        let context = context_variable::value(py, &self.variable, None)?;
        // SAFETY: a live object of an attached thread; only the flags of its type are read.
        if unsafe { ffi::PyDict_Check(context.as_ptr()) } == 0 {
            return Err(Failure::Stock);
        }
        let values = match dict::get(context.bind(py), &self.key) {
            Some(span) => self.of_span(py, span)?,
            None => self.without.clone_ref(py),
        };
        let values =
            object::tuple_items(values.bind(py)).and_then(|values| values.get(index).map(|value| Owned::of(value)));
        values.ok_or(Failure::Stock)
    }

    /// The values of a span. The four fields of a record ask for the same span, one after the other.
    fn of_span(&self, py: Python<'_>, span: Owned) -> Result<Owned, Failure> {
        {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((known, values)) = &*last
                && known.as_ptr() == span.as_ptr()
            {
                return Ok(values.clone_ref(py));
            }
        }
        let values = leaving::call_with(self.of_span.bind(py), span.bind(py)).ok_or_else(|| Failure::of_error(py))?;
        if values.bind(py).is_none() {
            return Err(Failure::Stock);
        }
        let replaced = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace((span, values.clone_ref(py)));
        drop(replaced);
        Ok(values)
    }
}
