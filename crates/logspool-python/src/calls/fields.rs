//! Fields of `extra` and of `logspool.bind`: which of them the formats of a route show, and how values travel.
//!
//! Stop on the line: *capture*. Each format says which kinds of values it shows as Python does; what it does not, and
//! a record without a field that a text format names, is stock logging's to write or to report.

use logspool::format::{Acceptance, ArgumentKind};
use logspool::record::tag;
use pyo3::ffi::{self, PyObject};

use crate::calls::keywords::copy;
use crate::calls::pieces::Pieces;
use crate::calls::template::Kind;
use crate::calls::{message, values};
use crate::interpreter::failure::Failure;
use crate::interpreter::leaving;
use crate::interpreter::object::{self, Owned};
use crate::plans::needs::{Accepts, ShownFields};

/// Adds the fields that are shown: those of `extra` in its order, then the bound ones that it does not have.
///
/// # Safety
///
/// Both are live exact dicts with `str` keys, `bound` never changes; attached. Runs foreign code.
pub unsafe fn add(
    pieces: &mut Pieces,
    shown: &ShownFields,
    extra: Option<&Owned>,
    bound: Option<Owned>,
) -> Result<(), Failure> {
    if extra.is_none() && bound.is_none() && shown.names_none() {
        return Ok(());
    }
    // SAFETY: passed on. Values are read from dicts that `pieces` keep and that nobody else can change.
    unsafe {
        // What runs below may change the program's own dict.
        let extra = extra.filter(|extra| ffi::PyDict_Size(extra.as_ptr()) > 0);
        let extra = extra.map(|extra| if OWN_COPY { Ok(Owned::borrow(extra.as_ptr())) } else { copy(extra.as_ptr()) });
        let extra = extra.transpose()?;
        let sources = [extra.as_ref().map(Owned::as_ptr), bound.as_ref().map(Owned::as_ptr)];
        for (name, required, accepts) in shown.named() {
            let name = name.as_ptr();
            let value = sources.into_iter().flatten().find_map(|fields| item(fields, name));
            match value {
                Some(value) if !shown.all() => add_one(pieces, name, value, Some(accepts))?,
                None if required => return Err(Failure::Stock),
                _ => {}
            }
        }
        if shown.all() {
            shown.add_all(pieces, sources)?;
        }
        extra.into_iter().chain(bound).for_each(|fields| pieces.keep(fields));
    }
    Ok(())
}

/// Whether the dict of `extra` is a copy already: without a GIL it is made before the dict is looked at.
const OWN_COPY: bool = cfg!(Py_GIL_DISABLED);

/// The value of a key, borrowed from the dict.
unsafe fn item(fields: *mut PyObject, name: *mut PyObject) -> Option<*mut PyObject> {
    // SAFETY: an exact dict with `str` keys: no foreign code runs, and nothing raises.
    let found = unsafe { ffi::PyDict_GetItemWithError(fields, name) };
    (!found.is_null()).then_some(found)
}

impl ShownFields {
    /// Adds every field, each once.
    unsafe fn add_all(&self, pieces: &mut Pieces, sources: [Option<*mut PyObject>; 2]) -> Result<(), Failure> {
        // SAFETY: dicts that nobody changes while they are walked.
        unsafe {
            let [extra, bound] = sources;
            for fields in sources.into_iter().flatten() {
                let mut position: ffi::Py_ssize_t = 0;
                let (mut key, mut value) = (std::ptr::null_mut(), std::ptr::null_mut());
                while ffi::PyDict_Next(fields, &mut position, &mut key, &mut value) != 0 {
                    let hidden = Some(fields) == bound && extra.is_some_and(|extra| item(extra, key).is_some());
                    if !hidden && self.containers() && is_container(value) {
                        return Err(Failure::Stock);
                    }
                    if !hidden {
                        add_one(pieces, key, value, self.accepts(key))?;
                    }
                }
            }
        }
        Ok(())
    }

    unsafe fn accepts(&self, key: *mut PyObject) -> Option<&Accepts> {
        // SAFETY: two live exact `str`; comparing them runs no foreign code.
        let same = |name: &Owned| key == name.as_ptr() || unsafe { ffi::PyUnicode_Compare(key, name.as_ptr()) } == 0;
        self.named().find(|(name, ..)| same(name)).map(|(_, _, accepts)| accepts)
    }
}

/// Adds one field. Without `accepts` every format shows it as `str()` does.
unsafe fn add_one(
    pieces: &mut Pieces,
    key: *mut PyObject,
    value: *mut PyObject,
    accepts: Option<&Accepts>,
) -> Result<(), Failure> {
    // SAFETY: live objects in a dict that outlives the pieces; exact types are checked before fields are read.
    unsafe {
        let key = object::utf8(key).ok_or(Failure::Stock)?;
        let kind = kind_of(value)?;
        let other = kind == ArgumentKind::Other;
        let acceptance = match accepts {
            Some(accepts) => accepts[kind as usize],
            None if other => Acceptance::RenderInCaller,
            None => Acceptance::Deferred,
        };
        if acceptance == Acceptance::Mismatch || !pieces.field(key) {
            return Err(Failure::Stock);
        }
        let as_text = match (acceptance, kind) {
            (Acceptance::RenderInCaller, _) => Some(tag::STR),
            (_, ArgumentKind::BigInt) => Some(tag::BIG_INT),
            _ => None,
        };
        if let Some(tag) = as_text {
            return message::add_owned(pieces, tag, Owned::steal(leaving::str(value)));
        }
        if values::add(pieces, value) { Ok(()) } else { Err(Failure::Stock) }
    }
}

unsafe fn is_container(value: *mut PyObject) -> bool {
    // SAFETY: a live object; only its type's flags are read.
    unsafe { ffi::PyDict_Check(value) != 0 || ffi::PyList_Check(value) != 0 || ffi::PyTuple_Check(value) != 0 }
}

unsafe fn kind_of(value: *mut PyObject) -> Result<ArgumentKind, Failure> {
    // SAFETY: a live object.
    unsafe {
        Ok(match values::kind_of(value) {
            Kind::AsciiStr => {
                let length = object::utf8(value).ok_or(Failure::Stock)?.len();
                let ascii = length == ffi::PyUnicode_GET_LENGTH(value) as usize;
                if ascii { ArgumentKind::AsciiStr } else { ArgumentKind::Str }
            }
            Kind::Str => ArgumentKind::Str,
            Kind::Int if values::small_int(value).is_none() => ArgumentKind::BigInt,
            Kind::Int => ArgumentKind::Int,
            Kind::Float => ArgumentKind::Float,
            Kind::Bool => ArgumentKind::Bool,
            Kind::None => ArgumentKind::None,
            Kind::Bytes => ArgumentKind::Bytes,
            Kind::Other => ArgumentKind::Other,
        })
    }
}
