//! Message and arguments of one call. The arguments are queued by value if the template allows it; otherwise this
//! module makes the text.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Everything that may run user Python code runs here, before any byte
//! in the lane is reserved: `str()` of the message, and `%` with an argument that is not a builtin value. If a message
//! cannot be formatted, the text that user Python code made of it is kept ([`take_made`]). Stock logging reports the
//! error and uses that text, so the user Python code does not run twice.

use std::cell::Cell;
use std::sync::OnceLock;

use logspool_record::format::RenderedBy;
use logspool_record::tag;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::calls::pieces::{Pieces, kind_of, small_int};
use crate::calls::site::{BoundTemplate, Site, SiteName};
use crate::calls::template::{Directive, Kind};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Call, Object, Owned};

/// `collections.abc.Mapping`: if the only argument is an instance, it supplies the values of `%(key)s` directives.
static MAPPING: OnceLock<Owned> = OnceLock::new();

/// The class `_texts.MadeText`.
static MADE_TEXT: OnceLock<Owned> = OnceLock::new();

/// Sets `_texts.MadeText`. Later calls change nothing.
pub fn set_made_text(class: Owned) {
    let _ = MADE_TEXT.set(class);
}

/// A message object, and the `MadeText` that replaces it in the call of the stock method.
struct MadeMessage {
    message: usize,
    stand_in: Owned,
}

thread_local! {
    /// Set if a message cannot be formatted after its text was made; the same call takes the entry. The cell is empty
    /// between calls. A thread ends detached from the interpreter, so it must have nothing to drop then.
    static MADE: Cell<Option<MadeMessage>> = const { Cell::new(None) };
    /// True if the last message could not be formatted.
    static FORMAT_FAILED: Cell<bool> = const { Cell::new(false) };
}

/// The object that replaces `message` in the stock call, if its text was made before formatting failed.
pub fn take_made(message: Object<'_, '_>) -> Option<Owned> {
    let made = MADE.try_with(Cell::take).ok().flatten()?;
    if made.message == message.as_ptr() as usize {
        return Some(made.stand_in);
    }
    // The entry belongs to another call: this one comes from a finalizer that logs while the failed call ends.
    let _ = MADE.try_with(|cell| cell.set(Some(made)));
    None
}

/// True if the last message could not be formatted. Resets the flag.
pub fn take_format_failure() -> bool {
    FORMAT_FAILED.try_with(Cell::take).unwrap_or(false)
}

/// Notes that formatting the message raises. The failure that is returned makes stock logging do the call.
fn broken() -> Failure {
    let _ = FORMAT_FAILED.try_with(|broken| broken.set(true));
    Failure::Stock
}

/// Sets `collections.abc.Mapping`.
pub fn set_mapping(class: Owned) {
    let _ = MAPPING.set(class);
}

/// Adds the message of a call: its first positional value and the %-arguments after it. Returns the site's id for the
/// record, or 0 if the record carries the complete site.
///
/// # Errors
///
/// [`Failure::Stock`] if stock logging has to format or report, [`Failure::Raised`] if user Python code raised.
#[inline(always)]
pub fn add<'a>(pieces: &mut Pieces<'a>, site: &'a Site, id_epoch: u64, call: Call<'a, '_>) -> Result<u32, Failure> {
    let Some((&message, values)) = call.positional().split_first() else { return Err(Failure::Stock) };
    if !values.is_empty()
        && object::is_exact_str(message)
        && let Some(bound) = site.template(message)
        && bound.template.deferrable()
    {
        if values.len() == 1 && kind_of(values[0]) == Kind::Other && is_mapping(values[0])? {
            // A template with `%(key)s` directives is not deferrable. This template is deferrable, so Python's
            // formatting either ignores the mapping or raises. Only Python can decide which.
            return add_text(pieces, site, id_epoch, message, values);
        }
        if bound.template.directives.len() != values.len() {
            return Err(broken());
        }
        let id = add_name(pieces, bound.name(id_epoch));
        add_deferred(pieces, bound, values)?;
        return Ok(id);
    }
    add_text(pieces, site, id_epoch, message, values)
}

