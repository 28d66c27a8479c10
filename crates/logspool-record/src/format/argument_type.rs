//! The types of arguments of calls that are not Python's.

use super::directive::ArgumentKind;

/// The type of an argument of a call that is not Python's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentType {
    /// No value.
    None,
    /// A bool.
    Bool,
    /// A signed integer of up to 128 bits.
    Int,
    /// An unsigned integer of up to 128 bits.
    Uint,
    /// A double.
    Float,
    /// A single.
    Float32,
    /// One character.
    Char,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// An address.
    Pointer,
    /// Several values.
    Tuple,
    /// Text that the caller has rendered by the placeholder. Every placeholder fits it.
    Rendered,
}

impl ArgumentType {
    /// The type as messages name it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "no value",
            Self::Bool => "a bool",
            Self::Int => "an integer",
            Self::Uint => "an unsigned integer",
            Self::Float => "a double",
            Self::Float32 => "a single",
            Self::Char => "a character",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Pointer => "an address",
            Self::Tuple => "a tuple",
            Self::Rendered => "rendered text",
        }
    }

    /// The type as %-directives distinguish it.
    pub(super) const fn percent_kind(self) -> ArgumentKind {
        match self {
            Self::None => ArgumentKind::None,
            Self::Bool => ArgumentKind::Bool,
            Self::Int | Self::Uint => ArgumentKind::Int,
            Self::Float | Self::Float32 => ArgumentKind::Float,
            Self::Text => ArgumentKind::Str,
            Self::Bytes => ArgumentKind::Bytes,
            Self::Char | Self::Pointer | Self::Tuple | Self::Rendered => ArgumentKind::Other,
        }
    }

    /// Whether the argument can be a width or a precision.
    pub(super) const fn is_amount(self) -> bool {
        matches!(self, Self::Int | Self::Uint)
    }
}

/// An argument of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypedArgument<'a> {
    /// The name by which a template can refer to the argument. Such an argument is sent as an extra field.
    pub name: Option<&'a str>,
    /// The type.
    pub kind: ArgumentType,
}

impl TypedArgument<'_> {
    /// An argument without a name.
    pub const fn unnamed(kind: ArgumentType) -> Self {
        Self { name: None, kind }
    }
}
