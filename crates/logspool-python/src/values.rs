//! Exact builtin values by value: the only Python objects whose content enters a lane undressed.
//!
//! Stop on the line: *capture*.

use logspool_record::{MAX_TUPLE_DEPTH, tag};
use pyo3::ffi::{self, PyObject};

use crate::object;
use crate::pieces::Pieces;
use crate::template::Kind;

/// Adds `value` if it is an exact `str`, `int`, `float`, `bool`, `bytes`, `None` or a tuple of these.
/// `false` when it is anything else, or text that does not encode; pieces may then hold a part and are void.
///
/// # Safety
///
/// `value` is live and stays so until the record is written; attached. Runs no foreign code.
pub unsafe fn add(pieces: &mut Pieces, value: *mut PyObject) -> bool {
    // SAFETY: passed on.
    unsafe { add_at_depth(pieces, value, 0) }
}

unsafe fn add_at_depth(pieces: &mut Pieces, value: *mut PyObject, depth: usize) -> bool {
    // SAFETY: exact types are checked before their fields are read; a tuple keeps its items alive.
    unsafe {
        let class = ffi::Py_TYPE(value);
        if class == &raw mut ffi::PyUnicode_Type {
            return object::utf8(value).is_some_and(|text| pieces.bytes(tag::STR, text));
        }
        if class == &raw mut ffi::PyLong_Type {
            return match small_int(value) {
                Some(number) => {
                    pieces.word(tag::INT, number as u64);
                    true
                }
                None => false,
            };
        }
        if class == &raw mut ffi::PyFloat_Type {
            pieces.word(tag::FLOAT, ffi::PyFloat_AS_DOUBLE(value).to_bits());
            return true;
        }
        if value == ffi::Py_None() {
            pieces.tag(tag::NONE);
            return true;
        }
        if class == &raw mut ffi::PyBool_Type {
            pieces.tag(if value == ffi::Py_True() { tag::TRUE } else { tag::FALSE });
            return true;
        }
        if class == &raw mut ffi::PyBytes_Type {
            let bytes = ffi::PyBytes_AsString(value).cast::<u8>();
            return pieces.bytes(tag::BYTES, std::slice::from_raw_parts(bytes, ffi::PyBytes_Size(value) as usize));
        }
        if class == &raw mut ffi::PyTuple_Type && depth + 1 < MAX_TUPLE_DEPTH {
            let count = ffi::PyTuple_GET_SIZE(value);
            let Ok(length) = u32::try_from(count) else { return false };
            let mut head = [tag::TUPLE, 0, 0, 0, 0];
            head[1..].copy_from_slice(&length.to_ne_bytes());
            let head = pieces.keep_text(head.to_vec());
            pieces.raw(head);
            return (0..count).all(|index| add_at_depth(pieces, ffi::PyTuple_GET_ITEM(value, index), depth + 1));
        }
        false
    }
}

/// The kind of an object by its exact type; all text counts as [`Kind::AsciiStr`].
///
/// # Safety
///
/// `argument` is live.
#[inline(always)]
pub unsafe fn kind_of(argument: *mut PyObject) -> Kind {
    // SAFETY: a live object; only its type's address is read.
    unsafe {
        let class = ffi::Py_TYPE(argument);
        if class == &raw mut ffi::PyUnicode_Type {
            // Which of the two kinds of text shows only when its bytes are at hand.
            Kind::AsciiStr
        } else if class == &raw mut ffi::PyLong_Type {
            Kind::Int
        } else if class == &raw mut ffi::PyFloat_Type {
            Kind::Float
        } else if class == &raw mut ffi::PyBool_Type {
            Kind::Bool
        } else if argument == ffi::Py_None() {
            Kind::None
        } else if class == &raw mut ffi::PyBytes_Type {
            Kind::Bytes
        } else {
            Kind::Other
        }
    }
}

/// The value of an exact `int` that fits `i64`.
///
/// # Safety
///
/// `value` is a live exact `int`; attached.
#[inline(always)]
pub unsafe fn small_int(value: *mut PyObject) -> Option<i64> {
    let mut overflow = 0;
    // SAFETY: an exact int, so no `__index__` runs.
    let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value, &mut overflow) };
    (overflow == 0).then_some(number)
}