#[inline(always)]
fn add_name<'a>(pieces: &mut Pieces<'a>, name: SiteName<'a>) -> u32 {
    match name {
        SiteName::Id(id) => id,
        SiteName::Inline(definition) => {
            pieces.raw(definition);
            0
        }
    }
}

#[inline(always)]
fn add_deferred<'a>(
    pieces: &mut Pieces<'a>,
    bound: &BoundTemplate,
    arguments: &'a [Object<'a, '_>],
) -> Result<(), Failure> {
    for (directive, &argument) in bound.template.directives.iter().zip(arguments) {
        let kind = kind_of(argument);
        if kind == Kind::AsciiStr {
            let Some(bytes) = object::utf8(argument) else { return Err(Failure::Stock) };
            match directive.accepts(if is_ascii(argument, bytes) { Kind::AsciiStr } else { Kind::Str }) {
                RenderedBy::Deferred if pieces.bytes(tag::STR, bytes) => {}
                RenderedBy::RenderInCaller => add_rendered(pieces, argument, directive)?,
                _ => return Err(Failure::Stock),
            }
            continue;
        }
        match directive.accepts(kind) {
            RenderedBy::Deferred => {
                if kind == Kind::Int {
                    match small_int(argument) {
                        Some(number) => pieces.word(tag::INT, number as u64),
                        None => add_rendered(pieces, argument, directive)?,
                    }
                } else if !pieces.value(argument) {
                    return Err(Failure::Stock);
                }
            }
            RenderedBy::RenderInCaller => {
                // Rendering may run user Python code. If a later argument cannot be formatted, stock logging would run
                // that code again, so all arguments are checked first.
                if kind == Kind::Other && !fit(bound, arguments) {
                    return Err(broken());
                }
                add_rendered(pieces, argument, directive)?;
            }
            RenderedBy::Mismatch => return Err(broken()),
        }
    }
    Ok(())
}

/// Adds the empty message of a record whose items are shown in its place. Returns the site's id, as [`add`] does.
pub fn add_empty<'a>(pieces: &mut Pieces<'a>, site: &'a Site, id_epoch: u64) -> u32 {
    let id = add_name(pieces, site.plain_name(id_epoch));
    pieces.bytes(tag::MESSAGE, b"");
    id
}

/// True if the message of a call is a dict.
pub fn is_dict(call: Call<'_, '_>) -> bool {
    call.positional().first().is_some_and(|message| message.is_instance_of::<PyDict>())
}

/// True if every character of a `str` takes one byte of UTF-8.
#[inline(always)]
pub fn is_ascii(text: Object<'_, '_>, bytes: &[u8]) -> bool {
    // SAFETY: a live `str`, which has just been encoded.
    bytes.len() == unsafe { ffi::PyUnicode_GET_LENGTH(text.as_ptr()) } as usize
}

/// True if each argument has a type that its directive accepts.
fn fit(bound: &BoundTemplate, arguments: &[Object<'_, '_>]) -> bool {
    let accepts = |(directive, argument): (&Directive, &Object<'_, '_>)| {
        directive.accepts(kind_of(*argument)) != RenderedBy::Mismatch
    };
    bound.template.directives.iter().zip(arguments).all(accepts)
}

fn add_rendered(pieces: &mut Pieces<'_>, argument: Object<'_, '_>, directive: &Directive) -> Result<(), Failure> {
    add_owned(argument.py(), pieces, tag::RENDERED, directive.render(argument))
}

/// Adds a text that was made for this record. `text` is `None` if making it raised; the exception is then set.
///
/// # Errors
///
/// [`Failure::Stock`] also for an object that is not a text, and for text that cannot be encoded.
pub fn add_owned(py: Python<'_>, pieces: &mut Pieces<'_>, tag: u8, text: Option<Owned>) -> Result<(), Failure> {
    let text = text.ok_or_else(|| Failure::of_error(py))?;
    if pieces.keep_text(py, tag, text) { Ok(()) } else { Err(Failure::Stock) }
}

