//! Texts of plain Python values: `str` and `repr`.

use logspool_record::Value;
use logspool_record::format::{NonAscii, push_repr};
use pyo3::ffi;

use crate::calls::pieces::{kind_of, small_int};
use crate::calls::template::Kind;
use crate::interpreter::object::{self, Object, Owned};

/// A value that Rust code can render; `None` for any other object.
pub fn plain<'a>(value: Object<'a, '_>) -> Option<Value<'a>> {
    match kind_of(value) {
        Kind::AsciiStr | Kind::Str => object::text(value).map(Value::Str),
        Kind::Int => small_int(value).map(Value::Int),
        // SAFETY: an exact float.
        Kind::Float => Some(Value::Float(unsafe { ffi::PyFloat_AS_DOUBLE(value.as_ptr()) })),
        // SAFETY: only the address of the singleton is read.
        Kind::Bool => Some(Value::Bool(value.as_ptr() == unsafe { ffi::Py_True() })),
        Kind::None => Some(Value::None),
        Kind::Bytes | Kind::Other => None,
    }
}

/// Appends `repr(value)`. `false`: the value is not plain.
pub fn push_repr_of(out: &mut Vec<u8>, value: Object<'_, '_>) -> bool {
    match plain(value) {
        // Which characters `repr` shows depends on the interpreter's Unicode tables.
        Some(Value::Str(text)) if !text.is_ascii() => push_repr_by_python(out, value),
        Some(plain) => {
            push_repr(out, plain, NonAscii::Keep);
            true
        }
        None => false,
    }
}

fn push_repr_by_python(out: &mut Vec<u8>, text: Object<'_, '_>) -> bool {
    // SAFETY: a live exact `str`, whose `repr` runs no user Python code; a new reference or null with an error set.
    let shown = unsafe { Owned::steal(ffi::PyObject_Repr(text.as_ptr())) };
    let Some(shown) = shown else {
        object::clear_error(text.py());
        return false;
    };
    object::utf8(shown.bind(text.py())).map(|shown| out.extend_from_slice(shown)).is_some()
}

/// Appends `str(value)`. `false`: the value is not plain.
pub fn push_str_of(out: &mut Vec<u8>, value: Object<'_, '_>) -> bool {
    match plain(value) {
        Some(Value::Str(text)) => {
            out.extend_from_slice(text.as_bytes());
            true
        }
        Some(plain) => {
            push_repr(out, plain, NonAscii::Keep);
            true
        }
        None => false,
    }
}
