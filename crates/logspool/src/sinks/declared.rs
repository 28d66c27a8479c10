//! How a sink declares itself, and its row in the table.

use std::fmt::Debug;
use std::io;

use super::place::Place;
use super::query;
use crate::option::{self, OptionError, OptionRow, OptionShape, OptionTable};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue, SinkDefinition};

/// The declarations of a kind of sink, in its own file together with its options.
pub trait SinkOptions: OptionTable + Clone + Debug + 'static {
    /// Name of the kind, as users write it.
    const KIND: &'static str;

    /// How the pipeline treats it.
    const TRAITS: Traits;

    /// Opens the sink.
    ///
    /// # Errors
    ///
    /// What the system said; `InvalidInput` for options that make no sense together.
    fn open(&self, descriptor: Descriptor) -> io::Result<Box<dyn Sink>>;

    /// What identifies the destination.
    fn place(&self) -> Place;

    /// Where a recoverer can deliver, as text that [`SinkOptions::from_recovery_address`] reads.
    fn recovery_address(&self) -> Option<String> {
        let values = self.values();
        let given = Self::ROWS.iter().zip(&values).filter(|(_, value)| **value != OptionValue::Nothing);
        self.place().recovery_address(Self::KIND, given.map(|(row, value)| (row.name, plain(value))))
    }

    /// The options behind what [`SinkOptions::recovery_address`] made of an address; `None` where the text is of another kind.
    fn from_recovery_address(lasting: &str) -> Option<Self> {
        let parts = query::decode(Self::KIND, lasting)?;
        let values = parts.into_iter().map(|(name, text)| {
            let row = Self::ROWS.iter().find(|row| row.name == name)?;
            Some((name, parsed(row, text)?))
        });
        let values: Option<Vec<_>> = values.collect();
        Self::from_values(&option::ordered(Self::KIND, Self::ROWS, values?).ok()?).ok()
    }

    /// One of each behaviour, for the contract tests: on the file at `path`, on the socket `path.socket`, or on
    /// `descriptor`. Those that rotate do so often and keep everything.
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

/// How the pipeline treats a kind of sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// What it is given.
    pub takes: SinkInput,
    /// Whether its destination is always there: the end of a program waits for it also when another one is away.
    pub is_local: bool,
    /// Whether it writes through a descriptor that belongs to the program, which may close it.
    pub is_borrowed: bool,
    /// Whether its destination confirms what it got: the sink is a [`Courier`](crate::sink::Courier).
    pub confirms_later: bool,
    /// Whether it goes over to other files by itself.
    pub rotates: bool,
    /// Whether handlers with the same options and the same file share one sink.
    pub is_shared: bool,
}

/// What a sink is given of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkInput {
    /// Its line, as the handler's formatter makes it.
    Lines,
    /// Its entry, with all its parts, see `format/entry.rs`.
    Entries,
}

impl Traits {
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

/// A kind of sink in the table.
#[derive(Debug)]
pub struct SinkRow {
    /// Its name.
    pub kind: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Its options.
    pub options: &'static [OptionRow],
    /// How the pipeline treats it.
    pub traits: Traits,
    pub(super) define: fn(&[OptionValue], Descriptor) -> Result<SinkDefinition, OptionError>,
    pub(super) open: fn(&SinkDefinition) -> io::Result<Box<dyn Sink>>,
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

/// A value as it is written into a text.
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
        _ => OptionValue::Text(text),
    })
}
