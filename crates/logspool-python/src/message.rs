//! Message and arguments of one call: by value where the template allows it, else as text made here.
//!
//! Stop on the line: *capture*. Everything that may run foreign code (`str()` of the message, `%` of an
//! argument that is no builtin value) happens here, before a byte is reserved.
//! What foreign code has made of a message that cannot be formatted is kept ([`take_made`]), so that stock logging,
//! which reports the error, does not run it again.

use std::cell::Cell;
use std::sync::OnceLock;

use logspool_record::format::Acceptance;
use logspool_record::tag;
use pyo3::ffi::{self, PyObject};
use pyo3::prelude::*;

use crate::leaving;
use crate::object::{self, Owned};
use crate::pieces::Pieces;
use crate::site::{BoundTemplate, Site, SiteName};
use crate::template::{Directive, Kind};
use crate::values;

/// Why no message was made.
pub enum Failure {
    /// Stock logging shall do this call from its start: it reports, encodes or converts as nobody else.
    Stock,
    /// A Python exception that no handler would have caught, or that a signal's handler raised in a wait, is set.
    Raised,
}

impl Failure {
    /// What a signal's handler raised while logspool waited: it gets out of the call, as of a wait of Python's.
    pub fn interrupted(py: Python<'_>, error: PyErr) -> Self {
        error.restore(py);
        Self::Raised
    }
}

impl From<PyErr> for Failure {
    /// As [`failure`].
    fn from(error: PyErr) -> Self {
        // SAFETY: who met an exception inside a logging call is attached.
        unsafe {
            error.restore(Python::assume_attached());
            failure()
        }
    }
}

/// `collections.abc.Mapping`: a single such argument is the mapping of `%(key)s` directives.
static MAPPING: OnceLock<Owned> = OnceLock::new();

/// `_texts.MadeText`
static MADE_TEXT: OnceLock<Owned> = OnceLock::new();

/// Remembers `_texts.MadeText`. The first call counts.
pub fn set_made_text(class: Owned) {
    let _ = MADE_TEXT.set(class);
}

/// A message object and the `MadeText` that stands for it in stock logging's call.
struct Made {
    message: usize,
    stand_in: Owned,
}

thread_local! {
    /// Set where the message of a call cannot be formatted after its text was made; taken by that call. Holds nothing
    /// between calls, so that the end of a thread, which is not attached, drops nothing.
    static MADE: Cell<Option<Made>> = const { Cell::new(None) };
    /// Whether the last message could not be formatted.
    static BROKEN: Cell<bool> = const { Cell::new(false) };
}

/// What stands for `message` in stock logging's call, where its text was made before it failed.
pub fn take_made(message: *mut PyObject) -> Option<Owned> {
    let made = MADE.try_with(Cell::take).ok().flatten()?;
    if made.message == message as usize {
        return Some(made.stand_in);
    }
    // A finalizer logs while the call that failed ends.
    let _ = MADE.try_with(|cell| cell.set(Some(made)));
    None
}

/// Whether the message that was just tried cannot be formatted. Asks once.
pub fn take_broken() -> bool {
    BROKEN.try_with(Cell::take).unwrap_or(false)
}

/// Stock logging, because formatting raises.
fn broken() -> Failure {
    let _ = BROKEN.try_with(|broken| broken.set(true));
    Failure::Stock
}

/// Remembers `collections.abc.Mapping`.
pub fn set_mapping(class: Owned) {
    let _ = MAPPING.set(class);
}

/// Adds the message of a call: `arguments[0]` and its %-arguments behind it. Returns the site's id in the record,
/// 0 when the record carries the site itself.
///
/// # Safety
///
/// `arguments` holds `count` live objects, at least one; attached.
#[inline(always)]
pub unsafe fn add(
    pieces: &mut Pieces,
    site: &Site,
    generation: u64,
    arguments: *const *mut PyObject,
    count: usize,
) -> Result<u32, Failure> {
    // SAFETY: passed on.
    unsafe {
        let message = *arguments;
        if count > 1
            && object::is_exact_str(message)
            && let Some(bound) = site.template(message)
        {
            let values = std::slice::from_raw_parts(arguments.add(1), count - 1);
            if bound.template.deferrable() {
                if values.len() == 1 && values::kind_of(values[0]) == Kind::Other && is_mapping(values[0])? {
                    // `%(key)s` directives make a template that is not deferrable; this one ignores the mapping
                    // or complains about it, which is Python's to say.
                    return add_text(pieces, site, generation, arguments, count);
                }
                if bound.template.directives.len() != values.len() {
                    return Err(broken());
                }
                let id = add_name(pieces, bound.name(generation));
                add_deferred(pieces, bound, values)?;
                return Ok(id);
            }
        }
        add_text(pieces, site, generation, arguments, count)
    }
}

