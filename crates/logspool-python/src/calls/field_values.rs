//! The value of one extra field, or of one item of a message that is a dict.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md).

use logspool_record::format::{ArgumentKind, RenderedBy};
use logspool_record::tag;

use crate::calls::message::{self, is_ascii};
use crate::calls::pieces::{Pieces, kind_of, small_int};
use crate::calls::template::Kind;
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Object};
use crate::plans::needs::ShownFields;

/// Adds the value of a field or of an item, after its key. May run user Python code.
///
/// # Errors
///
/// [`Failure::Stock`] if the text of the value cannot be made.
pub fn add<'a, 'py: 'a>(
    pieces: &mut Pieces<'a>,
    shown: &ShownFields,
    value: Object<'a, 'py>,
    kind: ArgumentKind,
    acceptance: RenderedBy,
) -> Result<(), Failure> {
    let py = value.py();
    if acceptance == RenderedBy::RenderInCaller {
        let (tag, text) = shown.texts().make(value)?;
        return message::add_owned(py, pieces, tag, text);
    }
    if kind == ArgumentKind::BigInt {
        return message::add_owned(py, pieces, tag::BIG_INT, leaving::str(value));
    }
    if pieces.value(value) { Ok(()) } else { Err(Failure::Stock) }
}

/// The kind of a value, as the formats tell them apart.
///
/// # Errors
///
/// [`Failure::Stock`] for text that cannot be encoded.
pub fn kind(value: Object<'_, '_>) -> Result<ArgumentKind, Failure> {
    Ok(match kind_of(value) {
        Kind::AsciiStr => {
            let bytes = object::utf8(value).ok_or(Failure::Stock)?;
            if is_ascii(value, bytes) { ArgumentKind::AsciiStr } else { ArgumentKind::Str }
        }
        Kind::Str => ArgumentKind::Str,
        Kind::Int if small_int(value).is_none() => ArgumentKind::BigInt,
        Kind::Int => ArgumentKind::Int,
        Kind::Float => ArgumentKind::Float,
        Kind::Bool => ArgumentKind::Bool,
        Kind::None => ArgumentKind::None,
        Kind::Bytes => ArgumentKind::Bytes,
        Kind::Other => ArgumentKind::Other,
    })
}
