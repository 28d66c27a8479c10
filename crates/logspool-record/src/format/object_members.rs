//! The members of an object that a formatter fills.

use super::attribute::Attribute;
use super::object_spec::TextShape;
use super::styled_spec::NumberTexts;
use crate::record::Value;

/// The compiled form of `AssignedValue`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Attribute(Attribute),
    Constant(Box<[u8]>),
    Exception(TextShape),
    Stack(TextShape),
    Timestamp,
    NullIfAbsent,
    Level(NumberTexts),
    Open,
    Close,
    NestedExtras,
    MessageItems,
    Extras,
}

/// One assignment of a value to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) key: Box<str>,
    /// The key as JSON with `: ` after it.
    pub(super) written_key: Box<[u8]>,
    pub(super) source: Source,
}

/// What a key of the object has been assigned.
#[derive(Clone, Copy)]
pub(super) enum Held<'w> {
    Source(&'w Source),
    /// The value of an extra field, or of an item of the message.
    Added(Value<'w>),
}
