//! The keywords of a logging call: `exc_info`, `extra`, `stack_info`, `stacklevel`.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Stock logging does the whole call if it would reject a keyword, or
//! if a value has an unusual type. Stock logging then reports its own errors.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use logspool_record::tag;
use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::calls::message;
use crate::calls::pieces::{Pieces, small_int};
use crate::calls::traceback;
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::frame::Frame;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};
use crate::plans::format_parts::FormatterTexts;
use crate::plans::plan::{self, Route};

/// The parsed keywords of one call.
pub struct Keywords<'a, 'py> {
    /// The exception to log; its text is made by `exception_text`.
    exc_info: Option<Object<'a, 'py>>,
    /// A value of `exc_info` that asks for no exception. A record keeps it as it was given.
    no_exception: Option<Object<'a, 'py>>,
    /// True if the record shows the caller's stack.
    pub stack_info: bool,
    /// The number of the stack frame that counts as the caller; 1 is the nearest.
    pub stack_level: i64,
    /// The `extra` dict: an exact dict whose keys are `str` and never the name of a LogRecord attribute.
    pub extra: Option<Owned>,
}

/// Python functions and names that native code needs to handle the keywords.
pub struct KeywordFunctions {
    /// `exception_text(exc_info) -> str`
    pub exception_text: Owned,
    /// `stack_text(frame) -> str | None`
    pub stack_text: Owned,
    /// A frozenset of the names that must not be keys of `extra`.
    pub record_names: Owned,
}

static FUNCTIONS: OnceLock<KeywordFunctions> = OnceLock::new();

/// Sets the functions. Later calls change nothing.
pub fn set_keyword_functions(functions: KeywordFunctions) {
    let _ = FUNCTIONS.set(functions);
}

fn keyword_functions() -> Result<&'static KeywordFunctions, Failure> {
    FUNCTIONS.get().ok_or(Failure::Stock)
}

/// True if an exact `str` is the name of an attribute that every `LogRecord` has, or gets from a formatter.
///
/// # Errors
///
/// logspool is not connected yet.
#[inline]
pub fn is_record_name(name: Object<'_, '_>) -> Result<bool, Failure> {
    // SAFETY: our own frozenset of `str`, a live exact `str`, and the thread is attached.
    Ok(unsafe { ffi::PySet_Contains(keyword_functions()?.record_names.as_ptr(), name.as_ptr()) } != 0)
}

/// True if a call asks for a text that only a method of a formatter can make. Runs no user Python code: in doubt the
/// call makes a `LogRecord`.
#[inline(always)]
pub fn needs_record(route: &Route, call: &Call<'_, '_>) -> bool {
    call.has_keywords()
        && route.formatter_texts != FormatterTexts::default()
        && asks_for_text(route.formatter_texts, call)
}

#[cold]
#[inline(never)]
fn asks_for_text(texts: FormatterTexts, call: &Call<'_, '_>) -> bool {
    let is_no = |value: Object<'_, '_>| value.is_none() || value.cast_exact::<PyBool>().is_ok_and(|no| !no.is_true());
    let is_text = |name: Object<'_, '_>| {
        texts.exception && object::has_text(name, &names().exc_info)
            || texts.stack && object::has_text(name, &names().stack_info)
    };
    call.named().any(|(name, value)| is_text(name) && !is_no(value))
}

impl<'a, 'py> Keywords<'a, 'py> {
    /// Reads the keywords of a call. May run user Python code: the `__bool__` of the exception given as `exc_info`.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] for keywords that only stock logging can check and report; [`Failure::Raised`] if `__bool__`
    /// raised an error that no handler catches.
    #[inline(always)]
    pub fn read(call: Call<'a, 'py>) -> Result<Self, Failure> {
        let mut read = Self { exc_info: None, no_exception: None, stack_info: false, stack_level: 1, extra: None };
        let names = names();
        for (name, value) in call.named() {
            if object::has_text(name, &names.extra) {
                read.extra = extra(value)?;
            } else if object::has_text(name, &names.exc_info) {
                if asks_for_exception(value)? {
                    read.exc_info = Some(value);
                } else {
                    read.no_exception = Some(value);
                }
            } else if object::has_text(name, &names.stacklevel) {
                read.stack_level = stack_level(value)?;
            } else if object::has_text(name, &names.stack_info) {
                read.stack_info = yes_or_no(value)?;
            } else {
                return Err(Failure::Stock);
            }
        }
        Ok(read)
    }

    /// True if the call needs a caller other than the nearest one, or the frame of its caller.
    #[inline]
    pub fn walks(&self) -> bool {
        self.stack_info || self.stack_level != 1
    }