#[inline(always)]
fn add_name(pieces: &mut Pieces, name: SiteName<'_>) -> u32 {
    match name {
        SiteName::Id(id) => id,
        SiteName::Inline(definition) => {
            pieces.raw(definition);
            0
        }
    }
}

#[inline(always)]
unsafe fn add_deferred(pieces: &mut Pieces, bound: &BoundTemplate, arguments: &[*mut PyObject]) -> Result<(), Failure> {
    for (directive, &argument) in bound.template.directives.iter().zip(arguments) {
        // SAFETY: live arguments; exact types are checked before their fields are read.
        unsafe {
            let kind = values::kind_of(argument);
            if kind == Kind::AsciiStr {
                let Some(bytes) = object::utf8(argument) else { return Err(Failure::Stock) };
                let ascii = bytes.len() == ffi::PyUnicode_GET_LENGTH(argument) as usize;
                match directive.accepts(if ascii { Kind::AsciiStr } else { Kind::Str }) {
                    Acceptance::Deferred if pieces.bytes(tag::STR, bytes) => {}
                    Acceptance::RenderInCaller => add_rendered(pieces, directive.render(argument))?,
                    _ => return Err(Failure::Stock),
                }
                continue;
            }
            match directive.accepts(kind) {
                Acceptance::Deferred => {
                    if kind == Kind::Int {
                        match values::small_int(argument) {
                            Some(number) => pieces.word(tag::INT, number as u64),
                            None => add_rendered(pieces, directive.render(argument))?,
                        }
                    } else if !values::add(pieces, argument) {
                        return Err(Failure::Stock);
                    }
                }
                Acceptance::RenderInCaller => {
                    // It may run foreign code, which stock logging must not run again for an argument further on.
                    if kind == Kind::Other && !fit(bound, arguments) {
                        return Err(broken());
                    }
                    add_rendered(pieces, directive.render(argument))?;
                }
                Acceptance::Mismatch => return Err(broken()),
            }
        }
    }
    Ok(())
}

/// Whether each argument is of a kind that its directive takes.
unsafe fn fit(bound: &BoundTemplate, arguments: &[*mut PyObject]) -> bool {
    // SAFETY: live arguments.
    let accepts = |(directive, &argument): (&Directive, &*mut PyObject)| unsafe {
        directive.accepts(values::kind_of(argument)) != Acceptance::Mismatch
    };
    bound.template.directives.iter().zip(arguments).all(accepts)
}

unsafe fn add_rendered(pieces: &mut Pieces, text: Option<Owned>) -> Result<(), Failure> {
    // SAFETY: passed on.
    unsafe { add_owned(pieces, tag::RENDERED, text) }
}

/// Adds text made for this record. `None`: making it raised, and the error is set.
///
/// # Safety
///
/// A `str`; attached.
pub unsafe fn add_owned(pieces: &mut Pieces, tag: u8, text: Option<Owned>) -> Result<(), Failure> {
    // SAFETY: the text is kept by `pieces` until the record is written.
    unsafe {
        let text = text.ok_or_else(|| failure())?;
        let bytes = object::utf8(text.as_ptr()).ok_or(Failure::Stock)?;
        pieces.keep(text);
        if pieces.bytes(tag, bytes) { Ok(()) } else { Err(Failure::Stock) }
    }
}

/// Sorts the exception that is set: what a handler would have reported is left to stock logging.
///
/// # Safety
///
/// Attached, and an exception is set.
pub unsafe fn failure() -> Failure {
    // SAFETY: attached.
    unsafe {
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) != 0 {
            ffi::PyErr_Clear();
            Failure::Stock
        } else {
            Failure::Raised
        }
    }
}

/// What was found; `None` where that is stock logging's.
///
/// # Errors
///
/// [`Failure::Raised`] only.
pub fn unless_stock<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Stock) => Ok(None),
        Err(Failure::Raised) => Err(Failure::Raised),
    }
}

