//! Items of the tuples in which specs are written and read.
//!
//! A recoverer reads these bytes of a dead process, so every length is bounded.

use super::style::Style;
use crate::record::{Encoder, Value, Values};

/// Maximum length of a text of a spec in bytes. Chosen: format strings are below 1 KiB. A limit of twice this size
/// would do no harm.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum number of level names, and of fields of a JSON layout. Chosen: programs have fewer than 100. The bound
/// limits a hostile table.
const MAX_ITEMS: usize = 4096;

pub(super) type Read<T> = fn(&mut Values<'_>) -> Option<T>;

pub(super) fn pairs<A, B>(mut items: Values<'_>, first: Read<A>, second: Read<B>) -> Option<Vec<(A, B)>> {
    let mut read = Vec::new();
    while !items.rest().is_empty() {
        if read.len() == MAX_ITEMS {
            return None;
        }
        read.push((first(&mut items)?, second(&mut items)?));
    }
    Some(read)
}

pub(super) const fn style_number(style: Style) -> i64 {
    match style {
        Style::Percent => 0,
        Style::Brace => 1,
        Style::Dollar => 2,
    }
}

pub(super) const fn style_from(number: u8) -> Option<Style> {
    Some(match number {
        0 => Style::Percent,
        1 => Style::Brace,
        2 => Style::Dollar,
        _ => return None,
    })
}

pub(super) fn optional(encoder: &mut Encoder, text: Option<&str>) {
    match text {
        Some(text) => encoder.str(text),
        None => encoder.none(),
    };
}

pub(super) fn optional_text(items: &mut Values<'_>) -> Option<Option<String>> {
    match items.next()? {
        Value::None => Some(None),
        Value::Str(text) if text.len() <= MAX_TEXT_BYTES => Some(Some(text.to_owned())),
        _ => None,
    }
}

pub(super) fn text(items: &mut Values<'_>) -> Option<String> {
    optional_text(items)?
}

pub(super) fn texts(mut items: Values<'_>) -> Option<Vec<String>> {
    let mut read = Vec::new();
    while !items.rest().is_empty() {
        if read.len() == MAX_ITEMS {
            return None;
        }
        read.push(text(&mut items)?);
    }
    Some(read)
}

pub(super) fn boolean(items: &mut Values<'_>) -> Option<bool> {
    match items.next()? {
        Value::Bool(answer) => Some(answer),
        _ => None,
    }
}

pub(super) fn number<T: TryFrom<i64>>(items: &mut Values<'_>) -> Option<T> {
    match items.next()? {
        Value::Int(number) => T::try_from(number).ok(),
        _ => None,
    }
}

pub(super) fn tuple<'a>(items: &mut Values<'a>) -> Option<Values<'a>> {
    match items.next()? {
        Value::Tuple(inner) => Some(inner),
        _ => None,
    }
}
