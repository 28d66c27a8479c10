//! The trait by which a sink declares its properties, and the sink's row in the table.

use std::fmt::Debug;
use std::io;

use super::destination::Place;
use super::query;
use crate::option::{self, OptionError, OptionRow, OptionShape, OptionTable};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue, SinkDefinition};

/// The declarations of a kind of sink. They are in the file of that kind, together with its options.
pub trait SinkOptions: OptionTable + Clone + Debug + 'static {
    /// Name of the kind, as users write it.
    const KIND: &'static str;

    /// Properties by which the pipeline treats sinks of this kind.
    const TRAITS: Traits;

    /// Opens the sink.
    ///
    /// # Errors
    ///
    /// The system's error, or `InvalidInput` for options that contradict each other.
    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>>;

    /// Refuses options with which no sink can work here, before a handler is made. Changes nothing.
    ///
    /// # Errors
    ///
    /// The reason, with the destination.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// The destination of a sink with these options.
    fn place(&self) -> Place;

    /// The destination for a recoverer, as text that [`SinkOptions::from_recovery_address`] reads.
    fn recovery_address(&self) -> Option<String> {
        let values = self.values();
        let given = Self::ROWS.iter().zip(&values).filter(|(_, value)| **value != OptionValue::Nothing);
        self.place().recovery_address(Self::KIND, given.map(|(row, value)| (row.name, plain(value))))
    }

    /// Parses the text of [`SinkOptions::recovery_address`]. `None`: the text is of another kind.
    fn from_recovery_address(lasting: &str) -> Option<Self> {
        options_of(lasting)
    }

    /// One sample for each behaviour of this kind, for the contract tests. The sink writes to the file at `path`, to
    /// the socket `path.socket`, or to `descriptor`. Samples that rotate do so often and keep all backups.
    fn samples(path: &str, descriptor: i32) -> Vec<Self>;

    /// The definition of a sink with these options.
    fn define(&self, descriptor: Descriptor) -> SinkDefinition {
        SinkDefinition {
            kind: Self::KIND,
            options: self.values(),
            descriptor,
            name: self.place().name(Self::KIND),
            lasting: self.recovery_address(),
        }
    }
}

/// Properties of a kind of sink that determine how the pipeline treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// The form in which the sink gets records.
    pub takes: SinkInput,
    /// Whether the destination is always available. The end of a program waits for such a sink even if the destination
    /// of another sink is unavailable.
    pub is_local: bool,
    /// Whether the sink writes through a descriptor that belongs to the program. The program may close it.
    pub is_borrowed: bool,
    /// Whether the destination acknowledges the records that it has received. The sink is then a
    /// [`Courier`](crate::sink::Courier).
    pub confirms_later: bool,
    /// Whether the sink switches to another file by itself.
    pub rotates: bool,
    /// Whether handlers with the same options and the same file share one sink. If they do not, their sinks are
    /// [members](super::GroupSink) of one group.
    pub is_shared: bool,
}

/// The form in which a sink gets a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkInput {
    /// The record's line, as the handler's formatter renders it.
    Lines,
    /// The record's entry with all parts of the record; see `format/entry.rs`.
    Entries,
}

impl Traits {
    /// Whether sinks with the same destination are written by one writer, see [`GroupSink`](super::GroupSink).
    pub fn may_be_member(&self) -> bool {
        self.takes == SinkInput::Lines && self.is_local && !self.confirms_later
    }

    /// Traits of a sink that appends to one file.
    pub const FILE: Self = Self {
        takes: SinkInput::Lines,
        is_local: true,
        is_borrowed: false,
        confirms_later: false,
        rotates: false,
        is_shared: true,
    };

    /// Traits of a sink that switches to another file.
    pub const ROTATING_FILE: Self = Self { rotates: true, is_shared: false, ..Self::FILE };

    /// Traits of a sink that sends records to another program.
    pub const REMOTE: Self = Self { takes: SinkInput::Entries, is_local: false, is_shared: false, ..Self::FILE };
}

/// A row of the table of sinks: one kind.
#[derive(Debug)]
pub struct SinkRow {
    /// Name of the kind.
    pub kind: &'static str,
    /// A description of the kind.
    pub about: &'static str,
    /// The options of the kind.
    pub options: &'static [OptionRow],
    /// Properties by which the pipeline treats sinks of this kind.
    pub traits: Traits,
    pub(super) define: fn(&[OptionValue], Descriptor) -> Result<SinkDefinition, OptionError>,
    pub(super) open: fn(&SinkDefinition) -> io::Result<Box<dyn Sink>>,
    pub(super) check: fn(&SinkDefinition) -> io::Result<()>,
    pub(super) place: fn(&SinkDefinition) -> Option<Place>,
    pub(super) at: fn(&str) -> Option<SinkDefinition>,
    samples: fn(&str, i32) -> Vec<SinkDefinition>,
}

impl SinkRow {
    /// The row of a kind.
    pub const fn of<T: SinkOptions>() -> Self {
        Self {
            kind: T::KIND,
            about: T::ABOUT,
            options: T::ROWS,
            traits: T::TRAITS,
            define: |values, descriptor| Ok(T::from_values(values)?.define(descriptor)),
            open: |definition| read::<T>(definition)?.open(definition.descriptor),
            check: |definition| read::<T>(definition)?.check(),
            place: |definition| read::<T>(definition).ok().map(|options| options.place()),
            at: |lasting| Some(T::from_recovery_address(lasting)?.define(Descriptor::Open)),
            samples: |path, descriptor| {
                T::samples(path, descriptor).iter().map(|options| options.define(Descriptor::Open)).collect()
            },
        }
    }

    /// The samples of this kind, see [`SinkOptions::samples`].
    pub fn samples(&self, path: &str, descriptor: i32) -> Vec<SinkDefinition> {
        (self.samples)(path, descriptor)
    }
}

fn read<T: SinkOptions>(definition: &SinkDefinition) -> io::Result<T> {
    T::from_values(&definition.options).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// The options in a recovery address of the general form. `None`: the text has another form or is of another kind.
pub(super) fn options_of<T: SinkOptions>(lasting: &str) -> Option<T> {
    let parts = query::decode(T::KIND, lasting)?;
    let values = parts.into_iter().map(|(name, text)| {
        let row = T::ROWS.iter().find(|row| row.name == name)?;
        Some((name, parsed(row, text)?))
    });
    let values: Option<Vec<_>> = values.collect();
    T::from_values(&option::ordered(T::KIND, T::ROWS, values?).ok()?).ok()
}

/// A value as it is written in a recovery address.
fn plain(value: &OptionValue) -> String {
    match value {
        OptionValue::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

fn parsed(row: &OptionRow, text: String) -> Option<OptionValue> {
    Some(match row.shape {
        OptionShape::Switch => OptionValue::Switch(text.parse().ok()?),
        OptionShape::Whole => OptionValue::Whole(text.parse().ok()?),
        OptionShape::Seconds => OptionValue::Seconds(text.parse().ok()?),
        _ => OptionValue::Text(text),
    })
}
