//! Extra fields that a format shows in nested objects, as `ecs_logging` does.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). A dot in the name of a field separates the keys of the objects, and a
//! field that is a dict is as many fields as it has values. The package raises for a record if the keys of a field lead
//! to a place that another value or another object has, so stock logging handles such a record.

use logspool_record::format::ArgumentKind;
use logspool_record::tag;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::calls::field_values;
use crate::calls::message;
use crate::calls::pieces::Pieces;
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::object::{self, Object};
use crate::plans::needs::{FieldNesting, ShownFields};

/// Maximum depth of a dict. Chosen: deeper dicts are rare, and a dict may contain itself.
const MAX_DEPTH: usize = 16;

/// The fields of one record.
pub struct NestedFields {
    shown: &'static ShownFields,
    /// The places of the other members of the line, each as the keys that lead to it.
    taken: &'static [Vec<String>],
    /// Names of fields that are left out, together with all fields below them.
    hidden: &'static [String],
    /// The names of the fields so far.
    added: Vec<String>,
}

impl NestedFields {
    /// `None` if the formats do not make nested objects of fields.
    pub fn of(shown: &'static ShownFields) -> Option<Self> {
        match shown.nesting() {
            FieldNesting::Nested { taken, hidden } => Some(Self { shown, taken, hidden, added: Vec::new() }),
            FieldNesting::Flat | FieldNesting::Mixed => None,
        }
    }

    /// Adds one field. May run user Python code.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] if the package raises for the field, or treats it in a way of its own.
    pub fn add<'a, 'py: 'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        key: Object<'a, 'py>,
        value: Object<'a, 'py>,
    ) -> Result<(), Failure> {
        let name = object::text(key).ok_or(Failure::Stock)?;
        // The package moves the fields of Elastic APM, and leaves out names that `dir(record)` has.
        if name.starts_with("elasticapm_") || name.starts_with("__") || name == "getMessage" {
            return Err(Failure::Stock);
        }
        self.add_at_depth(pieces, name.to_owned(), value, 0)
    }

    fn add_at_depth<'a, 'py: 'a>(
        &mut self,
        pieces: &mut Pieces<'a>,
        name: String,
        value: Object<'a, 'py>,
        depth: usize,
    ) -> Result<(), Failure> {
        if value.is_exact_instance_of::<PyDict>() {
            if depth == MAX_DEPTH {
                return Err(Failure::Stock);
            }
            // SAFETY: keys and values of the copy are used only in `pieces`.
            let items = unsafe { pieces.keep_and_lend(value.py(), dict::copy(value)?) };
            let mut walk = DictWalk::of(items);
            while let Some((key, value)) = walk.next() {
                let key = object::text(key).filter(|_| object::is_exact_str(key)).ok_or(Failure::Stock)?;
                self.add_at_depth(pieces, format!("{name}.{key}"), value, depth + 1)?;
            }
            return Ok(());
        }
        let is_there = |keys: &[String]| keys.iter().zip(name.split('.')).all(|(one, other)| one == other);
        let overlaps = |known: &String| known.split('.').zip(name.split('.')).all(|(one, other)| one == other);
        if self.taken.iter().any(|keys| is_there(keys)) || self.added.iter().any(overlaps) {
            return Err(Failure::Stock);
        }
        let kind = field_values::kind(value)?;
        if kind == ArgumentKind::Other && !is_sequence(value) && message::is_a_mapping(value)? {
            return Err(Failure::Stock);
        }
        let is_below = |hidden: &String| {
            name.strip_prefix(hidden.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if kind != ArgumentKind::None && !self.hidden.iter().any(is_below) {
            if !pieces.keep_bytes(tag::FIELD, name.clone().into_bytes()) {
                return Err(Failure::Stock);
            }
            field_values::add(pieces, self.shown, value, kind, self.shown.unnamed()[kind as usize])?;
        }
        self.added.push(name);
        Ok(())
    }
}

fn is_sequence(value: Object<'_, '_>) -> bool {
    value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>()
}