    /// True if the call asks for an exception or a stack.
    pub fn has_traceback(&self) -> bool {
        self.exc_info.is_some() || self.stack_info
    }

    /// Adds the text of the traceback, if the call asks for one. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The code that makes the text raised an exception.
    #[inline(always)]
    pub fn add_exception(&self, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        match self.exc_info {
            Some(exc_info) => add_exception(pieces, exc_info),
            None => Ok(()),
        }
    }

    /// The exception as `Logger._log` gives it to a record: a tuple of type, exception and traceback, or the tuple that
    /// the call gives. If the call asks for no exception, the value that it gives, if any.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn exception(&self, py: Python<'py>) -> Result<Option<Owned>, Failure> {
        let Some(exc_info) = self.exc_info else { return Ok(self.no_exception.map(|given| Owned::of(&given))) };
        if object::tuple_items(exc_info).is_some() {
            return Ok(Some(Owned::of(&exc_info)));
        }
        let parts = if exc_info.is_instance_of::<PyBaseException>() {
            [Owned::of(exc_info.get_type().as_any()), Owned::of(&exc_info), traceback::traceback_of(exc_info)]
        } else {
            handled_exception(py).map(|part| part.unwrap_or_else(|| Owned::none(py)))
        };
        let parts = [parts[0].bind(py), parts[1].bind(py), parts[2].bind(py)];
        object::tuple(py, &parts).map(Some).ok_or_else(|| Failure::of_error(py))
    }

    /// The text of the stack whose innermost frame is `frame`. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The code that makes the text raised an exception.
    pub fn stack(&self, py: Python<'_>, frame: &Frame) -> Result<Owned, Failure> {
        let text = leaving::call_with(keyword_functions()?.stack_text.bind(py), frame.object().bind(py));
        text.ok_or_else(|| Failure::of_error(py))
    }

    /// Adds the text of the stack whose innermost frame is `frame`. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The code that makes the text raised an exception.
    pub fn add_stack(&self, py: Python<'_>, pieces: &mut Pieces<'_>, frame: &Frame) -> Result<(), Failure> {
        add_made(pieces, tag::STACK, &keyword_functions()?.stack_text, frame.object().bind(py))
    }
}

/// Adds the text of the traceback of a true `exc_info`: natively, or as `exception_text` returns it.
#[cold]
#[inline(never)]
fn add_exception(pieces: &mut Pieces<'_>, exc_info: Object<'_, '_>) -> Result<(), Failure> {
    exception_text(exc_info)?.add(exc_info.py(), pieces)
}

/// The text of a traceback.
pub enum ExceptionText {
    /// Native code has made it; valid UTF-8.
    Native(Vec<u8>),
    /// Python code has made it.
    Python(Owned),
}

impl ExceptionText {
    /// Adds the text to the values of a record.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] for text that cannot be encoded, or is longer than the maximum of a record.
    pub fn add(self, py: Python<'_>, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        match self {
            Self::Native(text) => {
                if pieces.keep_bytes(tag::EXCEPTION, text) {
                    Ok(())
                } else {
                    Err(Failure::Stock)
                }
            }
            Self::Python(text) => message::add_owned(py, pieces, tag::EXCEPTION, Some(text)),
        }
    }

    /// The text as a `str`.
    ///
    /// # Errors
    ///
    /// There is not enough memory.
    pub fn into_str(self, py: Python<'_>) -> Result<Owned, Failure> {
        match self {
            Self::Python(text) => Ok(text),
            Self::Native(text) => object::str_of(py, &text).ok_or_else(|| Failure::of_error(py)),
        }
    }
}

/// Number of texts of exceptions that native code made from the kept texts of their frames.
static TEXTS_BY_NATIVE_CODE: AtomicU64 = AtomicU64::new(0);

/// Number of texts of exceptions that Python's `traceback` made.
static TEXTS_BY_PYTHON: AtomicU64 = AtomicU64::new(0);

/// How many texts of exceptions native code has made, and how many Python.
pub fn exception_texts() -> (u64, u64) {
    (TEXTS_BY_NATIVE_CODE.load(Relaxed), TEXTS_BY_PYTHON.load(Relaxed))
}

/// Lets a forked child count from zero.
pub fn reset_after_fork() {
    TEXTS_BY_NATIVE_CODE.store(0, Relaxed);
    TEXTS_BY_PYTHON.store(0, Relaxed);
}

