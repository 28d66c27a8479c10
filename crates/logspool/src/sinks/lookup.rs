//! Finds the row of a definition in the table of sinks.

use std::io;
use std::path::{Path, PathBuf};

use super::TABLE;
use super::declared::{SinkRow, Traits};
use super::destination::{Place, SinkPlace};
use super::query;
use crate::option::{self, OptionError, OptionShape};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue, SinkDefinition};

/// Names of options with secrets, whichever sink has them.
const SECRET_OPTIONS: [&str; 4] = ["headers", "password", "shared_key", "token"];

/// The row of a kind.
///
/// # Errors
///
/// The kind does not exist. The error names the kind with the nearest name.
pub fn row(kind: &str) -> Result<&'static SinkRow, OptionError> {
    TABLE.iter().find(|row| row.kind == kind).ok_or_else(|| {
        let near = option::suggestion(kind, TABLE.iter().map(|row| row.kind));
        OptionError::Kind(format!("there is no sink {kind:?}; {near}"))
    })
}

/// Defines a sink by the name of its kind and the given options.
///
/// # Errors
///
/// An unknown kind or option (the error has the nearest name), a missing required option, or an invalid value.
pub fn define(
    kind: &str,
    given: impl IntoIterator<Item = (String, OptionValue)>,
    descriptor: Descriptor,
) -> Result<SinkDefinition, OptionError> {
    let row = row(kind)?;
    let given = absolute_paths(kind, given);
    (row.define)(&option::ordered(kind, row.options, given)?, descriptor)
}

/// The given options of a sink, with every path from the root. They then name the same files after the program has
/// changed its working folder, and for a recoverer, which has a folder of its own.
///
/// An option that the kind does not have, and a path that the system cannot complete, stay as they are: [`define`]
/// refuses them.
pub fn absolute_paths(
    kind: &str,
    given: impl IntoIterator<Item = (String, OptionValue)>,
) -> Vec<(String, OptionValue)> {
    let rows = row(kind).map_or(&[][..], |row| row.options);
    let is_path = |name: &str| rows.iter().any(|row| row.name == name && row.shape == OptionShape::Path);
    let complete = |value: OptionValue| match value {
        OptionValue::Text(text) => OptionValue::Path(option::absolute(text.into())),
        OptionValue::Path(path) => OptionValue::Path(option::absolute(path)),
        other => other,
    };
    given
        .into_iter()
        .map(|(name, value)| if is_path(&name) { (name, complete(value)) } else { (name, value) })
        .collect()
}

/// Properties by which the pipeline treats the sink of a definition.
///
/// # Panics
///
/// The definition was not created by a row of the table, because the table does not have its kind.
pub fn traits(definition: &SinkDefinition) -> Traits {
    row(definition.kind).expect("a row of the table made the definition").traits
}

/// Opens the sink that a definition describes.
///
/// # Errors
///
/// The system's error for the path or descriptor, or `InvalidInput` for options that no handler can have.
pub fn open(definition: &SinkDefinition) -> io::Result<Box<dyn Sink>> {
    let row = row(definition.kind).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    (row.open)(definition)
}

/// Refuses a definition with which no sink can work here. Opens nothing.
///
/// # Errors
///
/// The reason, with the destination.
pub fn check(definition: &SinkDefinition) -> io::Result<()> {
    row(definition.kind).map_or(Ok(()), |row| (row.check)(definition))
}

/// The destination of a definition.
pub fn place(definition: &SinkDefinition) -> Place {
    row(definition.kind).ok().and_then(|row| (row.place)(definition)).unwrap_or(Place::Nowhere)
}

/// Whether a sink of the definition has a duplicate of a descriptor that the program may close. The reader at the other
/// end then waits for the end until the duplicate is closed, too.
pub fn is_borrowed(definition: &SinkDefinition) -> bool {
    traits(definition).is_borrowed && matches!(definition.descriptor, Descriptor::Duplicate(_))
}

/// The file to which a sink of the definition writes, or will write. `None`: the file does not exist yet, or the sink
/// writes no lines to a file, a pipe or a terminal.
pub fn written_place(definition: &SinkDefinition) -> Option<SinkPlace> {
    if !traits(definition).may_be_member() {
        return None;
    }
    match (place(definition), definition.descriptor) {
        (Place::Descriptor(number), _) | (Place::File(_), Descriptor::Duplicate(number)) => SinkPlace::of(number),
        (Place::File(path), Descriptor::Open) => SinkPlace::at(Path::new(&path)),
        _ => None,
    }
}

/// The place of a sink as texts show it: a recovery address without the options that have secrets.
pub fn shown_place(place: &Path) -> PathBuf {
    let Some(text) = place.to_str().filter(|text| from_recovery_address(text).is_some()) else {
        return place.to_owned();
    };
    query::without(text, &SECRET_OPTIONS).into()
}

/// Parses the [recovery address](SinkDefinition::lasting) of a dead process's sink. `None`: the text is the path of a
/// file.
pub fn from_recovery_address(lasting: &str) -> Option<SinkDefinition> {
    TABLE.iter().find_map(|row| (row.at)(lasting))
}
