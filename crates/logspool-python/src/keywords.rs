//! The keywords of a logging call: `exc_info`, `extra`, `stack_info`, `stacklevel`.
//!
//! Stop on the line: *capture*. Whatever stock logging would refuse, and whatever is of a kind that nobody means,
//! makes the whole call stock logging's: its errors are its own.

use std::sync::OnceLock;

use logspool_record::tag;
use pyo3::ffi::{self, PyObject};

use crate::leaving;
use crate::message::{self, Failure};
use crate::names::names;
use crate::object::{self, Call, Owned};
use crate::pieces::Pieces;
use crate::values;

/// What the keywords ask for.
pub struct Keywords {
    /// What is logged as an exception, borrowed from the call; null for nothing.
    exc_info: *mut PyObject,
    /// Whether the stack of the caller is shown.
    pub stack_info: bool,
    /// Which of the callers counts as the caller, 1 for the nearest.
    pub stack_level: i64,
    /// An exact dict whose keys are `str` and no attributes of a LogRecord.
    pub extra: Option<Owned>,
}

/// What only Python knows or makes.
pub struct Makers {
    /// `exception_text(exc_info) -> str`
    pub exception_text: Owned,
    /// `stack_text(frame) -> str | None`
    pub stack_text: Owned,
    /// A frozenset of the names that `extra` may not have.
    pub record_names: Owned,
}

static MAKERS: OnceLock<Makers> = OnceLock::new();

/// Remembers the makers. The first call counts.
pub fn set_makers(makers: Makers) {
    let _ = MAKERS.set(makers);
}

fn makers() -> Result<&'static Makers, Failure> {
    MAKERS.get().ok_or(Failure::Stock)
}

impl Keywords {
    /// Reads the keywords of a call.
    ///
    /// # Safety
    ///
    /// `call` describes live objects, its `keywords` is a tuple of `str`; attached. Runs foreign code when an
    /// exception has a `__bool__` of its own.
    pub unsafe fn read(call: Call) -> Result<Self, Failure> {
        let mut read = Self { exc_info: std::ptr::null_mut(), stack_info: false, stack_level: 1, extra: None };
        // SAFETY: one value behind the positional ones for each name.
        unsafe {
            for index in 0..ffi::PyTuple_GET_SIZE(call.keywords) {
                let name = ffi::PyTuple_GET_ITEM(call.keywords, index);
                let value = *call.arguments.add(call.count + index as usize);
                let names = names();
                if same(name, &names.extra) {
                    read.extra = extra(value)?;
                } else if same(name, &names.exc_info) {
                    if asks_for_exception(value)? {
                        read.exc_info = value;
                    }
                } else if same(name, &names.stacklevel) {
                    read.stack_level = stack_level(value)?;
                } else if same(name, &names.stack_info) {
                    read.stack_info = yes_or_no(value)?;
                } else {
                    return Err(Failure::Stock);
                }
            }
        }
        Ok(read)
    }

    /// Whether the caller is another than the nearest one, or its frame is needed.
    #[inline]
    pub fn walks(&self) -> bool {
        self.stack_info || self.stack_level != 1
    }

    /// Adds the text of the traceback, if one is asked for.
    ///
    /// # Safety
    ///
    /// The call's arguments are live; attached. Runs foreign code.
    pub unsafe fn add_exception(&self, pieces: &mut Pieces) -> Result<(), Failure> {
        if self.exc_info.is_null() {
            return Ok(());
        }
        // SAFETY: live objects.
        unsafe { add_made(pieces, tag::EXCEPTION, &makers()?.exception_text, self.exc_info) }
    }

    /// Adds the text of the stack that ends with `frame`.
    ///
    /// # Safety
    ///
    /// A live frame object; attached. Runs foreign code.
    pub unsafe fn add_stack(&self, pieces: &mut Pieces, frame: &Owned) -> Result<(), Failure> {
        // SAFETY: live objects.
        unsafe { add_made(pieces, tag::STACK, &makers()?.stack_text, frame.as_ptr()) }
    }
}

