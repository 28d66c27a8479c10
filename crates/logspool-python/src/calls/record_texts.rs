//! The texts of a record's exception and stack, which stock formatters append to the line.
//!
//! Pipeline stage: *capture*, on the stock path (see ARCHITECTURE.md).

use logspool_record::tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::calls::attribute::Attribute;
use crate::calls::keywords::{self, ExceptionText};
use crate::calls::message;
use crate::calls::pieces::Pieces;
use crate::calls::record_attributes::RecordAttributes;
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Object, Owned};
use crate::plans::format_parts::FormatterTexts;

/// What `Formatter.format` appends to the line of a record.
pub struct AppendedParts {
    /// `record.exc_info`, if the text of the exception has to be made from it.
    exc_info: Option<Owned>,
    exception: Option<ExceptionText>,
    stack: Option<Owned>,
}

impl AppendedParts {
    /// Reads the attributes of a record.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if an attribute is missing, or has a value that only a formatter can treat.
    pub fn of(attributes: &RecordAttributes<'_, '_>) -> Result<Self, Failure> {
        let py = attributes.own.py();
        let text = |attribute| {
            let found = attributes.get(attribute)?;
            if found.bind(py).is_none() {
                return Ok(None);
            }
            if !object::is_exact_str(found.bind(py)) {
                return Err(Failure::Stock);
            }
            let is_empty = object::utf8(found.bind(py)).is_some_and(<[u8]>::is_empty);
            Ok(if is_empty { None } else { Some(found) })
        };
        let (made, stack) = (text(Attribute::ExceptionText)?, text(Attribute::Stack)?);
        let exc_info = attributes.get(Attribute::Exception)?;
        let has_exception = match object::tuple_items(exc_info.bind(py)) {
            Some(parts) => !parts.is_empty(),
            None if exc_info.bind(py).is_none() => false,
            // Any other value than `False` is an error of the program, which a formatter reports.
            None => exc_info.bind(py).cast_exact::<PyBool>().map_err(|_| Failure::Stock)?.is_true(),
        };
        let exc_info = if has_exception && made.is_none() { Some(exc_info) } else { None };
        Ok(Self { exc_info, exception: made.map(ExceptionText::Python), stack })
    }

    /// True if the record has neither an exception nor a stack.
    pub fn are_none(&self) -> bool {
        self.exc_info.is_none() && self.exception.is_none() && self.stack.is_none()
    }

    /// True if one of these methods of the formatter has to make a text.
    pub fn are_made_by(&self, methods: FormatterTexts) -> bool {
        methods.exception && self.exc_info.is_some() || methods.stack && self.stack.is_some()
    }

    /// Makes the text of the exception, and sets it on a record that other code will see. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The code that makes the text raised an exception.
    pub fn make(&mut self, py: Python<'_>, seen: Option<Object<'_, '_>>) -> Result<(), Failure> {
        let Some(exc_info) = self.exc_info.take() else { return Ok(()) };
        let exc_info = exc_info.bind(py);
        if object::tuple_items(exc_info).is_none() {
            return Err(Failure::Stock);
        }
        let mut text = keywords::exception_text(exc_info)?;
        if let Some(record) = seen {
            let made = text.into_str(py)?;
            // SAFETY: live objects, and the thread is attached. The record's class has the stock `__setattr__`.
            if unsafe { ffi::PyObject_SetAttr(record.as_ptr(), names().exc_text.as_ptr(), made.as_ptr()) } < 0 {
                return Err(Failure::of_error(py));
            }
            text = ExceptionText::Python(made);
        }
        self.exception = Some(text);
        Ok(())
    }

    /// Adds the texts to the values of the record.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] for text that cannot be encoded.
    pub fn add(self, py: Python<'_>, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        if let Some(stack) = self.stack {
            message::add_owned(py, pieces, tag::STACK, Some(stack))?;
        }
        match self.exception {
            Some(text) => text.add(py, pieces),
            None => Ok(()),
        }
    }
}