/// True if stock logging would treat a single argument as a mapping: it is a `Mapping`, and its truth value is true.
/// Runs user Python code.
///
/// # Errors
///
/// That code raised an error.
pub fn is_mapping(argument: Object<'_, '_>) -> Result<bool, Failure> {
    // `__bool__` may run user Python code.
    let is_true = || leaving::is_true(argument).ok_or_else(|| Failure::of_error(argument.py()));
    if is_a_mapping(argument)? { is_true() } else { Ok(false) }
}

/// True if an object is an instance of `Mapping`. `__instancecheck__` may run user Python code.
///
/// # Errors
///
/// That code raised an error.
pub fn is_a_mapping(value: Object<'_, '_>) -> Result<bool, Failure> {
    let mapping = MAPPING.get().ok_or(Failure::Stock)?;
    leaving::is_instance(value, mapping).ok_or_else(|| Failure::of_error(value.py()))
}

/// Adds the finished message, as `LogRecord.getMessage` makes it.
#[inline(never)]
fn add_text<'a>(
    pieces: &mut Pieces<'a>,
    site: &'a Site,
    id_epoch: u64,
    message: Object<'a, '_>,
    values: &[Object<'_, '_>],
) -> Result<u32, Failure> {
    let id = add_name(pieces, site.plain_name(id_epoch));
    let py = message.py();
    let text = if object::is_exact_str(message) {
        if values.is_empty() {
            let bytes = object::utf8(message).ok_or(Failure::Stock)?;
            return if pieces.bytes(tag::MESSAGE, bytes) { Ok(id) } else { Err(Failure::Stock) };
        }
        Owned::of(&message)
    } else {
        leaving::str(message).ok_or_else(|| Failure::of_error(py))?
    };
    let text = if values.is_empty() { text } else { format_text(message, &text, values)? };
    // `__mod__` of a subclass of `str` may have returned an object of another type.
    if !object::is_str(text.bind(py)) {
        return Err(Failure::Stock);
    }
    add_owned(py, pieces, tag::MESSAGE, Some(text))?;
    Ok(id)
}

/// Computes `text % values`, where `text` is the text of `message`. If that raises, the text is kept for stock logging.
fn format_text(message: Object<'_, '_>, text: &Owned, values: &[Object<'_, '_>]) -> Result<Owned, Failure> {
    let py = message.py();
    if let Some(formatted) = percent(text.bind(py), values)? {
        return Ok(formatted);
    }
    let failed = Failure::of_error(py);
    if matches!(failed, Failure::Stock) {
        let _ = FORMAT_FAILED.try_with(|broken| broken.set(true));
        keep_made(message, text.bind(py));
    }
    Err(failed)
}

/// Keeps the text that was made of a message that is not a `str`.
fn keep_made(message: Object<'_, '_>, text: Object<'_, '_>) {
    let Some(class) = MADE_TEXT.get().filter(|_| message.as_ptr() != text.as_ptr()) else { return };
    let values = [message.as_ptr(), text.as_ptr()];
    // SAFETY: two live values and our own class; the result is a new reference or null with an error set.
    let made =
        unsafe { Owned::steal(ffi::PyObject_Vectorcall(class.as_ptr(), values.as_ptr(), 2, std::ptr::null_mut())) };
    match made {
        Some(stand_in) => {
            let made = MadeMessage { message: message.as_ptr() as usize, stand_in };
            let _ = MADE.try_with(|cell| cell.set(Some(made)));
        }
        None => object::clear_error(message.py()),
    }
}

/// Computes `text % values`; `None` if that raised, with the exception set.
fn percent(text: Object<'_, '_>, values: &[Object<'_, '_>]) -> Result<Option<Owned>, Failure> {
    if let [value] = values
        && !object::is_scalar(*value)
        && is_mapping(*value)?
    {
        return Ok(leaving::remainder(text, *value));
    }
    let tuple = object::tuple(text.py(), values).ok_or_else(|| Failure::of_error(text.py()))?;
    Ok(leaving::remainder(text, tuple.bind(text.py())))
}
