//! The keywords of a logging call: `exc_info`, `extra`, `stack_info`, `stacklevel`.
//!
//! Pipeline stage: *capture* (see ARCHITECTURE.md). Stock logging does the whole call if it would reject a keyword, or
//! if a value has an unusual type. Stock logging then reports its own errors.

use std::sync::OnceLock;

use logspool_record::tag;
use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::calls::message;
use crate::calls::pieces::{Pieces, small_int};
use crate::interpreter::dict::{self, DictWalk};
use crate::interpreter::failure::Failure;
use crate::interpreter::frame::Frame;
use crate::interpreter::leaving;
use crate::interpreter::names::names;
use crate::interpreter::object::{self, Call, Object, Owned};

/// The parsed keywords of one call.
pub struct Keywords<'a, 'py> {
    /// The exception to log; its text is made by `exception_text`.
    exc_info: Option<Object<'a, 'py>>,
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

impl<'a, 'py> Keywords<'a, 'py> {
    /// Reads the keywords of a call. May run user Python code: the `__bool__` of the exception given as `exc_info`.
    ///
    /// # Errors
    ///
    /// [`Failure::Stock`] for keywords that only stock logging can check and report; [`Failure::Raised`] if `__bool__`
    /// raised an error that no handler catches.
    #[inline(always)]
    pub fn read(call: Call<'a, 'py>) -> Result<Self, Failure> {
        let mut read = Self { exc_info: None, stack_info: false, stack_level: 1, extra: None };
        let names = names();
        for (name, value) in call.named() {
            if object::has_text(name, &names.extra) {
                read.extra = extra(value)?;
            } else if object::has_text(name, &names.exc_info) {
                if asks_for_exception(value)? {
                    read.exc_info = Some(value);
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

    /// Adds the text of the traceback, if the call asks for one. Runs user Python code.
    ///
    /// # Errors
    ///
    /// The code that makes the text raised an exception.
    #[inline(always)]
    pub fn add_exception(&self, pieces: &mut Pieces<'_>) -> Result<(), Failure> {
        match self.exc_info {
            Some(exc_info) => add_made(pieces, tag::EXCEPTION, &keyword_functions()?.exception_text, exc_info),
            None => Ok(()),
        }
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
    let reserved = keyword_functions()?.record_names.as_ptr();
    let mut walk = DictWalk::of(fields.bind(value.py()));
    while let Some((key, _)) = walk.next() {
        // SAFETY: our own frozenset and a live exact `str`.
        if !object::is_exact_str(key) || unsafe { ffi::PySet_Contains(reserved, key.as_ptr()) } != 0 {
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