/// Whether stock logging would take a single argument for a mapping: one that is true.
unsafe fn is_mapping(argument: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: live objects; `__instancecheck__` and `__bool__` may run foreign code.
    unsafe {
        let mapping = MAPPING.get().ok_or(Failure::Stock)?;
        match leaving::is_instance(argument, mapping.as_ptr()) {
            0 => Ok(false),
            1 => match leaving::is_true(argument) {
                0 => Ok(false),
                1 => Ok(true),
                _ => Err(failure()),
            },
            _ => Err(failure()),
        }
    }
}

/// Adds the finished message, as `LogRecord.getMessage` makes it.
unsafe fn add_text(
    pieces: &mut Pieces,
    site: &Site,
    generation: u64,
    arguments: *const *mut PyObject,
    count: usize,
) -> Result<u32, Failure> {
    let id = add_name(pieces, site.plain_name(generation));
    // SAFETY: `count` live arguments.
    unsafe {
        let message = *arguments;
        let text = if object::is_exact_str(message) {
            if count == 1 {
                let bytes = object::utf8(message).ok_or(Failure::Stock)?;
                return if pieces.bytes(tag::MESSAGE, bytes) { Ok(id) } else { Err(Failure::Stock) };
            }
            Owned::borrow(message)
        } else {
            Owned::steal(leaving::str(message)).ok_or_else(|| failure())?
        };
        let text = if count == 1 { Some(text) } else { format_text(message, &text, arguments, count)? };
        if text.as_ref().is_some_and(|text| ffi::PyUnicode_Check(text.as_ptr()) == 0) {
            return Err(Failure::Stock);
        }
        add_owned(pieces, tag::MESSAGE, text)?;
        Ok(id)
    }
}

/// `text % arguments`, for the text of `message`. Where that raises, the text is kept for stock logging.
unsafe fn format_text(
    message: *mut PyObject,
    text: &Owned,
    arguments: *const *mut PyObject,
    count: usize,
) -> Result<Option<Owned>, Failure> {
    // SAFETY: `count` live arguments.
    unsafe {
        match percent(text, arguments.add(1), count - 1) {
            Ok(None) => {}
            other => return other,
        }
        let failure = failure();
        if matches!(failure, Failure::Stock) {
            let _ = BROKEN.try_with(|broken| broken.set(true));
            keep_made(message, text);
        }
        Err(failure)
    }
}

/// Keeps the text of a message that is no `str`.
unsafe fn keep_made(message: *mut PyObject, text: &Owned) {
    // SAFETY: live objects, attached; the class is ours.
    unsafe {
        let Some(class) = MADE_TEXT.get().filter(|_| message != text.as_ptr()) else { return };
        let arguments = [message, text.as_ptr()];
        let made = Owned::steal(ffi::PyObject_Vectorcall(class.as_ptr(), arguments.as_ptr(), 2, std::ptr::null_mut()));
        match made {
            Some(stand_in) => {
                let _ = MADE.try_with(|cell| cell.set(Some(Made { message: message as usize, stand_in })));
            }
            None => ffi::PyErr_Clear(),
        }
    }
}

unsafe fn percent(text: &Owned, arguments: *const *mut PyObject, count: usize) -> Result<Option<Owned>, Failure> {
    // SAFETY: `count` live arguments; `%` may run foreign code.
    unsafe {
        if count == 1 {
            let class = ffi::Py_TYPE(*arguments);
            let plain = class == &raw mut ffi::PyUnicode_Type
                || class == &raw mut ffi::PyLong_Type
                || class == &raw mut ffi::PyFloat_Type;
            if !plain && is_mapping(*arguments)? {
                return Ok(Owned::steal(leaving::remainder(text.as_ptr(), *arguments)));
            }
        }
        let tuple = Owned::steal(ffi::PyTuple_New(count as isize)).ok_or_else(|| failure())?;
        for index in 0..count {
            let argument = *arguments.add(index);
            ffi::Py_INCREF(argument);
            ffi::PyTuple_SetItem(tuple.as_ptr(), index as isize, argument);
        }
        Ok(Owned::steal(leaving::remainder(text.as_ptr(), tuple.as_ptr())))
    }
}