/// Adds what a maker makes of an object: a `str`, or None for nothing.
unsafe fn add_made(pieces: &mut Pieces, tag: u8, maker: &Owned, of: *mut PyObject) -> Result<(), Failure> {
    // SAFETY: live objects; the text is kept by `pieces` until the record is written.
    unsafe {
        let made = Owned::steal(leaving::vectorcall(maker.as_ptr(), [of].as_ptr(), 1, std::ptr::null_mut()))
            .ok_or_else(|| message::failure())?;
        if made.as_ptr() == ffi::Py_None() {
            return Ok(());
        }
        if ffi::PyUnicode_Check(made.as_ptr()) == 0 {
            return Err(Failure::Stock);
        }
        message::add_owned(pieces, tag, Some(made))
    }
}

/// Whether a keyword is called `name`: mostly the very same object.
#[inline]
unsafe fn same(keyword: *mut PyObject, name: &Owned) -> bool {
    // SAFETY: two live `str`; comparing them runs no foreign code.
    keyword == name.as_ptr() || unsafe { ffi::PyUnicode_Compare(keyword, name.as_ptr()) } == 0
}

unsafe fn extra(value: *mut PyObject) -> Result<Option<Owned>, Failure> {
    // SAFETY: live objects. Exact `str` keys: neither their hash nor a comparison runs foreign code, so nobody
    // changes the dict meanwhile; without a GIL another thread might, so there a copy is looked at.
    unsafe {
        if value == ffi::Py_None() {
            return Ok(None);
        }
        if ffi::Py_TYPE(value) != &raw mut ffi::PyDict_Type {
            return Err(Failure::Stock);
        }
        let fields = if cfg!(Py_GIL_DISABLED) { copy(value)? } else { Owned::borrow(value) };
        let reserved = makers()?.record_names.as_ptr();
        let mut position: ffi::Py_ssize_t = 0;
        let mut key = std::ptr::null_mut();
        while ffi::PyDict_Next(fields.as_ptr(), &mut position, &mut key, std::ptr::null_mut()) != 0 {
            if !object::is_exact_str(key) || ffi::PySet_Contains(reserved, key) != 0 {
                return Err(Failure::Stock);
            }
        }
        Ok(Some(fields))
    }
}

/// A copy of an exact dict, which nobody else changes.
///
/// # Safety
///
/// `fields` is a live exact dict; attached.
pub unsafe fn copy(fields: *mut PyObject) -> Result<Owned, Failure> {
    // SAFETY: passed on.
    unsafe { Owned::steal(ffi::PyDict_Copy(fields)).ok_or_else(|| message::failure()) }
}

unsafe fn asks_for_exception(value: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: a live object; exact types are checked before their fields are read.
    unsafe {
        let class = ffi::Py_TYPE(value);
        if class == &raw mut ffi::PyBool_Type || value == ffi::Py_None() {
            return Ok(value == ffi::Py_True());
        }
        if class == &raw mut ffi::PyTuple_Type {
            return Ok(ffi::PyTuple_GET_SIZE(value) > 0);
        }
        if class != &raw mut ffi::PyLong_Type && ffi::PyExceptionInstance_Check(value) == 0 {
            return Err(Failure::Stock);
        }
        match leaving::is_true(value) {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(message::failure()),
        }
    }
}

unsafe fn stack_level(value: *mut PyObject) -> Result<i64, Failure> {
    // SAFETY: a live object; its exact type is checked first.
    unsafe {
        if ffi::Py_TYPE(value) != &raw mut ffi::PyLong_Type {
            return Err(Failure::Stock);
        }
        match values::small_int(value) {
            Some(level) if level >= 1 => Ok(level),
            // Below one, 3.10 takes the nearest caller; later ones show a line of logging's own.
            Some(_) if cfg!(not(Py_3_11)) => Ok(1),
            _ => Err(Failure::Stock),
        }
    }
}

unsafe fn yes_or_no(value: *mut PyObject) -> Result<bool, Failure> {
    // SAFETY: addresses of the singletons.
    unsafe {
        if value == ffi::Py_True() {
            Ok(true)
        } else if value == ffi::Py_False() || value == ffi::Py_None() {
            Ok(false)
        } else {
            Err(Failure::Stock)
        }
    }
}
