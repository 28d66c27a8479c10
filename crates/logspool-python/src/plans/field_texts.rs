//! How the text of an extra field is made that the collector cannot render: a list, a date, an object of the program.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Most formats show `str(value)`. A known JSON formatter shows what
//! its encoder returns; `python/logspool/adoption/known` passes that function with the description of the formatter.

use std::sync::{Mutex, PoisonError};

use logspool_record::tag;
use pyo3::prelude::*;

use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{Object, Owned};

/// The way to make the text of such a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FieldTexts {
    /// `str(value)`.
    #[default]
    Str,
    /// The result of an encoder, a function that takes the value and returns JSON text.
    Encoded(EncoderId),
    /// The formats of the route use different ways, so the record takes the stock path.
    Mixed,
}

/// The number of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EncoderId(usize);

/// All encoders, each once. Encoders are never freed, because the needs of formats refer to them.
static ENCODERS: Mutex<Vec<Owned>> = Mutex::new(Vec::new());

/// Maximum number of encoders.
///
/// Chosen: `python/logspool/adoption/known` returns the same encoder for equal options, and programs have one or two. A
/// program that keeps making formatters with new functions must not fill the memory.
const MAX_ENCODERS: usize = 64;

impl EncoderId {
    /// The number of an encoder; `None` if there are too many.
    pub fn of(encoder: &Bound<'_, PyAny>) -> Option<Self> {
        let mut encoders = ENCODERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = encoders.iter().position(|known| known.as_ptr() == encoder.as_ptr()) {
            return Some(Self(known));
        }
        if encoders.len() == MAX_ENCODERS {
            return None;
        }
        encoders.push(Owned::of(encoder));
        Some(Self(encoders.len() - 1))
    }

    fn encoder(self, py: Python<'_>) -> Option<Owned> {
        let encoders = ENCODERS.lock().unwrap_or_else(PoisonError::into_inner);
        encoders.get(self.0).map(|encoder| encoder.clone_ref(py))
    }
}

impl FieldTexts {
    /// The way of two formats together.
    pub fn merged(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }

    /// Makes the text of a value; returns it with its tag, or `None` with an exception set. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The formats of the route show different texts, or the encoder is gone.
    pub fn make(self, value: Object<'_, '_>) -> Result<(u8, Option<Owned>), Failure> {
        let py = value.py();
        match self {
            Self::Str => Ok((tag::STR, leaving::str(value))),
            Self::Encoded(id) => {
                let encoder = id.encoder(py).ok_or(Failure::Stock)?;
                Ok((tag::RENDERED, leaving::call_with(encoder.bind(py), value)))
            }
            Self::Mixed => Err(Failure::Stock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_with_different_ways_are_mixed() {
        let encoded = FieldTexts::Encoded(EncoderId(0));

        assert_eq!(encoded, encoded.merged(encoded));
        assert_eq!(FieldTexts::Mixed, encoded.merged(FieldTexts::Str));
        assert_eq!(FieldTexts::Mixed, FieldTexts::Mixed.merged(FieldTexts::Str));
    }
}
