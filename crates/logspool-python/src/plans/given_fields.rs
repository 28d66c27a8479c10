//! Fields that known filters and record factories set on every record, read without a record from the context of the
//! call.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). `python/logspool/adoption/known` describes the filters and
//! factories.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::interpreter::context_variable;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::names::interned;
use crate::interpreter::object::{self, Owned};
use crate::plans::span_fields::SpanFields;

/// A field whose value depends on the context of the call.
pub struct GivenField {
    /// The name of the field, an interned `str`.
    name: Owned,
    value: ContextValue,
}

/// How the value of a field is found.
enum ContextValue {
    /// The value of a context variable.
    Variable {
        variable: Owned,
        /// The value in a context that has none.
        default: Owned,
        /// The number of characters that are shown; `None` if all are.
        length: Option<isize>,
    },
    /// The value with this index of those that the current span has.
    OfSpan(usize, Arc<SpanFields>),
    /// The value with this index of those that a function returns for the current call.
    OfCall(usize, Arc<Owned>),
}

/// The values that a function returned for one record.
#[derive(Default)]
pub struct ReadValues(Option<(usize, Owned)>);

impl ReadValues {
    /// The values of `read` for the record.
    fn of(&mut self, py: Python<'_>, read: &Owned) -> Result<&Owned, Failure> {
        let address = read.as_ptr() as usize;
        if self.0.as_ref().is_none_or(|(known, _)| *known != address) {
            let values = leaving::call(read.bind(py)).ok_or_else(|| Failure::of_error(py))?;
            self.0 = Some((address, values));
        }
        self.0.as_ref().map(|(_, values)| values).ok_or(Failure::Stock)
    }
}

/// The fields of one logger, in the order of its filters.
pub struct GivenFields(Vec<GivenField>);

/// All sets of fields, each once. Sets are never freed, because routes refer to them.
static STORED: Mutex<Vec<&'static GivenFields>> = Mutex::new(Vec::new());

/// Maximum number of sets. Chosen: programs have one or two. A program that keeps making filters must not fill the
/// memory.
const MAX_SETS: usize = 64;

impl GivenField {
    /// Reads the description of a filter: name, context variable, default and length.
    ///
    /// # Errors
    ///
    /// The error that Python raised.
    pub fn read(described: &Bound<'_, PyAny>) -> PyResult<Self> {
        let item = |index: usize| described.get_item(index);
        Ok(Self {
            name: interned(&item(0)?)?,
            value: ContextValue::Variable {
                variable: Owned::of(&item(1)?),
                default: Owned::of(&item(2)?),
                length: item(3)?.extract()?,
            },
        })
    }

    /// Reads the description of a record factory: names, context variable, key of the span, values without a span and
    /// the function that returns those of a span.
    ///
    /// # Errors
    ///
    /// The error that Python raised.
    pub fn of_span(described: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let fields = Arc::new(SpanFields::read(described)?);
        let name = |(index, name): (usize, PyResult<Bound<'_, PyAny>>)| {
            Ok(Self { name: interned(&name?)?, value: ContextValue::OfSpan(index, fields.clone()) })
        };
        described.get_item(0)?.try_iter()?.enumerate().map(name).collect()
    }

    /// Reads the description of a wrapper of `makeRecord`: names, and the function that returns their values.
    ///
    /// # Errors
    ///
    /// The error that Python raised.
    pub fn of_call(described: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let read = Arc::new(Owned::of(&described.get_item(1)?));
        let name = |(index, name): (usize, PyResult<Bound<'_, PyAny>>)| {
            Ok(Self { name: interned(&name?)?, value: ContextValue::OfCall(index, read.clone()) })
        };
        described.get_item(0)?.try_iter()?.enumerate().map(name).collect()
    }

    /// The name of the field.
    pub fn name(&self) -> &Owned {
        &self.name
    }

    /// True if both have the same value in each context.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name.as_ptr() == other.name.as_ptr()
            && match (&self.value, &other.value) {
                (
                    ContextValue::Variable { variable, default, length },
                    ContextValue::Variable { variable: of_other, default: other_default, length: other_length },
                ) => {
                    variable.as_ptr() == of_other.as_ptr()
                        && default.as_ptr() == other_default.as_ptr()
                        && length == other_length
                }
                (ContextValue::OfSpan(index, fields), ContextValue::OfSpan(other, of_other)) => {
                    index == other && fields.is_same(of_other)
                }
                (ContextValue::OfCall(index, read), ContextValue::OfCall(other, of_other)) => {
                    index == other && read.as_ptr() == of_other.as_ptr()
                }
                _ => false,
            }
    }

    /// The value in the current context; `read` keeps values for the other fields of the record. Runs user Python code
    /// only for a span that was not seen before, and for the function of a wrapper.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] for a value that has to be shortened and is neither a `str` nor None, and if the values of a
    /// span or of a wrapper cannot be read.
    pub fn value(&self, py: Python<'_>, read: &mut ReadValues) -> Result<Owned, Failure> {
        let (variable, default, length) = match &self.value {
            ContextValue::Variable { variable, default, length } => (variable, default, length),
            ContextValue::OfSpan(index, fields) => return fields.value(py, *index),
            ContextValue::OfCall(index, function) => {
                let values = object::tuple_items(read.of(py, function)?.bind(py));
                return values
                    .and_then(|values| values.get(*index))
                    .map(|value| Owned::of(value))
                    .ok_or(Failure::Stock);
            }
        };
        let value = context_variable::value(py, variable, Some(default))?;
        let Some(length) = length.filter(|_| !value.bind(py).is_none()) else { return Ok(value) };
        if !object::is_exact_str(value.bind(py)) {
            return Err(Failure::Stock);
        }
        // SAFETY: a live `str`; the result is a new reference, or null with an error set.
        let shown = unsafe { Owned::steal(ffi::PyUnicode_Substring(value.as_ptr(), 0, length)) };
        shown.ok_or_else(|| Failure::of_error(py))
    }
}

impl GivenFields {
    /// The stored set of these fields; `None` if there are too many sets.
    pub fn stored(fields: Vec<GivenField>) -> Option<&'static Self> {
        let mut stored = STORED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = stored.iter().find(|known| same(&known.0, &fields)) {
            return Some(known);
        }
        if stored.len() == MAX_SETS {
            return None;
        }
        let made: &'static Self = Box::leak(Box::new(Self(fields)));
        stored.push(made);
        Some(made)
    }

    /// The fields.
    pub fn iter(&self) -> impl Iterator<Item = &GivenField> {
        self.0.iter()
    }
}

impl std::fmt::Debug for GivenFields {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GivenFields").field("count", &self.0.len()).finish()
    }
}

impl PartialEq for GivenFields {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

impl Eq for GivenFields {}

/// True if both lists have the same fields in the same order.
pub fn same(one: &[GivenField], other: &[GivenField]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_same(other))
}
