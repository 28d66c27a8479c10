//! How a definition finds its row in the table of sinks.

use std::io;

use super::TABLE;
use super::declared::{SinkRow, Traits};
use super::place::{Place, SinkPlace};
use crate::option::{self, OptionError};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue, SinkDefinition};

/// The row of a kind.
///
/// # Errors
///
/// There is no such kind; the text names the nearest.
pub fn row(kind: &str) -> Result<&'static SinkRow, OptionError> {
    TABLE.iter().find(|row| row.kind == kind).ok_or_else(|| {
        let near = option::suggestion(kind, TABLE.iter().map(|row| row.kind));
        OptionError::Kind(format!("there is no sink {kind:?}; {near}"))
    })
}

/// Defines a sink by the name of its kind and the options that were given.
///
/// # Errors
///
/// An unknown kind or option, with the nearest name; a required option that is missing; a value that does not fit.
pub fn define(
    kind: &str,
    given: impl IntoIterator<Item = (String, OptionValue)>,
    descriptor: Descriptor,
) -> Result<SinkDefinition, OptionError> {
    let row = row(kind)?;
    (row.define)(&option::ordered(kind, row.options, given)?, descriptor)
}

/// How the line treats the sink of a definition.
///
/// # Panics
///
/// The definition is of no kind in the table, so no row made it.
pub fn traits(definition: &SinkDefinition) -> Traits {
    row(definition.kind).expect("a row of the table made the definition").traits
}

/// Opens the sink that a definition describes.
///
/// # Errors
///
/// What the system said about the path or descriptor; `InvalidInput` for options that no handler can have.
pub fn open(definition: &SinkDefinition) -> io::Result<Box<dyn Sink>> {
    let row = row(definition.kind).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    (row.open)(definition)
}

/// What identifies the destination of a definition.
pub fn place(definition: &SinkDefinition) -> Place {
    row(definition.kind).ok().and_then(|row| (row.place)(definition)).unwrap_or(Place::Nowhere)
}

/// Whether a sink of the definition holds a duplicate of what the program may close. A reader at the other end then
/// waits until the duplicate is closed.
pub fn is_borrowed(definition: &SinkDefinition) -> bool {
    traits(definition).is_borrowed && matches!(definition.descriptor, Descriptor::Duplicate(_))
}

/// What the definition's descriptor refers to; `None` when a sink of it is never shared.
///
/// Sinks that rotate are not shared: each handler has its own idea of when.
pub fn shared_place(definition: &SinkDefinition) -> Option<SinkPlace> {
    if !traits(definition).is_shared {
        return None;
    }
    match (place(definition), definition.descriptor) {
        (Place::Descriptor(number), _) | (Place::File(_), Descriptor::Duplicate(number)) => SinkPlace::of(number),
        _ => None,
    }
}

/// The definition behind the [lasting place](SinkDefinition::lasting) of a dead process's sink; `None` for the path of a
/// file.
pub fn from_recovery_address(lasting: &str) -> Option<SinkDefinition> {
    TABLE.iter().find_map(|row| (row.at)(lasting))
}
