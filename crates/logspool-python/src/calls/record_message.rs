//! The text of a record's message, and the native `LogRecord.getMessage`.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Filters and formatters of a program ask for the text in the calling
//! thread. The operator `%` reads the template for each message. Here a template is read once, and plain values are
//! filled in by the core, which makes the same text.

use std::sync::{Mutex, TryLockError};

use logspool_record::Value;
use logspool_record::format::{ArgumentKind, MessageTemplate};
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::calls::message;
use crate::calls::pieces::{kind_of, small_int};
use crate::calls::record_class;
use crate::calls::stock::{Method, call_stock};
use crate::calls::template::Kind;
use crate::interpreter::failure::Failure;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};

/// The native `record.getMessage()`.
pub fn get_message(record: Object<'_, '_>, call: Call<'_, '_>) -> *mut PyObject {
    if !call.values().is_empty() || !record_class::is_plain(record) {
        return call_stock(Method::RecordMessage, record, call);
    }
    let attribute = |name| object::attribute(record, name);
    let made = match (attribute(&names().msg), attribute(&names().args)) {
        (Some(message), Some(arguments)) => plain_text(call.py(), message, &arguments),
        _ => Err(Failure::Stock),
    };
    match made {
        Ok(text) => text.into_ptr(),
        Err(Failure::Stock) => call_stock(Method::RecordMessage, record, call),
        Err(Failure::Raised) => std::ptr::null_mut(),
    }
}

/// Returns the result of `LogRecord.getMessage`, if making it runs no user Python code.
///
/// # Errors
///
/// [`Failure::Stock`] for any other message or argument, and if formatting raises an exception.
pub fn plain_text(py: Python<'_>, message: Owned, arguments: &Owned) -> Result<Owned, Failure> {
    if !object::is_exact_str(message.bind(py)) {
        return Err(Failure::Stock);
    }
    if arguments.bind(py).is_none() {
        return Ok(message);
    }
    let values = object::tuple_items(arguments.bind(py)).ok_or(Failure::Stock)?;
    if values.is_empty() {
        return Ok(message);
    }
    if !values.iter().all(|value| object::is_scalar(*value)) {
        return Err(Failure::Stock);
    }
    if let Some(text) = filled_in(message.bind(py), values) {
        return Ok(text);
    }
    // SAFETY: a live str and tuple, and the thread is attached; a new reference or null with an error set.
    let made = unsafe { Owned::steal(ffi::PyUnicode_Format(message.as_ptr(), arguments.as_ptr())) };
    made.ok_or_else(|| Failure::of_error(py))
}

/// A place for one template.
struct TemplatePlace {
    template: Option<KnownTemplate>,
    /// Number of other templates that the place ignores before it takes one.
    ignored: u32,
    /// Memory for texts.
    text: Vec<u8>,
}

/// A template that was read.
struct KnownTemplate {
    /// The `str`, which is kept so that no other object has its address.
    object: Owned,
    parsed: MessageTemplate,
}

/// Number of templates that are kept.
///
/// Chosen: programs have a few hundred, and few of them in turn. A template takes some 300 bytes.
const PLACES: usize = 128;

/// The templates seen last, each at the place that follows from the address of its `str`.
static TEMPLATES: [Mutex<TemplatePlace>; PLACES] =
    [const { Mutex::new(TemplatePlace { template: None, ignored: 0, text: Vec::new() }) }; PLACES];

/// Number of other templates that a place ignores after it has taken one.
///
/// Chosen: reading a template costs as much as two uses of `%`. A program that makes a new template for each message
/// pays for one in nine.
const IGNORED: u32 = 8;

/// Largest text whose memory a place keeps.
const KEPT_BYTES: usize = 1024;

/// Returns `template % values` for an exact `str` and a tuple. `None` without an exception: `%` has to do it.
fn filled_in(template: Object<'_, '_>, values: &[Object<'_, '_>]) -> Option<Owned> {
    // An object begins at a multiple of 16, and a `str` takes at least 49 bytes.
    let place = &TEMPLATES[(template.as_ptr() as usize >> 5) % PLACES];
    // No Python code runs while the place is locked. A thread that does not exist in a forked child may have locked it.
    let mut place = match place.try_lock() {
        Ok(place) => place,
        Err(TryLockError::Poisoned(place)) => place.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let TemplatePlace { template: known, ignored, text } = &mut *place;
    if known.as_ref().is_none_or(|known| known.object.as_ptr() != template.as_ptr()) {
        if *ignored > 0 {
            *ignored -= 1;
            return None;
        }
        let parsed = MessageTemplate::parse(object::text(template)?);
        *known = Some(KnownTemplate { object: Owned::of(&template), parsed });
        *ignored = IGNORED;
    }
    text.clear();
    known.as_ref()?.parsed.render_values(values.iter().map(|value| value_of(*value)), text)?;
    let made = object::str_of(template.py(), text);
    if made.is_none() {
        object::clear_error(template.py());
    }
    if text.capacity() > KEPT_BYTES {
        *text = Vec::new();
    }
    made
}

/// A value with its kind; `None` for one that only Python can show.
#[inline]
fn value_of<'a>(value: Object<'a, '_>) -> Option<(ArgumentKind, Value<'a>)> {
    match kind_of(value) {
        Kind::AsciiStr | Kind::Str => {
            let text = object::text(value)?;
            let is_ascii = message::is_ascii(value, text.as_bytes());
            Some((if is_ascii { ArgumentKind::AsciiStr } else { ArgumentKind::Str }, Value::Str(text)))
        }
        Kind::Int => Some((ArgumentKind::Int, Value::Int(small_int(value)?))),
        // SAFETY: an exact float.
        Kind::Float => Some((ArgumentKind::Float, Value::Float(unsafe { ffi::PyFloat_AS_DOUBLE(value.as_ptr()) }))),
        Kind::Bool | Kind::None | Kind::Bytes | Kind::Other => None,
    }
}