/// The text of the traceback of a true `exc_info`, as `Logger._log` and then `Formatter.format` make it. Runs user
/// Python code.
///
/// # Errors
///
/// The code that makes the text raised an exception.
pub fn exception_text(exc_info: Object<'_, '_>) -> Result<ExceptionText, Failure> {
    let py = exc_info.py();
    if let Some((exception, traceback)) = shown_exception(exc_info)
        && let Some(text) = traceback::text(exception.bind(py), traceback.bind(py))?
    {
        plan::count(&TEXTS_BY_NATIVE_CODE);
        return Ok(ExceptionText::Native(text));
    }
    plan::count(&TEXTS_BY_PYTHON);
    let made = leaving::call_with(keyword_functions()?.exception_text.bind(py), exc_info);
    made.map(ExceptionText::Python).ok_or_else(|| Failure::of_error(py))
}

/// The exception and the traceback of a true `exc_info`. `None` if there is no exception, or the tuple is no usual one.
fn shown_exception(exc_info: Object<'_, '_>) -> Option<(Owned, Owned)> {
    if let Some(parts) = object::tuple_items(exc_info) {
        let [_, exception, traceback] = parts else { return None };
        return exception.is_instance_of::<PyBaseException>().then(|| (Owned::of(exception), Owned::of(traceback)));
    }
    if exc_info.is_instance_of::<PyBaseException>() {
        return Some((Owned::of(&exc_info), traceback::traceback_of(exc_info)));
    }
    let [_, exception, traceback] = handled_exception(exc_info.py());
    Some((exception?, traceback.unwrap_or_else(|| Owned::none(exc_info.py()))))
}

/// The result of `sys.exc_info()`.
fn handled_exception(_attached: Python<'_>) -> [Option<Owned>; 3] {
    let (mut kind, mut value, mut traceback) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the token shows that the thread is attached. The function sets new references or null.
    unsafe {
        ffi::PyErr_GetExcInfo(&mut kind, &mut value, &mut traceback);
        [kind, value, traceback].map(|part| Owned::steal(part))
    }
}

/// Adds the text that `maker` returns for an object: a `str`, or None for no text.
#[cold]
#[inline(never)]
fn add_made(pieces: &mut Pieces<'_>, tag: u8, maker: &Owned, of: Object<'_, '_>) -> Result<(), Failure> {
    let py = of.py();
    let made = leaving::call_with(maker.bind(py), of).ok_or_else(|| Failure::of_error(py))?;
    if made.bind(py).is_none() {
        return Ok(());
    }
    message::add_owned(py, pieces, tag, Some(made))
}

fn extra(value: Object<'_, '_>) -> Result<Option<Owned>, Failure> {
    if value.is_none() {
        return Ok(None);
    }
    if !value.is_exact_instance_of::<PyDict>() {
        return Err(Failure::Stock);
    }
    // The keys are exact `str`, so hashing and comparing them runs no user Python code that could change the dict.
    // Without a GIL another thread could change the dict, so a copy is read in such builds.
    let fields = if cfg!(Py_GIL_DISABLED) { dict::copy(value)? } else { Owned::of(&value) };
    let mut walk = DictWalk::of(fields.bind(value.py()));
    while let Some((key, _)) = walk.next() {
        if !object::is_exact_str(key) || is_record_name(key)? {
            return Err(Failure::Stock);
        }
    }
    Ok(Some(fields))
}

fn asks_for_exception(value: Object<'_, '_>) -> Result<bool, Failure> {
    if let Ok(asked) = value.cast_exact::<PyBool>() {
        return Ok(asked.is_true());
    }
    if value.is_none() {
        return Ok(false);
    }
    if let Some(parts) = object::tuple_items(value) {
        return Ok(!parts.is_empty());
    }
    if !object::is_exact_int(value) && !value.is_instance_of::<PyBaseException>() {
        return Err(Failure::Stock);
    }
    leaving::is_true(value).ok_or_else(|| Failure::of_error(value.py()))
}

fn stack_level(value: Object<'_, '_>) -> Result<i64, Failure> {
    match small_int(value) {
        Some(level) if level >= 1 => Ok(level),
        // For a level below 1, Python 3.10 uses the nearest caller; later versions show a line of logging's own code.
        Some(_) if cfg!(not(Py_3_11)) => Ok(1),
        _ => Err(Failure::Stock),
    }
}

fn yes_or_no(value: Object<'_, '_>) -> Result<bool, Failure> {
    match value.cast_exact::<PyBool>() {
        Ok(answer) => Ok(answer.is_true()),
        Err(_) if value.is_none() => Ok(false),
        Err(_) => Err(Failure::Stock),
    }
}
